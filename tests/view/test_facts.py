"""Tests of memplan.view.facts: what the page says of a buffer in addition to its numbers."""

from __future__ import annotations

from dataclasses import fields

from memplan.problem import Problem
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph
from memplan.view.facts import Facts, find_facts, find_problem_facts

NET = Graph(
    "net",
    (Tensor("x", 4, Kind.INPUT), Tensor("a", 8), Tensor("y", 4, Kind.OUTPUT)),
    (
        Operator("conv1", "Conv", (0,), (1,), workspace=16, module="layer1", line="net.py:41"),
        Operator("", "Relu", (1,), (2,)),
    ),
    inputs=(0,),
    outputs=(2,),
)


def test_facts_of_a_graph() -> None:
    """Tests every column, for an input, a result, what is between and a workspace."""
    loaded = of_graph(NET)
    assert find_facts(loaded) == Facts(
        name=("x", "a", "y", "conv1 (workspace)"),
        tensors=(("x",), ("a",), ("y",), ("conv1 (workspace)",)),
        kind=("input", "intermediate", "output", "workspace"),
        operator=("", "Conv", "Relu", "Conv"),
        made_by=("", "conv1 (Conv)", "Relu", ""),
        used_by=(("conv1 (Conv)",), ("Relu",), (), ()),
        module=("", "layer1", "", "layer1"),
        line=("", "net.py:41", "", "net.py:41"),
    )


def test_a_problem_has_names_alone(five: Problem) -> None:
    """Tests that a file without a program says nothing but names, in columns of one length."""
    found = find_facts(Loaded(five, "csv", len(five)))
    assert found == find_problem_facts(five)
    assert found.name == five.ids
    assert {len(getattr(found, field.name)) for field in fields(Facts)} == {len(found)} == {5}
    assert set(found.kind + found.operator + found.made_by + found.module + found.line) == {""}
