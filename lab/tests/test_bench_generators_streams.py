"""Tests of `memplan_lab.bench.generators.streams`: shape, and the same program everywhere."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest

from memplan.programs.graph import Graph, Kind
from memplan.programs.graph.order import find_cycle, waits
from memplan.programs.sources.graph_json import write_graph
from memplan_lab.bench.generators import multi_stream, pangu_like

pytestmark = pytest.mark.slow


def digest(graph: Graph) -> str:
    """Return a short hash of a program."""
    return hashlib.sha256(write_graph(graph).encode()).hexdigest()[:16]


def stream_graph(graph: Graph) -> list[dict[int, int]]:
    """Return by stream for which others it waits."""
    operators = graph.operators
    arcs: list[dict[int, int]] = [{} for _ in range(1 + max(op.stream for op in operators))]
    for operator, awaited in zip(operators, waits(operators), strict=True):
        for other in awaited:
            if operators[other].stream != operator.stream:
                arcs[operator.stream][operators[other].stream] = 0
    return arcs


def test_same_programs_on_any_machine() -> None:
    """Tests that a seed gives what was recorded once, and another seed something else."""
    assert digest(multi_stream(20, 3, 1)) == "365bc70271d67978"
    assert digest(pangu_like(400, 5, 10, 1)) == "6650d313c7234857"
    assert multi_stream(20, 3, 1) != multi_stream(20, 3, 2)
    assert pangu_like(400, 5, 10, 1) != pangu_like(400, 5, 10, 2)


def test_random_programs_have_all_that_streams_have() -> None:
    """Tests that among some there are circles of streams, scratch, and tensors of every kind."""
    graphs = [multi_stream(12, 4, seed) for seed in range(40)]
    assert sum(bool(find_cycle(stream_graph(graph))) for graph in graphs) > 20
    assert all(len(graph.operators) == 12 for graph in graphs)
    assert any(operator.workspace for graph in graphs for operator in graph.operators)
    kinds = {tensor.kind for graph in graphs for tensor in graph.tensors}
    assert kinds == {Kind.INPUT, Kind.OUTPUT, Kind.INTERMEDIATE}
    readers = [
        sum(index in operator.inputs for operator in graph.operators)
        for graph in graphs
        for index in range(len(graph.tensors))
    ]
    assert {0, 1, 2, 3} <= set(readers)


@pytest.mark.parametrize(("n", "streams", "groups"), [(20_000, 10, 678), (1000, 3, 20), (90, 4, 2)])
def test_pangu_like(n: int, streams: int, groups: int) -> None:
    """Tests that there are as many of everything as were asked for, and that streams fill up."""
    graph = pangu_like(n, streams, groups)
    assert (len(graph.tensors), len(graph.groups)) == (n, groups)
    assert all(len(group) >= 2 for group in graph.groups)
    assert {operator.stream for operator in graph.operators} == set(range(streams))
    for category in (("Forward", "Backward"), ("AllReduce", "ReduceScatter"), ("Update",)):
        filled = [operator.stream for operator in graph.operators if operator.type in category]
        assert all(one <= other <= one + 1 for one, other in pairwise(filled))
    assert find_cycle(stream_graph(graph))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1000, 2, 5), "streams is 2; there are three categories of operators"),
        ((50, 3, 1), "50 tensors are too few for 1 groups, or there are no groups"),
        ((1000, 3, 90), "1000 tensors are too few for 90 groups, or there are no groups"),
        ((1000, 3, 0), "1000 tensors are too few for 0 groups, or there are no groups"),
    ],
)
def test_what_cannot_be(arguments: tuple[int, int, int], sentence: str) -> None:
    """Tests that arguments that contradict each other are refused."""
    with pytest.raises(ValueError, match=sentence):
        pangu_like(*arguments)
