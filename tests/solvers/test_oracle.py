"""Tests of the brute force itself: the judge of all solvers."""

from __future__ import annotations

import itertools

import oracle
import pytest
from hypothesis import given
from strategies import problems, related

from memplan.problem import Buffer, Gap, Problem

pytestmark = pytest.mark.slow


class TestOracle:
    """The brute force, against cases worked by hand and a search that has no wits at all."""

    def test_worked_example(self, five: Problem) -> None:
        """Tests that the example of MiniMalloc needs its twelve bytes, and no fewer will do."""
        assert oracle.minimum_peak(five) == 12
        assert oracle.fit(five, 11) is None
        assert oracle.minimum_peak(five.with_capacity(11)) is None

    def test_peak_above_the_load(self) -> None:
        """Tests a chain of buffers whose first and last link force two different heights."""
        problem = Problem(
            [
                Buffer("a", start=0, end=2, size=1),
                Buffer("b", start=1, end=3, size=2),
                Buffer("c", start=2, end=4, size=1),
                Buffer("d", start=3, end=5, size=2),
                Buffer("e", start=0, end=1, size=2, pin=0),
                Buffer("f", start=4, end=5, size=1),
            ]
        )
        assert oracle.load(problem) == 3
        assert oracle.minimum_peak(problem) == 3
        assert oracle.minimum_peak(problem.with_pins({"f": 0})) == 4

    def test_every_constraint(self) -> None:
        """Tests that each constraint moves the optimum as it should."""
        pair = [Buffer("a", 0, 2, 3), Buffer("b", 0, 2, 3)]
        assert oracle.minimum_peak(Problem(pair)) == 6
        assert oracle.minimum_peak(Problem([pair[0], Buffer("b", 0, 2, 3, alignment=4)])) == 6
        both = [Buffer(id, 0, 2, 3, alignment=4) for id in "ab"]
        assert oracle.minimum_peak(Problem(both)) == 7
        assert oracle.minimum_peak(Problem([pair[0], Buffer("b", 0, 2, 3, pin=9)])) == 12
        assert oracle.minimum_peak(Problem(pair, reserved=[(1, 5)])) == 11
        gaps = (Gap(0, 1, (0, 1)), Gap(1, 2))
        assert oracle.minimum_peak(Problem([pair[0], Buffer("b", 0, 2, 3, gaps=gaps)])) == 4
        assert oracle.minimum_peak(Problem([Buffer("a", 0, 1, 0, pin=5)])) == 5
        assert oracle.minimum_peak(Problem([])) == 0

    def test_conflicts_and_groups(self) -> None:
        """Tests that buffers of disjoint lifetimes are kept apart, or one behind the other."""
        chain = [Buffer("a", 0, 1, 3), Buffer("b", 1, 2, 4), Buffer("c", 2, 3, 2)]
        assert oracle.minimum_peak(Problem(chain)) == 4
        assert oracle.minimum_peak(Problem(chain, conflicts=[("a", "c")])) == 5
        assert oracle.fit(Problem(chain, groups=[["c", "a"]]), 5) == [2, 0, 0]
        assert oracle.fit(Problem(chain, groups=[["c", "a"]]), 4) is None
        pinned = [chain[0], chain[1], Buffer("c", 2, 3, 2, pin=1)]
        assert oracle.minimum_peak(Problem(pinned, groups=[["a", "c"]])) is None

    @given(
        problems(max_buffers=3, max_size=3, max_time=4)
        | related(problems(max_buffers=3, max_size=3, max_time=4))
    )
    def test_against_listing_all(self, problem: Problem) -> None:
        """Tests the search against trying every tuple of offsets."""
        top = oracle.limit(problem)
        if top > 24:
            return
        peaks = [
            max((o + z for o, z in zip(offsets, problem.size.tolist(), strict=True)), default=0)
            for offsets in itertools.product(range(top + 1), repeat=len(problem))
            if oracle.is_legal(problem, list(offsets), top)
        ]
        assert oracle.minimum_peak(problem) == min(peaks, default=None)
