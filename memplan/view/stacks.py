"""Which buffer lies right above which, and when: holes and supports are both read from it.

address
    +---+  +--+          above  below   while
    | c |  | b|          a      ground  [0, 9)
  +-+---+--+--+-+        c      a       [1, 4)
  |      a      |        b      a       [6, 8)
  +-------------+
  0 1   4  6  8 9
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import NONE, Column
from memplan.problem.spans import LiveRanks, Spans

__all__ = ["Stacks", "find_stacks"]


@dataclass(frozen=True, slots=True)
class Stacks:
    """While `start <= t < end`, nothing is held between the spans `below` and `above`.

    All columns have shape (k,), k <= 3 s; `below` is -1 for the ground, address 0. Each pair is
    listed once for every stretch of time that it lasts.
    """

    below: Column
    above: Column
    start: Column
    end: Column

    def keep(self, wanted: npt.NDArray[np.bool_]) -> Stacks:
        """Return the pairs where `wanted` (shape (k,)) is true."""
        return Stacks(self.below[wanted], self.above[wanted], self.start[wanted], self.end[wanted])


def find_stacks(held: Spans, offset: Column) -> Stacks:
    """Sweep over time, and keep what is held in the order of addresses.

    O(s log s) and some root of s for the list, as `memplan.problem.spans.first_overlap`. The plan
    is valid, and every buffer that has a span an offset.
    """
    by_address = np.argsort(held.lower + offset[held.buffer], kind="stable")
    rank = np.empty_like(by_address)
    rank[by_address] = np.arange(len(rank))
    by_start, by_end = (np.argsort(key, kind="stable") for key in (held.start, held.end))
    leaving = zip(held.end[by_end].tolist(), rank[by_end].tolist(), strict=True)
    live = _Live(len(rank))
    leaves, leaver = next(leaving, (0, 0))
    for time, rising in zip(held.start[by_start].tolist(), rank[by_start].tolist(), strict=True):
        while leaves <= time:
            live.remove(leaver, leaves)
            leaves, leaver = next(leaving)
        live.add(rising, time)
    while live.count:
        live.remove(leaver, leaves)
        leaves, leaver = next(leaving, (0, 0))
    below, above, start, end = np.array(live.found, dtype=np.int64).reshape(-1, 4).T
    span = np.append(by_address, NONE)  # the rank of the ground is -1, which reads the last place
    return Stacks(span[below], span[above], start, end)


class _Live:
    """The spans held now, each linked to its neighbours by address; `found` has ended links."""

    def __init__(self, count: int) -> None:
        self.count = 0
        self.found: list[tuple[int, int, int, int]] = []  # below, above, start, end
        self._ranks = LiveRanks(count)
        # `above` has one place more, because the rank of the ground, -1, is its last place.
        self._below, self._above = [NONE] * count, [NONE] * (count + 1)
        self._since = [0] * count

    def add(self, rank: int, time: int) -> None:
        below, above = self._ranks.add(rank)
        self.count += 1
        self._since[rank] = time
        self._below[rank] = NONE if below is None else below
        self._above[rank] = NONE
        self._above[self._below[rank]] = rank
        if above is not None:
            self._link(rank, above, time)

    def remove(self, rank: int, time: int) -> None:
        self._ranks.remove(rank)
        self.count -= 1
        self._close(rank, time)
        below, above = self._below[rank], self._above[rank]
        self._above[below] = above
        if above != NONE:
            self._link(below, above, time)

    def _link(self, below: int, above: int, time: int) -> None:
        self._close(above, time)
        self._below[above], self._since[above] = below, time
        self._above[below] = above

    def _close(self, rank: int, time: int) -> None:
        if self._since[rank] < time:
            self.found.append((self._below[rank], rank, self._since[rank], time))
