"""Tests that plans for parallel streams are safe, and unsafe ones are not, by running them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, islice

import pytest
import rehearsal

import memplan
from memplan.programs.graph import Layout, lay_out, unsafe_pairs, why
from memplan.referee import verify
from memplan.solvers import registry
from memplan_lab.bench.generators import multi_stream

pytestmark = pytest.mark.slow

UNIT = 64  # bytes: what two tensors share is never less

Pairs = set[tuple[int, int]]


@cache
def program(seed: int) -> Layout:
    """Return a laid-out program of 30 to 60 operators on 3 or 4 streams."""
    graph = multi_stream(30 + seed % 31, 3 + seed % 2, seed)
    return lay_out(rehearsal.enlarged(graph, UNIT))


def unsafe(layout: Layout) -> Pairs:
    """Return the pairs of rows that may not share memory."""
    pairs = unsafe_pairs(layout)
    return {pair for pair in combinations(range(len(layout.rows)), 2) if pair in pairs}


def meeting(layout: Layout) -> Pairs:
    """Return the pairs of rows whose lifetimes in one order of the operators meet."""
    start, end = layout.problem.start, layout.problem.end
    rows = combinations(range(len(layout.rows)), 2)
    return {(i, j) for i, j in rows if start[i] < end[j] and start[j] < end[i]}


def first_fit(size: Sequence[int], apart: Pairs) -> list[int]:
    """Place the largest first, each at the lowest offset: a planner that knows pairs only."""
    bars: list[set[int]] = [set() for _ in size]
    for i, j in apart:
        bars[i].add(j)
        bars[j].add(i)
    placed: dict[int, int] = {}
    for row in sorted(range(len(size)), key=lambda row: -size[row]):
        offset = 0
        for other in sorted(bars[row] & placed.keys(), key=placed.__getitem__):
            if offset + size[row] <= placed[other]:
                break
            offset = max(offset, placed[other] + size[other])
        placed[row] = offset
    return [placed[row] for row in range(len(size))]


def sharing(size: Sequence[int], offsets: Sequence[int], pairs: Pairs) -> list[tuple[int, int]]:
    """Return those pairs that have some address in common."""
    return sorted(
        (i, j)
        for i, j in pairs
        if offsets[i] < offsets[j] + size[j] and offsets[j] < offsets[i] + size[i]
    )


def one_too_few(layout: Layout) -> Iterator[tuple[list[int], tuple[int, int]]]:
    """Yield plans for all unsafe pairs but one, where that makes the two share memory."""
    size, pairs = layout.problem.size.tolist(), unsafe(layout)
    for pair in sorted(pairs, key=lambda pair: zlib.crc32(repr(pair).encode())):
        offsets = first_fit(size, pairs - {pair})
        if sharing(size, offsets, {pair}):
            yield offsets, pair


def told(layout: Layout, pair: tuple[int, int]) -> list[rehearsal.Moment]:
    """Return the execution that `why` names for an unsafe pair."""
    ids = layout.problem.ids
    reason = why(layout, ids[pair[0]], ids[pair[1]])
    assert not reason.safe
    return rehearsal.as_told(reason)


def test_a_thousand_runs_on_threads() -> None:
    """Tests that no delay makes a value wrong, in memory that first fit plans by unsafe pairs."""
    shared = 0
    for seed in range(50):
        layout = program(seed)
        offsets = first_fit(layout.problem.size.tolist(), unsafe(layout))
        shared += max(offsets) < layout.problem.size.sum() // 2
        stage = rehearsal.Rehearsal(layout)
        for run in range(20):
            pace = rehearsal.at_random(layout.graph, 1000 * seed + run)
            assert stage.run(offsets, pace) == [], (seed, run)
    assert shared > 40  # else there is nothing that could be wrong


@pytest.mark.parametrize("seed", range(20))
def test_every_stream_starved(seed: int) -> None:
    """Tests the same plans where one stream runs only when all others wait for it."""
    layout = program(seed)
    offsets = first_fit(layout.problem.size.tolist(), unsafe(layout))
    stage = rehearsal.Rehearsal(layout)
    for stream in {operator.stream for operator in layout.graph.operators}:
        moments = rehearsal.starved(layout.graph, stream)
        assert stage.run(offsets, rehearsal.in_turn(moments)) == []


@pytest.mark.parametrize("seed", range(40))
def test_one_unsafe_pair_taken_for_safe(seed: int) -> None:
    """Tests that the execution that `why` names finds the fault, and none in the good plan."""
    layout = program(seed)
    good = first_fit(layout.problem.size.tolist(), unsafe(layout))
    stage = rehearsal.Rehearsal(layout)
    cases = list(islice(one_too_few(layout), 5))
    assert cases
    for offsets, pair in cases:
        moments = told(layout, pair)
        assert stage.run(offsets, rehearsal.in_turn(moments)) != [], pair
        assert stage.run(good, rehearsal.in_turn(moments)) == [], pair


@pytest.mark.parametrize("seed", range(40))
def test_lifetimes_of_one_order_are_not_enough(seed: int) -> None:
    """Tests that a plan for one order of the operators is right there, and wrong elsewhere."""
    layout = program(seed)
    size = layout.problem.size.tolist()
    offsets = first_fit(size, meeting(layout))
    stage = rehearsal.Rehearsal(layout)
    in_order = rehearsal.one_by_one(range(len(layout.graph.operators)))
    assert stage.run(offsets, rehearsal.in_turn(in_order)) == []
    faults = sharing(size, offsets, unsafe(layout))
    assert faults
    for pair in faults[:5]:
        assert stage.run(offsets, rehearsal.in_turn(told(layout, pair))) != [], pair


SOLVERS = [
    name
    for name, solver in registry.SOLVERS.items()
    if "conflicts" in solver.supports and not solver.libraries
]


@pytest.mark.parametrize("solver", SOLVERS)
def test_plans_of_solvers(solver: str) -> None:
    """Tests that plans of all solvers that know conflicts give right values on threads."""
    for seed in range(5):
        layout = program(seed)
        plan = memplan.solve(layout.problem, solver=solver, objective="min_peak", nodes=2000)
        assert plan.offsets is not None
        verify(layout.problem, plan)
        stage = rehearsal.Rehearsal(layout)
        for run in range(10):
            pace = rehearsal.at_random(layout.graph, run)
            assert stage.run(plan.offsets.tolist(), pace) == []
