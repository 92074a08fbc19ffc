"""Sequences that place the same buffers at the same offsets (MiniMalloc, table 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from memplan.problem import Problem


@dataclass(frozen=True, slots=True)
class Placing:
    """An order of placing: rows of the problem, and their offsets."""

    rows: tuple[int, ...]
    offsets: tuple[int, ...]

    @property
    def offset_monotonic(self) -> bool:
        """Whether no buffer lies below one that was placed before it (section 5)."""
        return all(a <= b for a, b in pairwise(self.offsets))

    @property
    def index_monotonic(self) -> bool:
        """Whether buffers at one offset are placed by index (section 5)."""
        placed = list(zip(self.offsets, self.rows, strict=True))
        return all(i < j for at, (a, i) in enumerate(placed) for b, j in placed[at + 1 :] if a == b)


def find_isomorphic(problem: Problem) -> Iterator[Placing]:
    """Yield all orders that give the offsets of the order of decreasing index, sorted by rows.

    Every buffer goes to the lowest offset at which it overlaps no earlier buffer (section 2.3).
    For problems of a handful of buffers: n! orders.
    """
    count = len(problem)
    wanted = sorted(_places(problem, range(count - 1, -1, -1)))
    for rows in permutations(range(count)):
        placed = _places(problem, rows)
        if sorted(placed) == wanted:
            yield Placing(rows, tuple(offset for _, offset in placed))


def _places(problem: Problem, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return (row, offset) in the order of placing."""
    start, end, size = (column.tolist() for column in (problem.start, problem.end, problem.size))
    placed: list[tuple[int, int]] = []
    for row in rows:
        taken = sorted(
            (offset, offset + size[other])
            for other, offset in placed
            if start[row] < end[other] and start[other] < end[row]
        )
        lowest = 0
        for lower, upper in taken:
            if lowest + size[row] <= lower:
                break
            lowest = max(lowest, upper)
        placed.append((row, lowest))
    return placed
