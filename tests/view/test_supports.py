"""Tests of memplan.view.supports: what sits on what, and what bounds a buffer."""

from __future__ import annotations

from collections import deque

import numpy as np
import oracle
import strategies
from hypothesis import given
from lifted import moved, planned, units

from memplan.problem import Buffer, Gap, Problem, Reserved
from memplan.problem.plan import Plan
from memplan.view.supports import Chain, Ground, Supports, find_supports

PLANNED = planned(strategies.related(strategies.problems(max_buffers=6)))


def steps_down(problem: Problem, plan: Plan, row: int, most: int) -> list[int]:
    """Return by how much a buffer may be moved down, with its group, as alignments have it."""
    assert plan.offsets is not None
    group = next(unit for unit in units(problem) if row in unit)
    pairs = [(int(plan.offsets[mate]), int(problem.alignment[mate])) for mate in group]
    return [by for by in range(1, most + 1) if all((at - by) % unit == 0 for at, unit in pairs)]


def extents(problem: Problem, plan: Plan) -> list[dict[int, tuple[int, int]]]:
    """Return for every row what it holds at every time, as addresses [lower, upper)."""
    assert plan.offsets is not None
    found = []
    for row, offset in enumerate(plan.offsets.tolist()):
        held = {time: bits for time, bits in oracle.held_by_time(problem, row) if bits}
        found.append(
            {
                time: (offset + (bits & -bits).bit_length() - 1, offset + bits.bit_length())
                for time, bits in held.items()
            }
        )
    return found


def sits(problem: Problem, plan: Plan) -> set[tuple[int, int]]:
    """Return by brute force every pair (above, below)."""
    assert plan.offsets is not None
    held = extents(problem, plan)
    found = set()
    for above, below in np.ndindex(len(problem), len(problem)):
        for time in held[above].keys() & held[below].keys():
            bottom, top = held[above][time][0], held[below][time][1]
            between = (one[time] for one in held if time in one)
            hidden = any(top <= lower and upper <= bottom for lower, upper in between)
            free = top <= bottom and steps_down(problem, plan, above, bottom - top)
            if top <= bottom and not hidden and not free:
                found.add((above, below))
    for pair in problem.conflicts.pairs().tolist():
        for above, below in (pair, pair[::-1]):
            gap = int(plan.offsets[above] - plan.offsets[below] - problem.size[below])
            free = gap >= 0 and steps_down(problem, plan, above, gap)
            if gap >= 0 and problem.size[pair].all() and not free:
                found.add((above, below))
    return found


def ground_of(problem: Problem, plan: Plan, row: int) -> Ground:
    """Return by brute force what keeps a buffer where it is."""
    assert plan.offsets is not None
    offset = int(plan.offsets[row])
    if problem.pin[row] >= 0:
        return Ground.PIN
    if not steps_down(problem, plan, row, offset):
        return Ground.ADDRESS_ZERO
    below = [block.upper for block in problem.reserved if block.upper <= offset]
    if below and problem.size[row] and not steps_down(problem, plan, row, offset - max(below)):
        return Ground.RESERVED
    return Ground.NONE


def distance(problem: Problem, found: Supports, row: int) -> int | None:
    """Return how many times one sits on another from here to the ground, or `None`."""
    unit_of = {member: at for at, unit in enumerate(units(problem)) for member in unit}
    away = {unit_of[row]: 0}
    todo = deque(away)
    while todo:
        here = todo.popleft()
        if any(found.ground[member] for member in units(problem)[here]):
            return away[here]
        for member in units(problem)[here]:
            for below in found.below(member).tolist():
                if unit_of[below] not in away:
                    away[unit_of[below]] = away[here] + 1
                    todo.append(unit_of[below])
    return None


