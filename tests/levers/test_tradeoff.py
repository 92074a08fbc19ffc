"""Tests of `tradeoff`: what less memory costs, what is proved of it, and in which measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import again_oracle as oracle
import pytest
from small_programs import chain, training_step

import memplan as mp
from memplan.levers.pipeline import tradeoffs
from memplan.levers.rewrite.again import again_of
from memplan.levers.rewrite.bands import Uncut, find_frontier
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import of_graph


def check(graph: Graph, found: mp.Tradeoff) -> None:
    """Check that points are plans that no other one beats, and that no bound is above them."""
    arenas = [point.arena for point in found.points]
    assert arenas == sorted(set(arenas), reverse=True)
    works = [point.extra for point in found.points]
    assert works == sorted(set(works))
    assert works[0] == 0
    for point in found.points:
        mp.verify(point.draft.planned.problem, point.draft.planned.plan)
        assert point.arena == point.draft.planned.plan.peak
        assert point.arena >= found.least
        if point.bound is not None and point.order_bound is not None:
            assert point.bound <= min(point.extra, point.order_bound)
            assert point.arena >= found.floor
        if point.again is not None:
            claim = mp.verify_recompute(graph, point.again)
            assert (claim.extra / found.plain, claim.floor) == (point.extra, found.floor)
    for one, other in pairwise(found.limits):
        assert one.capacity > other.capacity
        assert one.bound <= other.bound
        assert one.order_bound <= other.order_bound


def test_a_training_step() -> None:
    """Tests points down to the floor, the bounds, and that most are proved."""
    graph = training_step()
    found = mp.tradeoff(graph)
    check(graph, found)
    assert [(point.arena, point.levers) for point in found.points[:2]] == [
        (1200, ()),
        (1040, ("again",)),
    ]
    assert found.points[-1].arena == found.floor == 640
    assert found.floor_operator.startswith("b")
    assert [point.is_proved for point in found.points[:3]] == [True] * 3
    assert found.limits[0].capacity == 1200
    assert found.limits[1].capacity == 1130
    assert found.frontier is None
    assert "holds it up" in found.no_bands


def test_every_bound_and_point_of_random_steps() -> None:
    """Tests against the cheapest way through all states: no bound above it, no point below it."""
    random = Random(7)
    for _ in range(4):
        sizes = [random.randrange(1, 30) for _ in range(7)]
        graph = training_step(3)
        tensors = tuple(
            replace(old, bytes=size) for old, size in zip(graph.tensors, sizes, strict=True)
        )
        graph = replace(graph, tensors=tensors)
        found = mp.tradeoff(graph, points=5)
        check(graph, found)
        problem = again_of(of_graph(graph).layout).problem  # type: ignore[arg-type]
        states = oracle.States(problem)
        for limit in found.limits:
            best = states.least_extra(limit.capacity)
            assert best is None or not limit.is_impossible
            assert best is None or limit.bound <= best
        for point in found.points:
            best = states.least_extra(point.arena)
            assert best is not None
            assert best <= round(point.extra * found.plain)


def test_bands_and_their_measure() -> None:
    """Tests that the work of bands is that of their operators, by the roofline, and by times."""
    graph = chain(2, 16, 16, 2)
    found = mp.tradeoff(graph)
    check(graph, found)
    assert found.gains_nothing
    assert len(found.points) > 2
    assert all(point.levers == ("bands",) for point in found.points[1:])
    assert all(point.bound is None for point in found.points[1:])
    bands = find_frontier(Uncut(graph))
    question = again_of(of_graph(graph).layout)  # type: ignore[arg-type]
    assert tradeoffs.find_extra(bands.cut(bands.points[0]), question) == 0
    slow = {operator.name: 1.0 for operator in graph.operators} | {"conv1": 1000.0}
    measured = mp.tradeoff(graph, costs=slow)
    assert {point.arena for point in measured.points} <= {point.arena for point in found.points}
    assert measured.points[1].extra != found.points[1].extra


def test_a_chain_gains_nothing() -> None:
    """Tests that there is one point, and that the floor proves it."""
    tensors = [Tensor("x", 50, Kind.INPUT), Tensor("a", 100), Tensor("b", 70)]
    tensors.append(Tensor("y", 1, Kind.OUTPUT))
    operators = tuple(Operator(f"op{i}", "CONV", (i,), (i + 1,)) for i in range(3))
    found = mp.tradeoff(Graph("chain", tuple(tensors), operators, (0,), (3,)))
    assert (found.gains_nothing, found.floor, found.floor_operator) == (True, 170, "op1")
    assert [point.arena for point in found.points] == [170]
    assert len(found.limits) == 1


def test_what_is_given_to_the_search() -> None:
    """Tests that results are the same with the same nodes, a time, few points, and in place."""
    graph = training_step(4)
    first, second = (mp.tradeoff(graph, nodes=300, points=3) for _ in range(2))
    assert [each.extra for each in first.points] == [each.extra for each in second.points]
    assert first.limits == second.limits
    assert len(mp.tradeoff(graph, points=1, timeout=20.0).points) >= 2
    pairs = tuple(
        replace(each, in_place=((each.inputs[0], each.outputs[0]),)) for each in graph.operators
    )
    in_place = mp.tradeoff(replace(graph, operators=pairs), in_place=True)
    assert in_place.points[0].levers == ("in place",)
    assert in_place.points[0].bound is None
    assert in_place.points[0].arena < first.points[0].arena


def test_the_first_sentence_says_the_share() -> None:
    """Tests that what needs much less than half is not called half."""
    found = mp.tradeoff(training_step(12), points=1, nodes=500)
    plain, last = found.points[0].arena, found.points[-1].arena
    assert last < 0.45 * plain
    assert f"; {last / plain:.0%} of it, " in str(found)
    assert "half of it" not in str(found)


def test_an_arena_below_the_floor_is_explained() -> None:
    """Tests that the floor of orders and re-runs is said not to be about writes over inputs."""
    graph = training_step(4)
    pairs = tuple(
        replace(each, in_place=((each.inputs[0], each.outputs[0]),)) for each in graph.operators
    )
    words = "arenas below the floor: there results are written over inputs"
    found = mp.tradeoff(replace(graph, operators=pairs), in_place=True, nodes=300, points=3)
    assert found.points[-1].arena < found.floor
    assert words in " ".join(str(found).split())
    assert words not in " ".join(str(mp.tradeoff(graph, nodes=300, points=3)).split())


def test_moves_are_a_lever() -> None:
    """Tests that tensors move where that costs less, and never more than re-runs alone."""
    graph = training_step()
    found, again = mp.tradeoff(graph, spill="20TB/s"), mp.tradeoff(graph)
    assert [point.levers for point in found.points] == [(), *[("spill",)] * 3]
    for point in again.points:
        best = min(each.extra for each in found.points if each.arena <= point.arena)
        assert best <= point.extra
    for point in found.points[1:]:
        assert point.again is not None
        mp.verify_recompute(graph, point.again, spill="20TB/s")


def test_another_order_costs_nothing() -> None:
    """Tests that the best order is the first point, and that re-runs begin from it."""
    tensors = [Tensor("x", 8, Kind.INPUT), *(Tensor(f"large{i}", 100) for i in range(3))]
    tensors += [*(Tensor(f"small{i}", 1) for i in range(3)), Tensor("y", 1, Kind.OUTPUT)]
    operators = [Operator(f"grow{i}", "CONV", (0,), (1 + i,)) for i in range(3)]
    operators += [Operator(f"shrink{i}", "CONV", (1 + i,), (4 + i,)) for i in range(3)]
    operators.append(Operator("join", "CONV", (4, 5, 6), (7,)))
    graph = Graph("fan", tuple(tensors), tuple(operators), (0,), (7,))
    found = mp.tradeoff(graph)
    check(graph, found)
    assert found.points[0].levers == ("order",)
    assert found.points[0].arena < found.given.arena


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"points": 0}, "points is 0; it must be a whole number from 1"),
        ({"nodes": -1}, "nodes"),
        ({"costs": {"f9": 1.0}}, 'the program has no operator "f9"'),
        ({"pure": ["Missing"]}, 'no operator is of the type "Missing"'),
    ],
)
def test_what_is_refused(wrong: dict[str, Any], words: str) -> None:
    """Tests one sentence each, and a problem without operators."""
    with pytest.raises(mp.MemplanError, match=words):
        mp.tradeoff(training_step(), **wrong)
    with pytest.raises(mp.MemplanError, match="has no operators"):
        mp.tradeoff("examples/five.csv")


def test_ctrl_c_leaves_the_points_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the search ends, and that the result says so."""
    run_again: Callable[..., None] = tradeoffs.Run.run_again
    calls: list[int] = []

    def stop(run: Any, **asked: Any) -> None:
        run_again(run, **asked)
        calls.append(1)
        if len(calls) == 2:
            raise mp.Interrupted(run.best.planned.plan)

    monkeypatch.setattr(tradeoffs.Run, "run_again", stop)
    found = mp.tradeoff(training_step())
    assert found.interrupted
    assert len(calls) == 2
    assert len(found.points) >= 2
