"""Finds pairs of buffers that are enough to check: if these are disjoint, all buffers are."""

from __future__ import annotations

import itertools
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from memplan.problem import Problem
from memplan.problem.spans import spans

__all__ = ["Below", "find_neighbours"]


class Below(NamedTuple):
    """`below` must end, at its own byte `upper`, before `above` begins, at its own byte `lower`."""

    below: int
    upper: int
    above: int
    lower: int


def find_neighbours(problem: Problem, offsets: Sequence[int]) -> Iterator[Below]:
    """Yield every pair that is adjacent in address at some time, once; the plan is legal.

    If all pairs hold, the live buffers of every time form a chain, each below the next one, and no
    two of them share a byte. There are at most three pairs for each span.
    """
    held = spans(problem)
    rows, lowers, uppers = held.buffer.tolist(), held.lower.tolist(), held.upper.tolist()
    times = np.concatenate([held.end, held.start])
    live: list[tuple[int, int]] = []  # (address, span), from the lowest up
    seen: set[Below] = set()
    # At one time, spans that end come before spans that begin, as these may have their places.
    for event in np.argsort(times, kind="stable").tolist():
        ends, span = event < len(rows), event % len(rows)
        key = (offsets[rows[span]] + lowers[span], span)
        if ends:
            live.pop(bisect_left(live, key))
        else:
            insort(live, key)
        at = bisect_left(live, key)
        # A span that ends makes its two neighbours adjacent; one that starts gets two neighbours.
        chain = [span for _, span in live[max(0, at - 1) : at + (1 if ends else 2)]]
        for low, high in itertools.pairwise(chain):
            pair = Below(rows[low], uppers[low], rows[high], lowers[high])
            if pair not in seen:
                seen.add(pair)
                yield pair
