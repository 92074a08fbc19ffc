"""Tests of the lever that leaves out operators whose results nothing reads."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import memplan as mp
from memplan.base.errors import MemplanError, PlanError
from memplan.levers import find_lever
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.programs.sources import of_graph

UNREAD = find_lever("unread")


def draw(seed: int) -> Graph:
    """Return a program of some operators, of which some make what nothing reads."""
    dice = random.Random(seed)
    tensors = [Tensor("x", 8, Kind.INPUT)]
    operators = []
    for at in range(dice.randint(2, 9)):
        type_ = dice.choice(["Conv", "Conv", "Relu", "RandomNormalLike"])
        read = tuple(dice.randrange(len(tensors)) for _ in range(dice.randint(1, 2)))
        made = tuple(range(len(tensors), len(tensors) + dice.randint(1, 2)))
        tensors += [Tensor(f"t{each}", dice.randint(1, 9)) for each in made]
        operators.append(Operator(f"o{at}", type_, read, made))
    output = dice.randrange(1, len(tensors))
    tensors[output] = replace(tensors[output], kind=Kind.OUTPUT)
    return Graph("net", tuple(tensors), tuple(operators), (0,), (output,), source="onnx")


def list_needed(graph: Graph) -> set[str]:
    """Return by brute force, from the results back, without which operators one is missing."""
    makers = {tensor: each for each in graph.operators for tensor in each.outputs}
    open_, needed = [*graph.outputs], set()
    open_ += [t for each in graph.operators if "Random" in each.type for t in each.outputs]
    while open_:
        maker = makers.get(open_.pop())
        if maker is not None and maker.name not in needed:
            needed.add(maker.name)
            open_ += maker.inputs
    return needed


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_makes_the_same(seed: int) -> None:
    """Tests that all goes that no result needs, and nothing else, also beside other levers."""
    graph = draw(seed)
    given, needed = of_graph(graph), list_needed(graph)
    found = mp.plan(given, levers=["unread"])
    found.verify()
    (program,) = found.programs
    taken = [step for step in found.steps if step.taken]
    assert {each.name for each in program.graph.operators} == (
        needed if taken else {each.name for each in graph.operators}
    )
    if len(needed) < len(graph.operators):
        assert found.axes[0].bound <= (found.peak or 0) <= (mp.plan(given).peak or 0)
        more = mp.plan(given, levers=["unread", "order", "in place"])
        more.verify()
        assert (more.peak or 0) <= (found.peak or 0)


def test_what_lives_on_stays() -> None:
    """Tests state, effects, unknown types, and what only a block reads."""
    tensors = (
        Tensor("x", 4, Kind.INPUT),
        Tensor("state", 4, Kind.VARIABLE),
        Tensor("inner", 4),
        Tensor("inside", 4),
        Tensor("y", 4, Kind.OUTPUT),
        Tensor("odd", 4),
        Tensor("view", 4),
    )
    block = Block("body", (Operator("in", "Relu", (2,), (3,)),), (), (3,))
    operators = (
        Operator("keeps", "Relu", (0,), (1,)),
        Operator("before", "Relu", (0,), (2,)),
        Operator("branch", "If", (0,), (4,), blocks=(block,)),
        Operator("unknown", "my.domain::Mystery", (0,), (5,)),
        Operator("shape", "Reshape", (2,), (6,)),
    )
    graph = Graph("net", tensors, operators, (0,), (4,), (View(6, 2),), source="onnx")
    found = mp.plan(of_graph(graph), levers=["unread"])
    (step,) = found.steps
    assert "1 operator left out" in step.words
    found = mp.plan(of_graph(graph), levers=["unread"], pure=["my.domain::Mystery"])
    assert "2 operators left out" in found.steps[0].words


def test_a_false_claim_is_found() -> None:
    """Tests a step that leaves out what is read, and one that names no operators."""
    given = of_graph(draw(3))
    assert given.graph is not None
    step = mp.Step("unread", 0, data={"kept": []})
    from memplan.levers.lever import Aim

    (claim,) = UNREAD.list_claims(given, step, Aim())
    with pytest.raises(PlanError, match="is left out, and its result is read"):
        claim.verify()
    for wrong in (None, [99], ["a"]):
        with pytest.raises(PlanError, match="by index"):
            UNREAD.redo(given, mp.Step("unread", 0, data={"kept": wrong}))


def test_a_file_of_a_runtime_is_refused() -> None:
    """Tests that a problem and a writer that cannot say it are refused in a sentence."""
    with pytest.raises(MemplanError, match="a problem has no operators"):
        mp.plan(mp.Problem([mp.Buffer("a", 0, 1, 1)]), levers=["unread"])
