"""Tests of memplan.view.verdict: how good a plan is, in a few words."""

from __future__ import annotations

import pytest

from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.view.verdict import Grade, Verdict, find_verdict, verdict_of


@pytest.mark.parametrize(
    ("peak", "bound", "capacity", "grade", "text"),
    [
        (12, 12, None, Grade.GOOD, "optimal: equals the lower bound"),
        (12, 12, 12, Grade.GOOD, "optimal: equals the lower bound"),
        (0, 0, None, Grade.GOOD, "optimal: equals the lower bound"),
        (
            *(15, 12, None, Grade.OPEN),
            "3 bytes above the lower bound (25.0 %); a smaller peak is not ruled out",
        ),
        (
            *(10_001, 10_000, 20_000, Grade.OPEN),
            "1 byte above the lower bound; a smaller peak is not ruled out",
        ),
        (
            *(15, 12, 14, Grade.BAD),
            "1 byte above the capacity; a plan that fits is not ruled out",
        ),
        (
            *(15, 12, 11, Grade.BAD),
            "4 bytes above the capacity, as is the lower bound: no plan fits",
        ),
        (31, 12, 40, Grade.OPEN, "2.6 times the lower bound; a smaller peak is not ruled out"),
        (5, 0, None, Grade.OPEN, "5 bytes above the lower bound; a smaller peak is not ruled out"),
    ],
)
def test_words(peak: int, bound: int, capacity: int | None, grade: Grade, text: str) -> None:
    """Tests each case, with a share where it says something."""
    assert find_verdict(peak, bound, capacity) == Verdict(grade, text)


def test_a_fit_is_good(five: Problem) -> None:
    """Tests that a plan that fits as asked does not read as a failure, unless it is invalid."""
    problem = five.with_capacity(20)
    for offsets, grade in (([16, 8, 4, 4, 0], Grade.GOOD), ([16, 0, 0, 0, 0], Grade.BAD)):
        plan = Plan.of(problem, offsets, status=Status.FITS, lower_bound=12)
        assert verdict_of(problem, plan, 20).grade is grade
    assert find_verdict(20, 12, 20, fit=True).text.startswith("fits the capacity; ")
    assert find_verdict(12, 12, 20, fit=True).text.startswith("optimal")


def test_an_invalid_plan_is_never_optimal(five: Problem) -> None:
    """Tests that neither overlaps nor a false bound make a good verdict."""
    free = five.with_capacity(None)
    overlap = Plan.of(free, [0, 0, 4, 4, 0])
    assert verdict_of(free, overlap, 8) == Verdict(Grade.BAD, "invalid")
    naive = [0, 4, 8, 12, 16]
    claim = Plan(ids=free.ids, size=free.size, offsets=naive, lower_bound=99)
    assert verdict_of(free, claim, 20) == Verdict(Grade.BAD, "invalid")


def test_a_bound_that_was_proved_counts(five: Problem) -> None:
    """Tests that the bound of a plan is used where it is above the greatest load."""
    free = five.with_capacity(None)
    naive = [0, 4, 8, 12, 16]
    assert verdict_of(free, Plan.of(free, naive), 20).grade is Grade.OPEN
    assert verdict_of(free, Plan.of(free, naive, lower_bound=20), 20).grade is Grade.GOOD
