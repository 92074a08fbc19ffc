"""Tests of memplan.view.waste: the holes of a plan."""

from __future__ import annotations

import oracle
import pytest
import strategies
from hypothesis import given
from lifted import planned

from memplan.base.errors import PlanError
from memplan.problem import Buffer, Gap, Problem, Reserved
from memplan.problem.plan import Plan, Status
from memplan.view.waste import Waste, find_waste


def holes_and_held(problem: Problem, plan: Plan) -> tuple[set[tuple[int, int]], int]:
    """Return by brute force every unit (time, address) that is a hole, and how many are held."""
    assert plan.offsets is not None
    origin, memory = oracle.first_time(problem), dict[int, int]()
    for row, offset in enumerate(plan.offsets.tolist()):
        for time, bits in oracle.held_by_time(problem, row):
            memory[time] = memory.get(time, 0) | bits << offset
    holes, held = set(), 0
    for time, bits in memory.items():
        held += bits.bit_count()
        free = oracle.ones(bits.bit_length()) & ~bits & ~oracle.reserved_bits(problem)
        holes |= {(origin + time, at) for at in range(free.bit_length()) if free >> at & 1}
    return holes, held


def cells(found: Waste) -> list[tuple[int, int]]:
    """Return every unit (time, address) of all rectangles."""
    columns = (column.tolist() for column in (found.start, found.end, found.lower, found.upper))
    return [
        (time, address)
        for start, end, lower, upper in zip(*columns, strict=True)
        for time in range(start, end)
        for address in range(lower, upper)
    ]


@given(planned(strategies.problems()))
def test_holes_agree_with_brute_force(given: tuple[Problem, Plan]) -> None:
    """Tests that rectangles cover just the holes, each once, and the share of them."""
    problem, plan = given
    found = find_waste(problem, plan)
    holes, held = holes_and_held(problem, plan)
    assert sorted(cells(found)) == sorted(holes)
    assert found.share == (len(holes) / (len(holes) + held) if holes else 0.0)


def test_a_hole_is_one_rectangle() -> None:
    """Tests that a hole is not cut where nothing next to it changes."""
    buffers = [Buffer("a", 0, 4, 4), Buffer("c", 0, 6, 2), Buffer("far", 2, 3, 1)]
    problem = Problem(buffers)
    found = find_waste(problem, Plan.of(problem, [0, 7, 9]))
    columns = (found.start, found.end, found.lower, found.upper)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (0, 4, 4, 7),
        (4, 6, 0, 7),
    ]
    assert found.share == (3 * 4 + 7 * 2) / (3 * 4 + 7 * 2 + 4 * 4 + 2 * 6 + 1)


def test_what_is_reserved_is_no_hole() -> None:
    """Tests that reserved ranges are cut out of holes, and are not in the share."""
    problem = Problem([Buffer("a", 0, 1, 2)], reserved=[Reserved(2, 4), Reserved(4, 5)])
    found = find_waste(problem, Plan.of(problem, [8]))
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 5], [2, 8])
    assert found.share == 5 / 7


def test_a_gap_under_another_buffer_is_a_hole() -> None:
    """Tests that what a buffer does not hold for a while is unused, if something lies above it."""
    problem = Problem([Buffer("a", 0, 9, 4, gaps=(Gap(3, 6, (0, 1)),)), Buffer("b", 0, 5, 1)])
    found = find_waste(problem, Plan.of(problem, [0, 4]))
    columns = (found.start, found.end, found.lower, found.upper)
    assert [column.tolist() for column in columns] == [[3], [5], [1], [4]]


def test_addresses_up_to_the_limit() -> None:
    """Tests that offsets near 2^62 do not overflow."""
    problem = Problem([Buffer("a", 0, 1 << 40, 1)])
    found = find_waste(problem, Plan.of(problem, [(1 << 62) - 1]))
    assert (found.lower.tolist(), found.upper.tolist()) == ([0], [(1 << 62) - 1])
    assert found.share == pytest.approx(1)


def test_a_plan_without_offsets_is_refused() -> None:
    """Tests that there are no holes to be found in no plan."""
    problem = Problem([Buffer("a", 0, 1, 1)])
    with pytest.raises(PlanError, match="no offsets"):
        find_waste(problem, Plan.of(problem, None, status=Status.UNKNOWN))
