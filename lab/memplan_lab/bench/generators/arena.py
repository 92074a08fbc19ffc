"""Plans made before their problems: buffers are placed, then the holes of one moment filled.

  address                              address
    |   +----+      +--+                 |   +----+------+--+
    |   | b  |  +---+  |                 |   | b  +--+---+  |   The holes of the moment |
    |   +----+  | c |d |      ->         |   +----+xx| c |d |   with the largest load get
    | +---+     +---+  |                 | +---+xxxxx+---+  |   buffers (x): all of the
    | | a |         +--+                 | | a |xxxxxxxx+---+   arena is in use then.
    +-+---+----|-------- time            +-+---+----|-------- time

The load of that moment is the peak of the plan, so the plan is optimal. Constraints that are made
from this plan (pins, reserved ranges, gaps) keep the optimum.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.loads import Loads
from memplan_lab.bench.generators.packing import Columns

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Arena:
    """Buffers with their offsets; at some moments all of the memory is in use."""

    # start, end, size, alignment, offset: `int64` columns of shape `(n,)`.
    start: Columns
    end: Columns
    size: Columns
    alignment: Columns
    offset: Columns
    full: int  # the moment, or the one of them at which the load was largest before

    @classmethod
    def of(cls, table: Columns, full: int) -> Arena:
        """Return the arena that has such a table."""
        start, end, size, alignment, offset = table.T.copy()
        return cls(start, end, size, alignment, offset, full)

    @property
    def peak(self) -> int:
        """The peak of the plan, and the optimum: no plan has less room for the full moment."""
        return int((self.offset + self.size).max())

    def table(self) -> Columns:
        """Return the columns side by side, shape (n, 5)."""
        return np.stack([self.start, self.end, self.size, self.alignment, self.offset], axis=1)

    @property
    def is_live(self) -> npt.NDArray[np.bool_]:
        """Whether each buffer is live at the full moment."""
        return (self.start <= self.full) & (self.full < self.end)


def fill_arena(
    rng: np.random.Generator,
    n: int,
    start: Columns,
    end: Columns,
    size: Columns,
    *,
    alignment: Columns | None = None,
    offset: Columns | None = None,
    reserved: Sequence[Range] = (),
    moments: int = 1,
) -> Arena:
    """Fill the holes of the busiest moments of a plan."""
    alignment = np.ones_like(size) if alignment is None else alignment
    if offset is None:
        offset = _place(start, end, size, alignment, reserved)
    top = int((offset + size).max())
    table = np.stack([start, end, size, alignment, offset], axis=1)
    busiest = _busiest_moments(start, end, size, max(1, min(moments, n // 250)))
    for moment in busiest:
        table = np.concatenate([table, _fillers(table, moment, top, reserved)])
    is_live = np.zeros(len(table), dtype=np.bool_)
    for moment in busiest:
        is_live |= (table[:, 0] <= moment) & (moment < table[:, 1])
    kept = n - int(is_live.sum())
    others = np.flatnonzero(~is_live)
    if not 0 <= kept <= len(others):
        raise ValueError(f"{n} buffers are too few to fill {len(busiest)} moments")
    rows = np.concatenate([np.flatnonzero(is_live), rng.permutation(others)[:kept]])
    return Arena.of(table[rng.permutation(rows)], busiest[0])


def _busiest_moments(start: Columns, end: Columns, size: Columns, count: int) -> list[int]:
    """Return the moment with the largest load in each of `count` stretches of time."""
    loads = Loads(Problem.from_arrays(start, end, size))
    parts = np.array_split(np.arange(len(loads)), min(count, len(loads)))
    best = [int(part[loads.load[part].argmax()]) for part in parts]
    best.sort(key=lambda section: -int(loads.load[section]))
    return [int(loads.start[section]) for section in best]


def _fillers(table: Columns, moment: int, top: int, reserved: Sequence[Range]) -> Columns:
    """Return rows that fill the holes of a moment, each with the longest lifetime it can have."""
    start, end, size, _, offset = table.T
    live = (start <= moment) & (moment < end)
    taken = [(int(a), int(a + s)) for a, s in zip(offset[live], size[live], strict=True)]
    rows = [
        (*_widest_lifetime(moment, (lower, upper), table), upper - lower, 1, lower)
        for lower, upper in _holes([*taken, *reserved], top)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


def _place(
    start: Columns, end: Columns, size: Columns, alignment: Columns, reserved: Sequence[Range]
) -> Columns:
    """Return the offsets of first fit in order of start."""
    offset = np.zeros_like(size)
    taken = sorted(reserved)
    ends: list[tuple[int, Range]] = []
    order = np.argsort(start, kind="stable")
    columns = (column[order].tolist() for column in (start, end, size, alignment))
    for row, begin, until, bytes, unit in zip(order.tolist(), *columns, strict=True):
        while ends and ends[0][0] <= begin:
            taken.remove(heappop(ends)[1])
        at = 0
        for lower, upper in taken:
            if at + bytes <= lower:
                break
            at = -(-upper // unit) * unit
        insort(taken, (at, at + bytes))
        heappush(ends, (until, (at, at + bytes)))
        offset[row] = at
    return offset


def _holes(taken: list[Range], top: int) -> list[Range]:
    """Return the ranges of `[0, top)` between those that are taken."""
    holes: list[Range] = []
    at = 0
    for lower, upper in [*sorted(taken), (top, top)]:
        if at < lower:
            holes.append((at, lower))
        at = upper
    return holes


def _widest_lifetime(moment: int, hole: Range, table: Columns) -> Range:
    """Return the longest lifetime around a moment for which nothing else is in the hole."""
    start, end, size, _, offset = table.T
    meets = (offset < hole[1]) & (hole[0] < offset + size)
    before, after = end[meets & (end <= moment)], start[meets & (start > moment)]
    first, last = int(start.min()), int(end.max())
    return int(before.max(initial=first)), int(after.min(initial=last))
