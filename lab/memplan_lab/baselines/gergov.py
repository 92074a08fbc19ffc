"""Gergov's approximation (SODA 1999): at most three times the load.

The first step makes a *2-allocation*: an infeasible plan whose top is at most the load, in which no
three buffers overlap at one place. The second colours its conflicts by first fit, and moves every
colour above the one before it. Three colours are enough.

The 2-allocation comes from a skyline of pieces `(level, left, right)`. The lowest piece takes a
buffer that meets it and no other piece, and is cut at the buffer's ends:

    level + size          +--buffer--+
    level         +-------+          +----+         the piece, cut in three
                left                    right

A buffer may be longer than its piece. At times outside of its piece there is no piece, so this part
is not checked, and may overlap a buffer from the other side. A piece that suits no buffer is
dropped. The top is at most the load, because buffers that span all of a piece lie below it without
a hole. Three colours are enough: inside its piece a buffer overlaps no earlier buffer, and on each
side at most one, which holds the time of its start or end.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import MAX_BYTES
from memplan.solvers.run import Run

__all__ = ["solve"]

Ints = npt.NDArray[np.int64]

_EVER = (1 << 63) - 1  # later than all times


def solve(run: Run) -> None:
    """Make a 2-allocation, colour it, and move the colours apart."""
    problem = run.problem
    # All buffers get one alignment, so every level and the height of a colour is a multiple of it.
    unit = math.lcm(*problem.alignment.tolist())
    if problem.max_load + (unit - 1) * len(problem) > MAX_BYTES:
        run.note = "beyond 2^62 bytes where sizes are rounded up to the alignment of all"
        return
    size = -(-problem.size // unit) * unit
    # The paper leaves the order open; here it is the largest first, then the earliest.
    rows = np.lexsort((problem.start, -size))
    rows = rows[size[rows] > 0]
    found = _make_two_allocation(run, problem.start[rows], problem.end[rows], size[rows])
    if found is None:
        return
    level, order = found
    placed = rows[order]
    colour = _colour_buffers(run, placed, level[order], size[placed])
    if colour is None:
        return
    height = int((level[order] + size[placed]).max(initial=0))
    offsets = [0] * len(problem)
    for row, at, shade in zip(placed.tolist(), level[order].tolist(), colour, strict=True):
        offsets[row] = at + shade * height
    run.offer(offsets, f"{max(colour, default=-1) + 1} colours of {height} bytes")


def _make_two_allocation(run: Run, start: Ints, end: Ints, size: Ints) -> tuple[Ints, Ints] | None:
    """Return levels, and the order of placing; `None` if the budget ends."""
    level = np.zeros(len(size), dtype=np.int64)
    order: list[int] = []
    waiting = np.ones(len(size), dtype=np.bool_)
    skyline = _Skyline(int(start.min()), int(end.max())) if len(size) else _Skyline(0, 0)
    while len(order) < len(size):
        if not run.step():
            return None
        low, left, right = skyline.pop()
        since, until = skyline.room(left)
        takes = waiting & (start < right) & (end > left) & (start >= since) & (end <= until)
        chosen = int(takes.argmax())
        if not takes[chosen]:
            continue
        waiting[chosen] = False
        level[chosen] = low
        order.append(chosen)
        first, last = max(left, int(start[chosen])), min(right, int(end[chosen]))
        skyline.push(low, left, first)
        skyline.push(low + int(size[chosen]), first, last)
        skyline.push(low, last, right)
    return level, np.array(order, dtype=np.int64)


class _Skyline:
    """Pieces `(level, left, right)`, the lowest first; no two share a time."""

    def __init__(self, left: int, right: int) -> None:
        self._heap: list[tuple[int, int, int]] = []
        self._pieces: list[tuple[int, int]] = []  # (left, right), in the order of time
        self.push(0, left, right)

    def push(self, level: int, left: int, right: int) -> None:
        """Add a piece, unless it is empty."""
        if left < right:
            heapq.heappush(self._heap, (level, left, right))
            insort(self._pieces, (left, right))

    def pop(self) -> tuple[int, int, int]:
        """Remove and return the lowest piece; if there are several, the earliest of them."""
        level, left, right = heapq.heappop(self._heap)
        del self._pieces[bisect_left(self._pieces, (left, right))]
        return level, left, right

    def room(self, time: int) -> tuple[int, int]:
        """Return the stretch around a time that meets no piece."""
        after = bisect_left(self._pieces, (time, time))
        since = self._pieces[after - 1][1] if after else -_EVER
        until = self._pieces[after][0] if after < len(self._pieces) else _EVER
        return since, until


def _colour_buffers(run: Run, rows: Ints, level: Ints, size: Ints) -> list[int] | None:
    """Return for each buffer the least colour that no earlier overlapping buffer has."""
    start, end, top = run.problem.start[rows], run.problem.end[rows], level + size
    colour = np.zeros(len(rows), dtype=np.int64)
    for at in range(len(rows)):
        if run.out_of_time():
            return None
        before = slice(0, at)
        met = (start[before] < end[at]) & (end[before] > start[at])
        met &= (level[before] < top[at]) & (top[before] > level[at])
        taken = set(colour[before][met].tolist())
        colour[at] = next(shade for shade in range(at + 1) if shade not in taken)
    return colour.tolist()
