"""The pairs of buffers that may share no address, and the lowest offsets in a given order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.spans import spans
from memplan.solvers.run import Run
from memplan_lab.baselines._blocks import align_up

__all__ = ["FirstFit", "conflicting_pairs", "list_pairs", "place_lowest"]

_MOST_PAIRS: Final = 2_000_000  # about a second and 100 MB

Ints = npt.NDArray[np.int64]


def conflicting_pairs(problem: Problem, most: int) -> tuple[Ints, Ints] | None:
    """Return the pairs of rows that are held at a common time, each once, the lower row first."""
    held = spans(problem)
    by_start = np.argsort(held.start, kind="stable")
    start, end, row = held.start[by_start], held.end[by_start], held.buffer[by_start]
    # A span meets the later spans that start before it ends.
    first = np.arange(1, len(row) + 1)
    count = np.searchsorted(start, end) - first
    if int(count.sum()) > most:
        return None
    one = np.repeat(np.arange(len(row)), count)
    within = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    pair = np.sort(np.stack([row[one], row[first[one] + within]]), axis=0)
    pair = np.unique(pair, axis=1)  # gaps let two buffers meet more than once
    return pair[0], pair[1]


def list_pairs(
    run: Run, most: int | None = None, excuse: str = "to list"
) -> tuple[Ints, Ints] | None:
    """Return the pairs of a run's problem; if there are too many, write it in the run's note."""
    most = _MOST_PAIRS if most is None else most
    pairs = conflicting_pairs(run.problem, most)
    if pairs is None:
        run.note = f"more than {most} pairs conflict: too many {excuse}"
    return pairs


def place_lowest(problem: Problem, order: Iterable[int], pairs: tuple[Ints, Ints]) -> list[int]:
    """Return offsets: pins first, then each buffer of the order at its lowest free place.

    If the order is by the offsets of a legal plan, no buffer is higher than in that plan: its
    place there is free, because all buffers below it have only moved down.
    """
    return FirstFit(problem, pairs).place(order)


class FirstFit:
    """Computes the offsets of `place_lowest` for many orders of one problem."""

    def __init__(self, problem: Problem, pairs: tuple[Ints, Ints]) -> None:
        self._size, self._unit = problem.size.tolist(), problem.alignment.tolist()
        self._pin = problem.pin.tolist()
        self._barred = [(block.lower, block.upper) for block in problem.reserved]
        self.others: list[list[int]] = [[] for _ in self._size]
        for one, other in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True):
            self.others[one].append(other)
            self.others[other].append(one)

    def place(self, order: Iterable[int]) -> list[int]:
        """Return offsets, those of the pinned and then of each in the order."""
        size = self._size
        placed: list[int | None] = [None if at == NONE else at for at in self._pin]
        for row in order:
            if placed[row] is not None:
                continue
            offset = 0
            neighbours = ((placed[other], size[other]) for other in self.others[row])
            taken = [(at, at + held) for at, held in neighbours if at is not None]
            for lower, upper in sorted(taken + self._barred) if size[row] else ():
                if lower >= offset + size[row]:
                    break
                offset = max(offset, align_up(upper, self._unit[row]))
            placed[row] = offset
        return [0 if at is None else at for at in placed]
