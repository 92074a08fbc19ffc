"""Several blocks as one arena, in which reserved strips lie between the blocks.

    address  0        L    P      P+L   2P
             | block 0 |///| block 1 |///| block 2 ...

No buffer of positive size touches a strip, so each lies in one block, and there are no variables
that say in which. The distance P of two blocks is a multiple of all alignments, so that addresses
in a block and in the arena have the same remainders. All blocks are alike: each is an arena as the
problem describes one, with its reserved ranges. A pin is an address in any block: an empty buffer
as far below as the pin says, which marks the beginning of a block: it lies at a multiple of P.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import lcm
from typing import Final

import numpy as np

from memplan.base.errors import InfeasibleError, MemplanError
from memplan.problem import Problem, Reserved
from memplan.problem.columns import MAX_BYTES, NONE, Column
from memplan.problem.intake import GAP_COLUMNS

__all__ = ["Strips"]

_MOST: Final = 1 << 14  # blocks of one arena


class Strips:
    """The blocks of a problem, whose capacity does not count, as one arena.

    A block has at most `limit` bytes, and one with an item that is larger than that, `highest`. A
    pin beyond all blocks and alignments that need too long strips are refused.
    """

    def __init__(self, problem: Problem, limit: int, highest: int) -> None:
        self._problem, self._limit, self._highest = problem, limit, highest
        _check_pins(problem, highest)
        unit = lcm(*(int(each) for each in np.unique(problem.alignment)))
        self.distance = (highest // unit + 1) * unit  # of the beginnings of two blocks, in bytes

    def join(self, heights: Sequence[int]) -> Problem:
        """Return the arena with a block for each of these heights, all at most the highest.

        More blocks than one arena can have are refused.
        """
        count, step = len(heights), self.distance
        if count > _MOST or count * step > MAX_BYTES:
            raise MemplanError(
                f"{count} blocks of {self._limit} bytes with these alignments are more than one "
                "plan can have; give a larger limit"
            )
        reserved = []
        for number, height in enumerate(heights):
            begin = number * step
            reserved += [
                Reserved(begin + each.lower, begin + min(each.upper, height))
                for each in self._problem.reserved
                if each.lower < height
            ]
            if number + 1 < count:
                reserved.append(Reserved(begin + height, begin + step))
        return self._floating.with_reserved(reserved).with_capacity(
            (count - 1) * step + heights[-1]
        )

    @cached_property
    def _floating(self) -> Problem:
        """The problem with marks in place of its pins."""
        own, rows = self._problem, len(self._problem)
        group, lead, marks = own.group.copy(), own.lead.copy(), 0
        for members, below in _find_tied(own):
            group[members] = rows + marks
            lead[members] += below - lead[members].min()
            marks += 1
        number = np.arange(rows, rows + marks)
        first = np.full(marks, own.start.min(initial=0))
        return Problem.from_arrays(
            np.concatenate([own.start, first]),
            np.concatenate([own.end, first + 1]),
            np.concatenate([own.size, 0 * first]),
            alignment=np.concatenate([own.alignment, np.full(marks, self.distance)]),
            gaps=[getattr(own, name) for name in GAP_COLUMNS],
            conflicts=own.conflicts.pairs(),
            groups=(np.concatenate([group, number]), np.concatenate([lead, 0 * first])),
        )

    def split(self, offsets: Column) -> tuple[Column, Column]:
        """Return the block of each buffer, and its offset there; marks may follow the buffers."""
        own = self._problem
        block, offset = np.divmod(offsets[: len(own)], self.distance)
        loose = offset > self._highest  # only empty ones can lie in a strip: they fit anywhere
        block[loose], offset[loose] = 0, 0
        return block, offset


def _check_pins(problem: Problem, highest: int) -> None:
    for row in np.flatnonzero((problem.pin != NONE) & (problem.pin + problem.size > highest))[:1]:
        raise InfeasibleError(
            f"{problem.label(int(row))} is pinned to [{problem.pin[row]}, "
            f"{problem.pin[row] + problem.size[row]}), beyond the limit of a block, {highest}"
        )
    for members, below in _find_tied(problem):
        if below < 0:
            row = next(row for row in members.tolist() if problem.pin[row] != NONE)
            raise InfeasibleError(
                f"{problem.label(row)} is pinned to {problem.pin[row]}, and the buffers below it "
                f"in its group need {problem.pin[row] - below} bytes"
            )


def _find_tied(problem: Problem) -> list[tuple[Column, int]]:
    """Return what is tied by a pin, and the bytes below it: rows of a group, or one row."""
    found: dict[int, tuple[Column, int]] = {}
    for row in np.flatnonzero(problem.pin != NONE).tolist():
        number = int(problem.group[row])
        members = np.array([row]) if number == NONE else np.flatnonzero(problem.group == number)
        below = problem.pin[row] - problem.lead[row] + problem.lead[members].min()
        found[-1 - row if number == NONE else number] = members, int(below)
    return list(found.values())
