"""A plan on a grid of cells, one buffer in each, for screens which have no more than that.

address                          two rows, three columns: a cell shows the buffer which holds
  8 +-----+           row 1      most of it, and is empty only if none holds any of it
    |  b  |  +--+     row 0
  0 +-----+--+--+                  b . c
    |    a   |c |                  a a c
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import NONE, Column
from memplan.problem.spans import Spans

__all__ = ["choose_shades", "count_cells", "find_owners"]

Grid = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]

# A border is a ratio of large numbers, so that it may be off by so much of a cell.
_SLACK = 1e-9


def find_owners(held: Spans, offset: Column, top: int, columns: int, rows: int) -> Grid:
    """Return the buffer that holds most of every cell, or -1; shape (rows, columns), lowest first.

    `held` has at least one span, and nothing lies beyond `top`. O(columns * s) in spans,
    vectorised; plans in which buffers overlap take no longer.
    """
    grid = np.full((rows, columns), NONE, dtype=np.int64)
    first = held.start.min()
    # Unsigned differences, because a time axis of 2^63 does not fit otherwise.
    length = float(int(held.end.max()) - int(first))
    left, right = (
        (time - first).view(np.uint64) / length * columns for time in (held.start, held.end)
    )
    base = offset[held.buffer]
    lower, upper = ((base + edge) / top * rows for edge in (held.lower, held.upper))
    since, until = _find_touched(left, right, columns)
    bottom, above = _find_touched(lower, upper, rows)
    for column in range(columns):
        live = np.flatnonzero((since <= column) & (column < until))
        shared = np.minimum(right[live], column + 1) - np.maximum(left[live], column)
        count = above[live] - bottom[live]
        span = np.repeat(live, count)
        row = np.arange(len(span)) - np.repeat(np.cumsum(count) - count, count) + bottom[span]
        tall = np.minimum(upper[span], row + 1) - np.maximum(lower[span], row)
        area = np.repeat(shared, count).clip(_SLACK) * tall.clip(_SLACK)
        where, who = _find_largest(row, held.buffer[span], area)
        grid[where, column] = who
    return grid


def _find_touched(begin: _Floats, end: _Floats, cells: int) -> tuple[Column, Column]:
    """Return the half-open ranges of cells that spans touch; every span touches one."""
    first = np.floor(begin + _SLACK).astype(np.int64).clip(0, cells - 1)
    last = np.ceil(end - _SLACK).astype(np.int64).clip(first + 1, cells)
    return first, last


def _find_largest(row: Column, buffer: Column, area: _Floats) -> tuple[Column, Column]:
    """Return the rows that are not empty, and the buffer with the largest area in each."""
    # A buffer may have several spans in one cell, so that their areas are added.
    order = np.lexsort((buffer, row))
    row, buffer, area = row[order], buffer[order], area[order]
    begins = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(buffer, prepend=-1) != 0))
    if not len(begins):
        return row, buffer
    total = np.add.reduceat(area, begins)
    row, buffer = row[begins], buffer[begins]
    order = np.lexsort((buffer, -total, row))
    best = order[np.flatnonzero(np.diff(row[order], prepend=-1))]
    return row[best], buffer[best]


def count_cells(grid: Grid) -> list[tuple[int, int]]:
    """Return the buffers of a grid with the number of their cells, most first, ties by row."""
    seen, cells = np.unique(grid[grid != NONE], return_counts=True)
    order = np.argsort(-cells, kind="stable")
    return list(zip(seen[order].tolist(), cells[order].tolist(), strict=True))


def choose_shades(grid: Grid, among: int) -> dict[int, int]:
    """Give every buffer of a grid one of so many shades, such that neighbours differ.

    Greedy, the buffer with most cells first. Boxes make a map in the plane, so that a few shades
    do; where they do not, the buffer gets that of the fewest neighbours.
    """
    near: defaultdict[int, set[int]] = defaultdict(set)
    for one, other in ((grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1])):
        pairs = np.stack([one.ravel(), other.ravel()], axis=1)
        for a, b in np.unique(pairs[one.ravel() != other.ravel()], axis=0).tolist():
            near[a].add(b)
            near[b].add(a)
    shade: dict[int, int] = {}
    used: Counter[int] = Counter()
    for each, _ in count_cells(grid):
        taken = Counter(shade[other] for other in near[each] if other in shade)
        shade[each] = min(range(among), key=lambda at: (taken[at], used[at], at))
        used[shade[each]] += 1
    return shade
