"""Cuts lifetimes into spans (rectangles of time and address), and finds spans that overlap.

    address                    a buffer [0, 9) of 8 bytes with the gaps [3, 5) (nothing) and
      8 +-----+     +--+       [7, 9) (window [2, 6)) is three spans:
        |     |     |  +--+
        |     |     |  |  |      [0, 3) holds [0, 8)
        |     |     |  +--+      [5, 7) holds [0, 8)
      0 +-----+     +--+         [7, 9) holds [2, 6)
        0     3     5  7  9

The checks of a problem (`memplan.problem.checks`) and the referee (`memplan.verify`) both use
spans. No solver does, because the core has its own sweep.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memplan.problem.columns import MAX_BYTES, Column

if TYPE_CHECKING:
    from memplan.problem import Problem

_BUCKET = 10  # log2 of the span ranks that share a bucket in the sweep


@dataclass(frozen=True, slots=True)
class Spans:
    """While `start <= t < end`, `buffer` holds `[offset + lower, offset + upper)`.

    All columns have shape (s,); every span has a positive length and holds something.
    """

    buffer: Column
    start: Column
    end: Column
    lower: Column
    upper: Column

    def keep(self, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Spans:
        """Return the spans where `wanted` (shape (s,)) is true."""
        return Spans(
            self.buffer[wanted],
            self.start[wanted],
            self.end[wanted],
            self.lower[wanted],
            self.upper[wanted],
        )


class Overlap(NamedTuple):
    """Two buffers that hold `[lower, upper)` at the same `time`."""

    first: int
    second: int
    time: int
    lower: int
    upper: int


def spans(problem: Problem) -> Spans:
    """Cut lifetimes at gaps: O(n) in buffers and gaps, vectorised."""
    size, nothing = problem.size, np.zeros_like(problem.size)
    if not problem.has_gaps:
        rows = np.arange(len(problem), dtype=np.int64)
        return Spans(rows, problem.start, problem.end, nothing, size).keep(size > 0)

    owner, start, end = problem.gap_buffer, problem.gap_start, problem.gap_end
    first = np.diff(owner, prepend=-1) != 0  # the gaps of a buffer are neighbours
    last = np.append(first[1:], True)
    since = problem.start[owner]  # the end of the previous gap, or the start of the buffer
    since[~first] = end[:-1][~first[1:]]
    rest = owner[last]
    whole = np.setdiff1d(np.arange(len(problem), dtype=np.int64), rest, assume_unique=True)
    pieces = [
        (whole, problem.start[whole], problem.end[whole], nothing[whole], size[whole]),
        (owner, since, start, nothing[owner], size[owner]),
        (owner, start, end, problem.gap_lower, problem.gap_upper),
        (rest, end[last], problem.end[rest], nothing[rest], size[rest]),
    ]
    cut = Spans(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    return cut.keep((cut.start < cut.end) & (cut.lower < cut.upper))


def max_load(held: Spans) -> int:
    """Return the most bytes that are held at one time; exact for all sizes up to 2^62."""
    if not len(held.buffer):
        return 0
    size = held.upper - held.lower
    # Ends come first and the sort is stable, because a span that ends at some time makes room
    # for one that starts at the same time.
    order = np.argsort(np.concatenate([held.end, held.start]), kind="stable")
    if size.sum(dtype=np.float64) < MAX_BYTES / 2:
        return int(np.cumsum(np.concatenate([-size, size])[order]).max())
    # Sums of sizes near 2^62 do not fit in 64 bits, so the halves of the sizes are summed apart.
    high, low = size >> 31, size & (2**31 - 1)
    low_sum = np.cumsum(np.concatenate([-low, low])[order])
    high_sum = np.cumsum(np.concatenate([-high, high])[order]) + (low_sum >> 31)
    most = high_sum.max()
    return (int(most) << 31) + int((low_sum & (2**31 - 1))[high_sum == most].max())


def reserved_hit(problem: Problem, offset: Column) -> Column:
    """Return for every buffer the index of the reserved range that it touches, or -1.

    A reserved range keeps out the whole buffer, even during its gaps. A buffer of size 0 touches
    no range.
    """
    lower = np.array([block.lower for block in problem.reserved], dtype=np.int64)
    upper = np.array([block.upper for block in problem.reserved], dtype=np.int64)
    block = np.searchsorted(upper, offset, side="right")  # the first that ends above the offset
    hit = (block < len(upper)) & (problem.size > 0)
    hit[hit] = lower[block[hit]] < (offset + problem.size)[hit]
    return np.where(hit, block, -1)


def first_overlap(held: Spans, offset: Column) -> Overlap | None:
    """Find the earliest time at which two buffers hold a common address.

    This is a sweep over time. The live spans are disjoint until the first overlap, so it is enough
    to compare a span that starts with its neighbours by address. The time is O(s log s), plus that
    of inserting into `LiveRanks`. Offsets have shape (n,), one for each buffer that has a span.
    """
    base = offset[held.buffer]
    lower, upper = held.lower + base, held.upper + base
    by_lower, by_start, by_end = (
        np.argsort(key, kind="stable") for key in (lower, held.start, held.end)
    )
    rank = np.empty_like(by_lower)
    rank[by_lower] = np.arange(len(rank))
    begins, ends = lower[by_lower].tolist(), upper[by_lower].tolist()
    leaving = zip(held.end[by_end].tolist(), rank[by_end].tolist(), strict=True)
    leaves, leaver = next(leaving, (0, 0))
    live = LiveRanks(len(rank))
    for time, rising in zip(held.start[by_start].tolist(), rank[by_start].tolist(), strict=True):
        while leaves <= time:
            live.remove(leaver)
            leaves, leaver = next(leaving)
        below, above = live.add(rising)
        if below is not None and ends[below] > begins[rising]:
            other = below
        elif above is not None and begins[above] < ends[rising]:
            other = above
        else:
            continue
        pair = sorted(held.buffer[by_lower[[rising, other]]].tolist())
        common = max(begins[rising], begins[other]), min(ends[rising], ends[other])
        return Overlap(pair[0], pair[1], time, *common)
    return None


class Shared(NamedTuple):
    """Two buffers that conflict explicitly and both hold `[lower, upper)`."""

    first: int
    second: int
    lower: int
    upper: int


def first_shared(problem: Problem, offset: Column, among: Column | None = None) -> Shared | None:
    """Find the first explicit conflict, in the order of the rows, whose buffers share an address.

    Parameters
    ----------
    offset
        Shape (n,).
    among
        Only conflicts between these rows are examined; `None` for all.
    """
    pairs = problem.conflicts.pairs()
    if among is not None:
        pairs = pairs[np.isin(pairs, among).all(axis=1)]
    first, second = pairs[:, 0], pairs[:, 1]
    upper = offset + problem.size
    lower = np.maximum(offset[first], offset[second])
    higher = np.minimum(upper[first], upper[second])
    held = (problem.size[first] > 0) & (problem.size[second] > 0)
    hits = np.flatnonzero(held & (lower < higher))
    if not len(hits):
        return None
    hit = hits[0]
    return Shared(int(first[hit]), int(second[hit]), int(lower[hit]), int(higher[hit]))


class LiveRanks:
    """A sorted set of numbers in 0 .. count - 1, in buckets, so that inserting moves few items."""

    def __init__(self, count: int) -> None:
        self._buckets: list[list[int]] = [[] for _ in range((count >> _BUCKET) + 1)]
        self._used: list[int] = []  # the buckets that are not empty, sorted

    def add(self, rank: int) -> tuple[int | None, int | None]:
        """Insert `rank`; return its neighbours below and above."""
        number = rank >> _BUCKET
        bucket, used = self._buckets[number], self._used
        at = bisect_left(bucket, rank)
        below = bucket[at - 1] if at else None
        above = bucket[at] if at < len(bucket) else None
        if below is None or above is None:
            near = bisect_left(used, number)
            if below is None and near:
                below = self._buckets[used[near - 1]][-1]
            near += bool(bucket)
            if above is None and near < len(used):
                above = self._buckets[used[near]][0]
            if not bucket:
                used.insert(near, number)
        bucket.insert(at, rank)
        return below, above

    def remove(self, rank: int) -> None:
        """Remove `rank`, which must be in the set."""
        number = rank >> _BUCKET
        bucket = self._buckets[number]
        del bucket[bisect_left(bucket, rank)]
        if not bucket:
            del self._used[bisect_left(self._used, number)]
