"""Lower bounds on the number of blocks, and on their bytes.

At each moment the live buffers are a bin packing: each lies in one block, and those in a block have
at most its bytes. The bound of Martello and Toth (1990, L2) counts those above `limit - small`,
which have a block each and leave no room for any of the size `small`, and what else is at least
`small`. If sizes do not add up to the limit, the greatest sum below it takes its place.

On bytes: of buffers that are live at one moment and of which any two exceed the limit, each has a
block of its own; so the k-th highest block is at least as high as the k-th of them, at each moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final, NamedTuple

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.spans import spans

__all__ = ["Moment", "count_blocks", "far_apart", "list_moments", "list_owners", "sum_profile"]

_MOST_MOMENTS: Final = 4096  # of the greatest loads; fewer moments give a weaker bound
_SUBSETS: Final = 16  # moments whose sums of sizes are listed
_MOST_SUMS: Final = 1 << 21  # bits of such a list


class Moment(NamedTuple):
    """What is live at a time that no other includes."""

    time: int
    sizes: Column  # the bytes of each live buffer, or of what is live of a group; falling
    load: int  # their sum


def list_owners(problem: Problem) -> Column:
    """Return the item that each buffer is of: those of a group are one item, which has a number."""
    single = problem.group == NONE
    owner = np.where(single, np.arange(len(problem)), len(problem) + problem.group)
    numbered: Column = np.unique(owner, return_inverse=True)[1]
    return numbered


def list_moments(problem: Problem) -> list[Moment]:
    """Return the moments at which most is live, the greatest load first."""
    held = spans(problem)
    if not len(held.buffer):
        return []
    owner = list_owners(problem)[held.buffer]
    size = held.upper - held.lower
    starts, ends = np.unique(held.start), np.unique(held.end)
    # A start before another start is no moment of its own: what is live there is live later too.
    last = np.searchsorted(ends, starts, side="right")
    times = starts[np.append(last[1:] != last[:-1], True)]
    deltas = np.zeros(len(times) + 1, np.int64)
    since, until = (np.searchsorted(times, each) for each in (held.start, held.end))
    np.add.at(deltas, since, size)
    np.subtract.at(deltas, until, size)
    loads = np.cumsum(deltas)[:-1]
    found = []
    for at in np.argsort(-loads, kind="stable")[:_MOST_MOMENTS]:
        live = (since <= at) & (at < until)
        sizes = np.zeros(int(owner.max()) + 1, np.int64)
        np.add.at(sizes, owner[live], size[live])
        sizes = np.sort(sizes[sizes > 0])[::-1]
        found.append(Moment(int(times[at]), sizes, int(loads[at])))
    return found


def count_blocks(moments: list[Moment], limit: int) -> int:
    """Return a lower bound on the number of blocks."""
    best = 0
    for rank, moment in enumerate(moments):
        if 2 * moment.load // limit + 1 <= best:
            break  # first fit in falling order needs no more than that
        best = max(best, _pack(moment.sizes, limit))
        if rank < _SUBSETS and moment.load > limit:
            best = max(best, _pack(moment.sizes, _greatest_sum(moment.sizes, limit)))
    return best


def _pack(sizes: Column, limit: int) -> int:
    """Return the bound L2 of sizes, which fall, in bins of `limit` bytes."""
    sums = np.concatenate([[0], np.cumsum(sizes)])
    rising = sizes[::-1]

    def above(bytes: Column) -> Column:
        count: Column = len(sizes) - np.searchsorted(rising, bytes, side="right")
        return count

    small = np.unique(np.append(sizes[2 * sizes <= limit], 0))
    large = above(limit - small)  # each alone, beside none of size `small`
    half = above(np.array([limit // 2]))[0]  # each in a bin of its own
    least = len(sizes) - np.searchsorted(rising, small, side="left")
    free = (half - large) * limit - (sums[half] - sums[large])
    rest = np.maximum(0, sums[np.maximum(least, half)] - sums[half] - free)
    return int((half + -(-rest // limit)).max())


def _greatest_sum(sizes: Column, limit: int) -> int:
    """Return the greatest sum of some of the sizes that is at most the limit."""
    unit = gcd(*(int(each) for each in sizes))
    room = limit // unit
    if room > _MOST_SUMS:
        return limit
    mask, sums = (1 << (room + 1)) - 1, 1
    for each in sizes:
        sums |= (sums << (int(each) // unit)) & mask
    return (sums.bit_length() - 1) * unit


def sum_profile(moments: list[Moment], limit: int) -> int:
    """Return a lower bound on the bytes of all blocks."""
    profile: list[int] = []
    for moment in moments:
        for rank, size in enumerate(far_apart(moment.sizes, limit)):
            if rank == len(profile):
                profile.append(0)
            profile[rank] = max(profile[rank], size)
    return sum(profile)


def far_apart(sizes: Column, limit: int) -> Iterator[int]:
    """Yield the greatest sizes, as long as any two of them exceed the limit."""
    before = limit
    for each in sizes.tolist():
        if each + before <= limit:
            return
        yield each
        before = each
