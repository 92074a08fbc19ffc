"""Best fit with coalescing, as TensorFlow's BFC allocator serves a program (TelaMalloc, 3.1).

An allocator at run time gives out memory when the program requests it, in order of start time, and
does not know when the program will free it. Its memory is one region in chunks, free or in use:

    malloc(b):  takes the smallest free chunk that holds b, and of equal ones   [ a | b |  free  ]
                the lowest; splits off the rest if the chunk is large
    free(a):    joins a with the free chunks that touch it                      [free| b |  free ]

A chunk is split if it has twice the requested bytes, or 128 MiB more; otherwise the whole chunk is
in use. TensorFlow searches bins of sizes, from the bin of the request upwards and by size in a bin,
and so chooses the same chunk. It rounds sizes up to 256 bytes. Here they are rounded to the
alignment of all buffers, so that problems with alignments of 256 give the same result. The region
has no limit, because only the highest address in use counts.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import Final

import numpy as np

from memplan.problem.columns import MAX_BYTES
from memplan.solvers.run import Run

__all__ = ["solve"]

_MOST_LEFT: Final = 128 << 20  # bytes by which a chunk may be larger than the request


def solve(run: Run) -> None:
    """Go through time: free the buffers that end, then allocate those that start, as listed."""
    problem = run.problem
    unit = math.lcm(*problem.alignment.tolist())
    region = _Region(MAX_BYTES // unit * unit)
    size, end = problem.size.tolist(), problem.end.tolist()
    rows = np.flatnonzero(problem.size > 0)
    leaving = rows[np.argsort(problem.end[rows], kind="stable")].tolist()
    offsets, gone = [0] * len(problem), 0
    for row in np.argsort(problem.start, kind="stable").tolist():
        if not run.step():
            return
        if not size[row]:
            continue
        while end[leaving[gone]] <= problem.start[row]:
            region.free(offsets[leaving[gone]])
            gone += 1
        offset = region.malloc(-(-size[row] // unit) * unit)
        if offset is None:
            run.note = "beyond 2^62 bytes where sizes are rounded up to the alignment of all"
            return
        offsets[row] = offset
    run.offer(offsets, "best fit by start, with coalescing")


class _Region:
    """Chunks side by side; two free ones are never neighbours."""

    def __init__(self, size: int) -> None:
        self._free = [(size, 0)]  # (size, offset), sorted: the first that fits is the best
        self._free_from = {0: size}  # by offset
        self._free_to = {size: 0}  # by end
        self._used: dict[int, int] = {}

    def malloc(self, size: int) -> int | None:
        """Return the offset of a chunk; `None` if no free one is large enough."""
        at = bisect_left(self._free, (size, 0))
        if at == len(self._free):
            return None
        held, offset = self._free[at]
        self._take(held, offset)
        if held >= 2 * size or held - size >= _MOST_LEFT:
            self._give(held - size, offset + size)
            held = size
        self._used[offset] = held
        return offset

    def free(self, offset: int) -> None:
        """Take back the chunk at an offset."""
        size = self._used.pop(offset)
        below = self._free_to.get(offset)
        above = self._free_from.get(offset + size)
        if above is not None:
            self._take(above, offset + size)
            size += above
        if below is not None:
            self._take(offset - below, below)
            size, offset = size + offset - below, below
        self._give(size, offset)

    def _take(self, size: int, offset: int) -> None:
        del self._free[bisect_left(self._free, (size, offset))]
        del self._free_from[offset], self._free_to[offset + size]

    def _give(self, size: int, offset: int) -> None:
        if size:
            insort(self._free, (size, offset))
            self._free_from[offset] = size
            self._free_to[offset + size] = offset
