"""Tests of what streams cost, and that suggested waiting saves and costs as said."""

from __future__ import annotations

from itertools import combinations

import pytest

import memplan
from memplan.analysis.sync import cost_of_safety, suggest_sync
from memplan.base.errors import GraphError
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View, lay_out, unsafe_pairs
from memplan.programs.graph.order import on_streams, waits
from memplan.programs.graph.sync import find_users, measure_freedom, synchronise
from memplan_lab.bench.generators import multi_stream


def relay(count: int = 4) -> Graph:
    """Return a stream that makes pieces of 10 bytes, and one that sends each away."""
    tensors = tuple(Tensor(f"piece {number}", 10) for number in range(count))
    operators = []
    for number in range(count):
        operators.append(Operator(f"make {number}", "Make", (), (number,), 0))
        operators.append(Operator(f"send {number}", "Send", (number,), (), 1))
    return Graph("relay", tensors, tuple(operators))


def ancestors(graph: Graph) -> list[set[int]]:
    """Return by operator all that are over before it."""
    before: list[set[int]] = []
    for awaited in on_streams(graph.operators, waits(graph.operators, graph.views)):
        before.append(set(awaited).union(*(before[other] for other in awaited)))
    return before


def free_pairs(graph: Graph) -> int:
    """Count the pairs of operators of which neither is over before the other begins."""
    before = ancestors(graph)
    pairs = combinations(range(len(before)), 2)
    return sum(one not in before[other] and other not in before[one] for one, other in pairs)


def longest_chain(graph: Graph) -> int:
    """Return how many operators the longest chain has."""
    before = ancestors(graph)
    length: list[int] = []
    for some in before:
        length.append(1 + max((length[other] for other in some), default=0))
    return max(length)


@pytest.mark.parametrize("seed", range(12))
def test_freedom_by_brute_force(seed: int) -> None:
    """Tests that free pairs and the longest chain are those of the transitive closure."""
    graph = multi_stream(15, 1 + seed % 4, seed)
    found = measure_freedom(graph)
    assert (found.pairs, found.chain) == (free_pairs(graph), longest_chain(graph))


def test_cost_of_safety() -> None:
    """Tests that a sender that may lag behind keeps every piece, and one stream only one."""
    cost = cost_of_safety(relay())
    assert (cost.bound, cost.one_stream, cost.streams, cost.bytes) == (10, 10, 40, 30)


def test_halving_is_suggested_first() -> None:
    """Tests that the wait in the middle comes first, and that all waits make pieces share."""
    first, *others = suggest_sync(relay())
    assert (first.before, first.after) == (3, 4)  # make 2 waits for send 1
    assert (first.peak, first.saves) == (20, 20)
    assert (first.unsafe, first.chain) == (4, 1)
    assert others[-1].peak == 10
    assert {(one.before, one.after) for one in others} == {(1, 2), (5, 6)}


def test_no_more_than_asked_for() -> None:
    """Tests that `most` limits the arcs, and that a step that saves nothing is not the last."""
    assert suggest_sync(relay(), most=0) == []
    assert [one.saves for one in suggest_sync(relay(), most=2)] == [20]


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_suggestions_save_and_cost_what_they_say(seed: int) -> None:
    """Tests every figure of a suggestion against the program with that arc added."""
    before = multi_stream(30, 3, seed)
    peak = cost_of_safety(before).streams
    found = suggest_sync(before, most=2)
    assert found
    for one in found:
        after = synchronise(before, [(one.before, one.after)])
        problem = lay_out(after).problem
        plan = memplan.solve(problem, solver="greedy", objective="min_peak")
        memplan.verify(problem, plan)
        assert (plan.peak, one.saves) == (one.peak, peak - one.peak)
        assert one.unsafe == len(unsafe_pairs(before, "1")) - len(unsafe_pairs(after, "1"))
        assert one.freedom == free_pairs(before) - free_pairs(after)
        assert one.chain == longest_chain(after) - longest_chain(before)
        before, peak = after, one.peak


def test_nothing_to_gain() -> None:
    """Tests that nothing is suggested where streams cost nothing."""
    assert suggest_sync(multi_stream(20, 1, 0)) == []
    assert suggest_sync(relay(1)) == []


def test_synchronised() -> None:
    """Tests that an arc is a tensor of no bytes with a name of its own, also if there is one."""
    graph = synchronise(synchronise(relay(), [(1, 2)]), [(1, 2)])
    assert [t.name for t in graph.tensors[4:]] == ["sync 1 -> 2", "sync 1 -> 2'"]
    assert lay_out(graph).problem.ids == lay_out(relay()).problem.ids
    assert 1 in ancestors(graph)[2]
    assert 1 not in ancestors(relay())[2]


@pytest.mark.parametrize("arc", [(2, 1), (1, 1), (-1, 2), (1, 8)])
def test_arcs_that_cannot_be(arc: tuple[int, int]) -> None:
    """Tests that waiting for a later operator, or for an unknown one, is refused."""
    with pytest.raises(GraphError, match=f"operator {arc[1]} cannot wait for operator {arc[0]}"):
        synchronise(relay(), [arc])


def test_users_of_storages() -> None:
    """Tests that an operator with a view or scratch uses its memory, by outermost operators."""
    tensors = (Tensor("a", 8), Tensor("head", 4), Tensor("b", 8, Kind.OUTPUT))
    operators = (
        Operator("make", "Make", (), (0,)),
        Operator("look", "Look", (1,), (), 1, workspace=4),
        Operator("end", "End", (0,), (2,)),
    )
    graph = Graph("net", tensors, operators, outputs=(2,), views=(View(1, 0),))
    layout = lay_out(graph)
    names = [layout.storages[row].name for row in layout.rows]
    found = dict(zip(names, find_users(layout), strict=True))
    assert found == {"a": [0, 1, 2], "b": [2], "look (workspace)": [1]}