class TestAgainstBruteForce:
    """Small problems with every constraint, and plans that need not be tight."""

    @given(PLANNED)
    def test_who_sits_on_whom(self, given: tuple[Problem, Plan]) -> None:
        """Tests both directions, and that rows are ascending."""
        problem, plan = given
        found = find_supports(problem, plan)
        pairs = [(row, below) for row in range(len(problem)) for below in found.below(row)]
        assert pairs == sorted(sits(problem, plan))
        upward = [(above, row) for row in range(len(problem)) for above in found.above(row)]
        assert sorted(upward) == pairs
        assert upward == sorted(upward, key=lambda pair: (pair[1], pair[0]))

    @given(PLANNED)
    def test_the_ground(self, given: tuple[Problem, Plan]) -> None:
        """Tests what else than other buffers keeps a buffer where it is."""
        problem, plan = given
        expected = [ground_of(problem, plan, row) for row in range(len(problem))]
        assert find_supports(problem, plan).ground.tolist() == expected

    @given(PLANNED)
    def test_chains(self, given: tuple[Problem, Plan]) -> None:
        """Tests that each of a chain rests on the next, and that it is a shortest to the ground."""
        problem, plan = given
        found = find_supports(problem, plan)
        unit_of = {member: at for at, unit in enumerate(units(problem)) for member in unit}
        for row in range(len(problem)):
            chain = found.chain(row)
            assert chain.rows[0] == row
            for upper, lower in zip(chain.rows, chain.rows[1:], strict=False):
                assert lower in found.below(upper) or unit_of[lower] == unit_of[upper]
            assert chain.ground == found.ground[chain.rows[-1]]
            away = distance(problem, found, row)
            assert (chain.ground is Ground.NONE) == (away is None)
            if away is not None:
                assert len({unit_of[member] for member in chain.rows}) == away + 1

    @given(PLANNED)
    def test_what_rests_on_nothing_can_be_lower(self, given: tuple[Problem, Plan]) -> None:
        """Tests that a buffer without support and ground may move down a step, by the referee."""
        problem, plan = given
        assert plan.offsets is not None
        found = find_supports(problem, plan)
        for unit in units(problem):
            outside = {below for row in unit for below in found.below(row).tolist()} - set(unit)
            if outside or found.ground[unit].any():
                continue
            step = steps_down(problem, plan, unit[0], int(plan.offsets[unit[0]]))[0]
            assert moved(problem, plan.offsets.tolist(), unit, -step) is not None


class TestExamples:
    """What people see in a picture."""

    def test_a_stack(self) -> None:
        """Tests a chain of three, of which the last lies on the ground."""
        problem = Problem([Buffer("a", 0, 3, 4), Buffer("b", 1, 6, 4), Buffer("c", 0, 3, 4)])
        found = find_supports(problem, Plan.of(problem, [0, 4, 8]))
        assert found.chain(2) == Chain((2, 1, 0), Ground.ADDRESS_ZERO)
        assert found.below(2).tolist() == [1]
        assert found.above(0).tolist() == [1]

    def test_the_largest_support_is_named(self) -> None:
        """Tests which of two buffers on the ground a chain leads to."""
        sizes = {"small": 2, "large": 4, "larger": 4, "top": 1}
        times = {"small": (0, 1), "large": (1, 2), "larger": (2, 3), "top": (0, 3)}
        problem = Problem([Buffer(id, *times[id], size) for id, size in sizes.items()])
        found = find_supports(problem, Plan.of(problem, [2, 0, 0, 4]))
        assert found.below(3).tolist() == [0, 1, 2]
        assert found.chain(3).rows == (3, 1)

    def test_alignment_is_a_reason(self) -> None:
        """Tests that a buffer sits on one that ends below it where nothing legal is between."""
        buffers = [Buffer("a", 0, 2, 5), Buffer("b", 0, 2, 4, 8), Buffer("c", 0, 2, 1, 4)]
        problem = Problem(buffers)
        found = find_supports(problem, Plan.of(problem, [0, 8, 16]))
        assert found.below(1).tolist() == [0]
        assert found.below(2).tolist() == []  # it could be at 12
        assert found.chain(2) == Chain((2,), Ground.NONE)

    def test_pins_and_reserved_ranges_end_chains(self) -> None:
        """Tests the two kinds of ground that are not address 0."""
        buffers = [Buffer("a", 0, 2, 4, pin=20), Buffer("b", 0, 2, 4), Buffer("c", 0, 2, 4)]
        problem = Problem(buffers, reserved=[Reserved(0, 6)])
        found = find_supports(problem, Plan.of(problem, [20, 24, 6]))
        assert found.chain(1) == Chain((1, 0), Ground.PIN)
        assert found.chain(2) == Chain((2,), Ground.RESERVED)

    def test_a_group_is_held_up_by_one_of_it(self) -> None:
        """Tests that the chain of a buffer passes through the one of its group that sits."""
        buffers = [Buffer("a", 0, 2, 4), Buffer("x", 0, 2, 4), Buffer("y", 5, 6, 4)]
        problem = Problem(buffers, groups=[["x", "y"]])
        found = find_supports(problem, Plan.of(problem, [0, 4, 8]))
        assert found.below(2).tolist() == []
        assert found.chain(2) == Chain((2, 1, 0), Ground.ADDRESS_ZERO)

    def test_two_that_rest_on_each_other(self) -> None:
        """Tests that windows which carry each other in turn end a chain, not run in a circle."""
        gaps = (Gap(2, 4, (8, 10)), Gap(4, 6, (0, 4)))
        problem = Problem([Buffer("r", 2, 6, 10, gaps=gaps), Buffer("s", 2, 6, 4)])
        found = find_supports(problem, Plan.of(problem, [3, 7]))
        assert found.below(0).tolist() == [1]
        assert found.below(1).tolist() == [0]
        assert found.chain(0) == Chain((0,), Ground.NONE)

    def test_nothing(self) -> None:
        """Tests that a problem without buffers has no supports."""
        problem = Problem([])
        assert len(find_supports(problem, Plan.of(problem, [])).ground) == 0
