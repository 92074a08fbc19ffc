"""Plans made before their problems: buffers are placed, then the holes of one moment filled.

  address                              address
    |   +----+      +--+                 |   +----+------+--+
    |   | b  |  +---+  |                 |   | b  +--+---+  |   The holes of the moment |
    |   +----+  | c |d |      ->         |   +----+xx| c |d |   with the largest load get
    | +---+     +---+  |                 | +---+xxxxx+---+  |   buffers (x): all of the
    | | a |         +--+                 | | a |xxxxxxxx+---+   arena is in use then.
    +-+---+----|-------- time            +-+---+----|-------- time

The load of that moment is the peak of the plan, so the plan is optimal: whatever is cut out of it
(pins, reserved ranges, gaps) keeps an optimum that is known.
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
    """Buffers with their offsets, all of whose memory is in use at one moment.

    Attributes
    ----------
    start, end, size, alignment, offset
        `int64` columns of shape `(n,)`.
    full
        The moment.
    """

    start: Columns
    end: Columns
    size: Columns
    alignment: Columns
    offset: Columns
    full: int

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
) -> Arena:
    """Fill the holes of the busiest moment of a plan.

    Parameters
    ----------
    rng
        Draws which buffers go.
    n
        How many rows to return: as many go as fillers come, and none that is live at the moment.
    start, end, size, alignment
        At least `n` rows, in any order. No alignment: 1.
    offset
        The plan; none: that of first fit in order of start.
    reserved
        Disjoint ranges that no buffer may touch, below the load of the busiest moment.

    Raises
    ------
    ValueError
        If more than `n` buffers would be live at the busiest moment.
    """
    alignment = np.ones_like(size) if alignment is None else alignment
    if offset is None:
        offset = _place(start, end, size, alignment, reserved)
    loads = Loads(Problem.from_arrays(start, end, size))
    full = int(loads.start[int(loads.load.argmax())])
    live = (start <= full) & (full < end)
    taken = [(int(a), int(a + s)) for a, s in zip(offset[live], size[live], strict=True)]
    holes = _holes([*taken, *reserved], int((offset + size).max()))
    others = np.flatnonzero(~live)
    kept = n - len(holes) - int(live.sum())
    if not 0 <= kept <= len(others):
        raise ValueError(f"{n} buffers are too few to fill the busiest moment")
    rows = np.concatenate([np.flatnonzero(live), rng.permutation(others)[:kept]])
    lifetimes = [
        _widest_lifetime(full, hole, start[rows], end[rows], offset[rows], size[rows])
        for hole in holes
    ]
    fillers = np.array(
        [(*life, hi - lo, 1, lo) for life, (lo, hi) in zip(lifetimes, holes, strict=True)],
        dtype=np.int64,
    ).reshape(-1, 5)
    table = np.stack([start, end, size, alignment, offset], axis=1)[rows]
    return Arena.of(np.concatenate([table, fillers])[rng.permutation(n)], full)


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


def _widest_lifetime(
    full: int, hole: Range, start: Columns, end: Columns, offset: Columns, size: Columns
) -> Range:
    """Return the longest lifetime around `full` for which nothing else is in the hole."""
    meets = (offset < hole[1]) & (hole[0] < offset + size)
    before, after = end[meets & (end <= full)], start[meets & (start > full)]
    first, last = int(start.min()), int(end.max())
    return int(before.max(initial=first)), int(after.min(initial=last))
