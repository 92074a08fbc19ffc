"""Sorts operators by rank, each as soon as what it waits for is there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush

__all__ = ["sort_by_rank"]


def sort_by_rank(ranks: Sequence[int], awaited: Sequence[Collection[int]]) -> list[int]:
    """Return the places of operators in their new order: the least rank comes first, as it may.

    Of equal ranks, the first one does. `awaited` has by place the others that come before it; an
    operator that waits for itself is left out.
    """
    followers: list[list[int]] = [[] for _ in ranks]
    for at, others in enumerate(awaited):
        for other in others:
            followers[other].append(at)
    missing = [len(others) for others in awaited]
    ready = [(rank, at) for at, rank in enumerate(ranks) if not missing[at]]
    heapify(ready)
    order = []
    while ready:
        _, at = heappop(ready)
        order.append(at)
        for other in followers[at]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (ranks[other], other))
    return order
