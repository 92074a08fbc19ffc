"""The heights that every picture of a plan marks: capacity, peak and lower bound."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.plan import Plan
from memplan.view.units import human

__all__ = ["Level", "find_levels", "find_top"]

# A capacity above so many times what is used is not drawn: it would flatten the picture below it.
_TALLEST = 2


@dataclass(frozen=True, slots=True)
class Level:
    """A height, and all that it is."""

    names: tuple[str, ...]  # of "capacity", "peak" and "lower bound", in this order
    bytes: int  # from address 0

    def __str__(self) -> str:
        return f"{' = '.join(self.names)} {human(self.bytes)}"


def find_levels(
    problem: Problem, plan: Plan | None = None, offset: Column | None = None
) -> list[Level]:
    """Return the levels of a problem, or of its plan, from the highest down.

    The capacity of the problem counts before the plan's, and the peak is computed from offsets,
    shape (n,), whatever the plan claims. A plan's lower bound may be better than the greatest load.
    """
    capacity, bound = problem.capacity, problem.max_load
    if plan is not None:
        capacity = plan.capacity if capacity is None else capacity
        bound = max(bound, plan.lower_bound)
    peak = None if offset is None else int((offset + problem.size).max(initial=0))
    named = {"capacity": capacity, "peak": peak, "lower bound": bound}
    heights = sorted({height for height in named.values() if height is not None}, reverse=True)
    return [
        Level(tuple(name for name, height in named.items() if height == each), each)
        for each in heights
    ]


def find_top(marked: list[Level]) -> int:
    """Return where a picture ends: at the capacity, unless that is far above all that is used."""
    used = max((level.bytes for level in marked if level.names != ("capacity",)), default=0)
    shown = (level.bytes for level in marked if level.bytes <= _TALLEST * used)
    return max(1, *shown, used)
