"""How high each block may be: as the limit says, or as high as the largest item in it.

An item is a buffer, or a group. No block within the limit has room for one that is larger, so hosts
such as ggml and IREE give it a block of its size. It fills that block, which begins and ends with
it; others lie there only while it does not hold all of its bytes.

If any two of these items hold all of their bytes at some time, each fills a block of its own in
every plan. Otherwise one may lie in the block of another, and only the largest of all is known to
fill one. What is proved then is proved of blocks that may be as high as the largest items, which no
plan exceeds; a plan of such blocks counts only if each is allowed to be as high as it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.interference import Cause, find_edges

__all__ = ["Caps"]

_MOST_EDGES: Final = 1 << 20  # of items above the limit


class Caps:
    """The heights that the blocks of a problem may have."""

    def __init__(self, problem: Problem, limit: int) -> None:
        self._problem, self._limit = problem, limit
        single = np.flatnonzero(problem.group == NONE)
        # The rows of each group, and each row that is in none.
        self.items: list[Column] = [*single[:, None], *map(np.array, problem.groups)]
        extent = np.array([self._measure(rows) for rows in self.items], np.int64)
        falling = np.argsort(-extent, kind="stable")
        large = falling[extent[falling] > limit]
        self._extents: list[int] = extent[large].tolist()
        self.highest = max([limit, *self._extents[:1]])  # the most bytes that any block may have
        self._of_row = np.zeros(len(problem), np.int64)
        for number, rows in enumerate(self.items):
            self._of_row[rows] = extent[number]
        self.rest = np.flatnonzero(self._of_row <= limit)  # the rows of all others
        # The items above the limit, the largest first.
        self.large = [self.items[at] for at in large]
        # Whether each item above the limit fills a block of its own in every plan.
        # Items above the limit by the one that fills their block, which is the first of them. They
        # are chosen by first fit, the largest first.
        self.homes, self.are_certain = self._choose_homes(self.large)

    def _measure(self, rows: Column) -> int:
        lead = self._problem.lead[rows]
        return int((lead + self._problem.size[rows]).max() - lead.min())

    def _choose_homes(self, large: list[Column]) -> tuple[list[list[Column]], bool]:
        """Return the homes of items above the limit, and whether no others are possible."""
        alone = [[item] for item in large]
        if len(large) < 2:
            return alone, True
        if any(len(item) > 1 for item in large):
            return alone, False
        try:
            edges = find_edges(self._problem.subset(np.concatenate(large)), _MOST_EDGES)
        except MemplanError:  # too many to look at
            return alone, False
        meets: list[set[int]] = [set() for _ in large]
        for one, other in zip(edges.first.tolist(), edges.second.tolist(), strict=True):
            meets[one].add(other)
            meets[other].add(one)
        found: list[list[int]] = []
        for item in range(len(large)):
            home = next((each for each in found if meets[item].isdisjoint(each)), None)
            if home is None:
                found.append([item])
            else:
                home.append(item)
        pairs = len(large) * (len(large) - 1) // 2
        certain = int((edges.cause != Cause.WINDOW).sum()) == pairs
        return [[large[item] for item in home] for home in found], certain

    @property
    def filled(self) -> list[int]:
        """The heights of the blocks that are filled in every plan, falling."""
        return self._extents if self.are_certain else self._extents[:1]

    def list_caps(self, count: int) -> list[int]:
        """Return the most bytes that the highest, the next, ... of so many blocks may have."""
        return [*self._extents[:count], *[self._limit] * (count - len(self._extents))]

    def find_most(self, rows: Column) -> int:
        """Return the most bytes that a block with these buffers may have."""
        return max(self._limit, int(self._of_row[rows].max(initial=0)))

    def count_least(self, load: int) -> int:
        """Return the least number of blocks that may have so many bytes."""
        caps = np.cumsum([0, *self._extents])
        within = int(np.searchsorted(caps, load))
        if within < len(caps):
            return within
        return len(self._extents) + -(-(load - int(caps[-1])) // self._limit)
