"""Memory that a plan leaves unused below the skyline: the holes of its picture.

    address
      9 +  +------+           `c` lies above a hole of 3 bytes while `a` is alive, and of 7 after
        |  |  c   |           that. What is above the highest address in use at a time is no hole:
      7 +--+------+           the plan keeps it free for other uses.
        |  :  3   :
      4 +---------+::+
        |    a    | 7|
      0 +---------+--+

The skyline is the highest address in use, over time. A reserved range is no hole, because the plan
cannot use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from memplan.problem import Problem, Reserved
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.plan import Plan
from memplan.problem.spans import spans
from memplan.view.picture import offsets
from memplan.view.stacks import find_stacks

__all__ = ["Waste", "find_waste"]


@dataclass(frozen=True, slots=True)
class Waste:
    """The holes of a plan: no buffer holds `[lower, upper)` while `start <= t < end`."""

    start: Column  # shape (h,); holes do not overlap
    end: Column
    lower: Column
    upper: Column
    # Of all address x time below the highest address in use at each time, without what is reserved:
    # the part that is hole, 0.0 where nothing is held.
    share: float

    def __len__(self) -> int:
        return len(self.start)


def find_waste(problem: Problem, plan: Plan) -> Waste:
    """Find the holes of a valid plan: O(s log s) in spans (`memplan.problem.spans`)."""
    held, offset = spans(problem), offsets(problem, plan)
    pairs = find_stacks(held, offset)
    base = offset[held.buffer]
    bottom, top = base + held.lower, np.append(base + held.upper, 0)  # -1 is the ground
    used = float(((held.upper - held.lower) * (held.end - held.start).astype(np.float64)).sum())
    start, end, lower, upper = _subtract_reserved(
        problem.reserved, pairs.start, pairs.end, top[pairs.below], bottom[pairs.above]
    )
    unused = float(((upper - lower) * (end - start).astype(np.float64)).sum())
    return Waste(start, end, lower, upper, unused / (used + unused) if unused else 0.0)


def _subtract_reserved(
    reserved: Iterable[Reserved], start: Column, end: Column, lower: Column, upper: Column
) -> tuple[Column, Column, Column, Column]:
    """Return what of these rectangles is not reserved, without those that are empty."""
    # The free addresses are between the end of one reserved range and the start of the next.
    blocks = list(reserved)  # sorted and disjoint
    opens = np.array([0, *(block.upper for block in blocks)], dtype=np.int64)
    closes = np.array([*(block.lower for block in blocks), 2 * MAX_BYTES - 1], dtype=np.int64)
    first = np.searchsorted(closes, lower, side="right")
    count = np.maximum(np.searchsorted(opens, upper, side="left") - first, 0)
    count[lower >= upper] = 0
    owner = np.repeat(np.arange(len(count)), count)
    free = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    clipped = np.maximum(lower[owner], opens[free]), np.minimum(upper[owner], closes[free])
    kept = clipped[0] < clipped[1]
    return start[owner][kept], end[owner][kept], clipped[0][kept], clipped[1][kept]
