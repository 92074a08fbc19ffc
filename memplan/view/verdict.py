"""How good a plan is, in a few words: optimal, a fit, how far above the bound, or invalid."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memplan.base.errors import PlanError
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify
from memplan.view.units import human, percent

__all__ = ["Grade", "Verdict", "find_verdict", "verdict_of"]


class Grade(StrEnum):
    """How a verdict is coloured."""

    GOOD = "good"  # optimal, or a fit where a fit was asked for
    OPEN = "open"  # a smaller peak is not ruled out
    BAD = "bad"  # invalid, or above the capacity


@dataclass(frozen=True, slots=True)
class Verdict:
    """A grade, and the words that go after "peak 12 bytes, "."""

    grade: Grade
    text: str


def find_verdict(
    peak: int,
    bound: int,
    capacity: int | None = None,
    *,
    valid: bool = True,
    fit: bool = False,
) -> Verdict:
    """Compare the peak of a plan, computed from its offsets, with what is proved.

    A plan is valid if it keeps all constraints other than the capacity; `fit` says that it was only
    asked to fit the capacity.
    """
    if not valid:
        return Verdict(Grade.BAD, "invalid")
    if capacity is not None and capacity < peak:
        excess = f"{human(peak - capacity)} above the capacity"
        if capacity < bound:
            return Verdict(Grade.BAD, f"{excess}, as is the lower bound: no plan fits")
        return Verdict(Grade.BAD, f"{excess}; a plan that fits is not ruled out")
    if peak <= bound:
        return Verdict(Grade.GOOD, "optimal: equals the lower bound")
    if fit and capacity is not None:
        return Verdict(Grade.GOOD, "fits the capacity; a smaller peak was not asked for")
    return Verdict(Grade.OPEN, f"{_describe_gap(peak, bound)}; a smaller peak is not ruled out")


def _describe_gap(peak: int, bound: int) -> str:
    if 0 < 2 * bound <= peak:
        return f"{peak / bound:.1f} times the lower bound"
    gap = f"{human(peak - bound)} above the lower bound"
    share = percent(peak - bound, bound)
    return gap if share in ("-", "0.0 %") else f"{gap} ({share})"


def verdict_of(problem: Problem, plan: Plan, peak: int) -> Verdict:
    """Check one plan and return the verdict on it; `peak` is computed from its offsets."""
    try:
        verify(problem.with_capacity(None), plan)
        valid = True
    except PlanError:
        valid = False
    bound = max(problem.max_load, plan.lower_bound)
    fit = plan.status is Status.FITS
    return find_verdict(peak, bound, problem.capacity, valid=valid, fit=fit)
