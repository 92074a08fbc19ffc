"""The interference graph: its nodes are buffers, its edges are pairs that may not overlap.

    time  0     3     6     9
    a     +-----+                   Edges are a - b and b - c. There is an edge between a and c
    b        +--------+             only if the problem lists them as a conflict. Inside a gap
    c              +--------+       without a window, a buffer holds nothing and has no edges.

A plan gives each node a range of addresses of its size; the ranges of neighbours are disjoint. The
members of a group have no edges for that reason: their order keeps them disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError
from memplan.problem.columns import Column
from memplan.problem.problem import Problem
from memplan.problem.spans import Spans, spans

__all__ = ["Cause", "Edges", "find_edges"]

_CHUNK = 1 << 21  # pairs of spans that are examined together


class Cause(IntEnum):
    """Why two buffers may not share addresses; if there are several causes, the first counts."""

    LIFETIME = 0  # at some time both hold all of their bytes
    CONFLICT = 1  # the problem lists the pair
    WINDOW = 2  # whenever both hold bytes, one has a window; only what they hold must be disjoint


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of an interference graph, each once, sorted; all columns have shape (m,)."""

    first: Column  # rows of the problem; `first < second`
    second: Column
    cause: Column  # a `Cause` for each edge

    def __len__(self) -> int:
        return len(self.first)


def find_edges(problem: Problem, most: int) -> Edges:
    """Return all pairs of buffers that may not share addresses, as `memplan.verify` checks them.

    Without gaps the edges are counted before they are made, in O(s log s) for s spans. With gaps,
    two buffers may meet several times, so each meeting is examined. More edges than `most` are
    refused.
    """
    held = spans(problem)
    order = np.argsort(held.start, kind="stable")
    held = Spans(*(getattr(held, name)[order] for name in Spans.__slots__))
    # Span k meets those spans which start after it in this order and before it ends.
    behind = np.searchsorted(held.start, held.end) - np.arange(len(order)) - 1
    meetings = int(behind.sum())
    listed = problem.conflicts.pairs()
    listed = listed[(problem.size[listed] > 0).all(axis=1)]
    if not problem.has_gaps:
        apart = int((~_meet(problem, listed)).sum())
        if meetings + apart > most:
            raise _too_many(f"{meetings + apart:,}", most)
    keys = _encode(problem, listed, int(Cause.CONFLICT))
    total = np.cumsum(behind)
    begin = 0
    while begin < len(behind):
        counted = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, counted + _CHUNK, side="right")))
        keys = _merge(keys, _find_meetings(problem, held, behind, begin, end))
        begin = end
        if len(keys) > most:
            raise _too_many(f"between {len(keys):,} and {meetings + len(listed):,}", most)
    pairs, causes = np.divmod(keys, len(Cause))
    first, second = np.divmod(pairs, max(1, len(problem)))
    return Edges(first, second, causes)


def _meet(problem: Problem, pairs: Column) -> npt.NDArray[np.bool_]:
    start, end = problem.start[pairs], problem.end[pairs]
    meet: npt.NDArray[np.bool_] = start.max(axis=1) < end.min(axis=1)
    return meet


def _find_meetings(problem: Problem, held: Spans, behind: Column, begin: int, end: int) -> Column:
    """Return the keys of the pairs in which one of the spans `begin` ... `end - 1` comes first."""
    counts = behind[begin:end]
    one = np.repeat(np.arange(begin, end), counts)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts)
    whole = held.upper - held.lower == problem.size[held.buffer]
    causes = np.where(whole[one] & whole[other], Cause.LIFETIME, Cause.WINDOW)
    return _encode(problem, np.stack([held.buffer[one], held.buffer[other]], axis=1), causes)


def _encode(problem: Problem, pairs: Column, cause: Column | int) -> Column:
    """Return a number for each pair and cause; its order is that of the edges."""
    keys: Column = (pairs.min(axis=1) * len(problem) + pairs.max(axis=1)) * len(Cause) + cause
    return keys


def _merge(keys: Column, others: Column) -> Column:
    """Return the keys of both, sorted, and for each pair only the key with the first cause."""
    both = np.unique(np.concatenate([keys, others]))
    first: Column = both[np.diff(both // len(Cause), prepend=-1) != 0]
    return first


def _too_many(count: str, most: int) -> MemplanError:
    return MemplanError(
        f"the interference graph would have {count} edges; at most {most:,} are supported, so "
        "choose fewer buffers"
    )
