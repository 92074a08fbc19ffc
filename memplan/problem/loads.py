"""The load over time: how many bytes are held in each section, and by which buffers.

bytes
  |        +---+          sections   load
  |   +----+   |          [0, 3)        4
  |   |        +----+     [3, 9)        8    <- the peak of the load
  +---+-------------+     [9, 21)       4
  0   3    9       21
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memplan.problem import Problem, Reserved, spans
from memplan.problem.columns import Column

__all__ = ["Held", "Loads", "available", "capacity_for"]


@dataclass(frozen=True, slots=True)
class Held:
    """What one buffer holds at one time."""

    id: str
    bytes: int  # its size, or the size of its window inside a gap that has one
    size: int
    start: int  # of its lifetime
    end: int


class Loads:
    """The load of every section of a problem (MiniMalloc, section 6.2 and equation 1).

    Parameters
    ----------
    problem
        Its spans are found once, in O(n log n), vectorised.

    Attributes
    ----------
    start, end
        Shape (s,): the sections `[start, end)`, by time; each begins at the end of the previous
        one, so times at which nothing is held are sections with a load of 0.
    load
        Shape (s,): the bytes held in each.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._spans = held = spans.spans(problem)
        times = np.concatenate([held.start, held.end])
        bytes_held = held.upper - held.lower
        order = np.argsort(times, kind="stable")
        times = times[order]
        # A sum may wrap around between two events of one time; after the last event it is right.
        level = np.cumsum(np.concatenate([bytes_held, -bytes_held])[order])
        last = np.append(np.flatnonzero(np.diff(times)), len(times) - 1)[: len(times)]
        self.start: Column = times[last][:-1]
        self.end: Column = times[last][1:]
        self.load: Column = level[last][:-1]

    def __len__(self) -> int:
        return len(self.load)

    @cached_property
    def peak(self) -> int:
        """The greatest load, in bytes; 0 where no buffer holds anything."""
        return int(self.load.max(initial=0))

    @cached_property
    def peak_section(self) -> int | None:
        """The first section with the greatest load; `None` if there is no section."""
        return int(self.load.argmax()) if len(self) else None

    def held(self, section: int) -> list[Held]:
        """Return what buffers hold in a section, the most bytes first, ties by id."""
        spans, problem = self._spans, self._problem
        time = self.start[section]
        live = np.flatnonzero((spans.start <= time) & (time < spans.end))
        rows = spans.buffer[live]
        found = [
            Held(problem.ids[row], held, size, start, end)
            for row, held, size, start, end in zip(
                rows.tolist(),
                (spans.upper - spans.lower)[live].tolist(),
                problem.size[rows].tolist(),
                problem.start[rows].tolist(),
                problem.end[rows].tolist(),
                strict=True,
            )
        ]
        return sorted(found, key=lambda each: (-each.bytes, each.id))

    def ranges_above(self, limit: int) -> list[tuple[int, int]]:
        """Return the maximal runs of neighbouring sections with a load above `limit`.

        Returns
        -------
        runs
            Pairs `(first, last)` of section numbers, both inclusive, by time.
        """
        above = np.concatenate([[False], self.load > limit, [False]])
        edges = np.flatnonzero(np.diff(above.astype(np.int8)))
        return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]

    def highest_of(self, rows: Column) -> int | None:
        """Return the section with the greatest load in which one of these rows holds something."""
        chosen = np.isin(self._spans.buffer, rows)
        covered = np.zeros(len(self) + 1, dtype=np.int64)
        np.add.at(covered, np.searchsorted(self.start, self._spans.start[chosen]), 1)
        np.add.at(covered, np.searchsorted(self.start, self._spans.end[chosen]), -1)
        alive = np.cumsum(covered[:-1]) > 0
        if not alive.any():
            return None
        return int(np.where(alive, self.load, -1).argmax())


def available(reserved: Iterable[Reserved], capacity: int) -> int:
    """Return how many of the first `capacity` bytes are not reserved."""
    return capacity - sum(max(0, min(block.upper, capacity) - block.lower) for block in reserved)


def capacity_for(reserved: Iterable[Reserved], load: int) -> int:
    """Return the smallest capacity of which `load` bytes are not reserved."""
    capacity = load
    for block in reserved:  # sorted and disjoint
        if block.lower < capacity:
            capacity += block.upper - block.lower
    return capacity
