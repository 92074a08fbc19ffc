"""What keeps every buffer from lying lower: what it sits on, and what all of them rest on.

address                        `c` sits on `b` while both are alive, and `b` on `a`: there is
 12 +--------+                 no legal offset between them. `a` lies on the ground.
    |   c    |
  8 +---+----+----+            So the chain of `c` is c, b, a: it says why `c` ends at 12.
        |    b    |
  4 +---+----+----+
    |   a    |
  0 +--------+------- ground
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.plan import Plan
from memplan.problem.spans import spans
from memplan.view.picture import offsets
from memplan.view.stacks import find_stacks

__all__ = ["Chain", "Ground", "Supports", "find_supports"]


class Ground(IntEnum):
    """What else than another buffer keeps a buffer from lying lower."""

    NONE = 0  # nothing does: it sits on others, or could lie lower
    ADDRESS_ZERO = 1  # there is no legal offset below its own
    PIN = 2
    RESERVED = 3  # a reserved range ends below it


@dataclass(frozen=True, slots=True)
class Chain:
    """From a buffer down to what it rests on."""

    # The buffer itself first; each sits on the next, or is in one group with it.
    rows: tuple[int, ...]
    ground: Ground  # what keeps the last of them where it is; `Ground.NONE` if it could lie lower


@dataclass(frozen=True, slots=True)
class Supports:
    """Which buffers sit on which in a plan, as compressed rows."""

    # Shapes (n + 1,) and (m,): row i sits on `below_row[below_begin[i]:below_begin[i + 1]]`,
    # ascending.
    below_begin: Column
    below_row: Column
    above_begin: Column  # the same the other way round: the rows that sit on row i
    above_row: Column
    ground: Column  # shape (n,), values of `Ground`
    # Shape (n,): the next buffer on the shortest way down to the ground, of several the largest, or
    # -1 at its end. A buffer which sits on none while another one of its group does has that one.
    next: Column

    def below(self, row: int) -> Column:
        """Return the rows that a buffer sits on."""
        return self.below_row[self.below_begin[row] : self.below_begin[row + 1]]

    def above(self, row: int) -> Column:
        """Return the rows that sit on a buffer."""
        return self.above_row[self.above_begin[row] : self.above_begin[row + 1]]

    def chain(self, row: int) -> Chain:
        """Return what bounds a buffer from below, all the way down."""
        rows = [row]
        while self.next[rows[-1]] != NONE:
            rows.append(int(self.next[rows[-1]]))
        return Chain(tuple(rows), Ground(int(self.ground[rows[-1]])))


def find_supports(problem: Problem, plan: Plan) -> Supports:
    """Find the buffers that each one sits on in a valid plan: O(s log s) in spans.

    A span is a part of a buffer's lifetime in which it holds the same memory (see
    `memplan.problem.spans`).

    A buffer sits on another if at some time both hold memory with nothing in between, and no offset
    that is legal for the upper one (of its alignment, or of the largest of its group) lies between
    where it is and where it would touch the lower one; where the problem has explicit conflicts, a
    buffer also sits on those it conflicts with, whenever they live.
    """
    offset = offsets(problem, plan)
    step = _find_steps(problem)
    above, below = _find_pairs(problem, offset, step)
    ground = _find_ground(problem, offset, step)
    return Supports(
        *_compress_rows(above, below, len(problem)),
        *_compress_rows(below, above, len(problem)),
        ground,
        _find_next(problem, above, below, ground != Ground.NONE),
    )


def _find_steps(problem: Problem) -> Column:
    """Return for every buffer how far it has to move at least: its alignment, or its group's.

    In a group one alignment divides the other.
    """
    step = problem.alignment.copy()
    if problem.has_groups:
        inside = problem.group != NONE
        most = np.ones(int(problem.group.max()) + 1, dtype=np.int64)
        np.maximum.at(most, problem.group[inside], step[inside])
        step[inside] = most[problem.group[inside]]
    return step


def _find_pairs(problem: Problem, offset: Column, step: Column) -> tuple[Column, Column]:
    """Return every pair of rows (above, below) where one sits on the other, once, ascending."""
    held = spans(problem)
    base = offset[held.buffer]
    found = find_stacks(held, offset)
    found = found.keep(found.below != NONE)
    gap = (base + held.lower)[found.above] - (base + held.upper)[found.below]
    above, below = held.buffer[found.above], held.buffer[found.below]
    if problem.has_conflicts:  # such a pair shares no address at all, whenever the two live
        pairs = problem.conflicts.pairs()
        pairs = pairs[(problem.size[pairs] > 0).all(axis=1)]
        one, other = np.concatenate([pairs, pairs[:, ::-1]]).T
        gap = np.concatenate([gap, offset[one] - (offset + problem.size)[other]])
        above, below = np.concatenate([above, one]), np.concatenate([below, other])
    count = max(len(problem), 1)
    touch = (gap >= 0) & (gap < step[above])
    keys = np.unique(above[touch] * count + below[touch])
    return keys // count, keys % count


def _compress_rows(owner: Column, other: Column, count: int) -> tuple[Column, Column]:
    """Return pairs as compressed rows, ascending in each."""
    order = np.lexsort((other, owner))
    return np.searchsorted(owner[order], np.arange(count + 1)), other[order]


def _find_ground(problem: Problem, offset: Column, step: Column) -> Column:
    ground = np.full(len(problem), Ground.NONE, dtype=np.int64)
    ends = np.array([NONE, *(block.upper for block in problem.reserved)], dtype=np.int64)
    nearest = ends[np.searchsorted(ends, offset, side="right") - 1]
    barred = (nearest != NONE) & (offset - nearest < step) & (problem.size > 0)
    ground[barred] = Ground.RESERVED
    ground[offset < step] = Ground.ADDRESS_ZERO
    ground[problem.pin != NONE] = Ground.PIN
    return ground


def _find_next(
    problem: Problem, above: Column, below: Column, grounded: npt.NDArray[np.bool_]
) -> Column:
    """Return for every row the next on its way down; see `Supports.next`."""
    rows = np.arange(len(problem))
    # A group moves as a whole, so that a step down leads from a group, or a buffer in none, to
    # another.
    alone = problem.group == NONE
    _, unit = np.unique(np.where(alone, rows, len(rows) + problem.group), return_inverse=True)
    level = _count_levels(
        unit[above], unit[below], unit[grounded], int(unit.max(initial=NONE)) + 1
    )[unit]

    down = level[below] == level[above] - 1
    above, below = above[down], below[down]
    order = np.lexsort((below, -problem.size[below], above))
    first = order[np.diff(above[order], prepend=NONE) != 0]
    found = np.full(len(rows), NONE, dtype=np.int64)
    found[above[first]] = below[first]

    held = np.flatnonzero(grounded | (found != NONE))[::-1]
    mate = np.full(len(rows), NONE, dtype=np.int64)  # by unit: its first member that is supported
    mate[unit[held]] = held
    found = np.where(found == NONE, mate[unit], found)
    found[grounded | (found == rows)] = NONE
    return found


def _count_levels(above: Column, below: Column, grounded: Column, count: int) -> Column:
    """Return how many steps every unit is above the ground.

    Units that rest on nothing count from `count + 1`, so that none above the ground has one of
    them a step below it. Windows allow that some rest on each other in a circle: they are at
    `count`.
    """
    begin, rising = (column.tolist() for column in _compress_rows(below, above, count))
    level = [count] * count

    def climb(reached: list[int], lowest: int) -> None:
        for unit in reached:
            level[unit] = lowest
        for unit in reached:  # the list grows in this loop
            for upper in rising[begin[unit] : begin[unit + 1]]:
                if level[upper] == count:
                    level[upper] = level[unit] + 1
                    reached.append(upper)

    climb(np.unique(grounded).tolist(), 0)
    sits = np.bincount(above[above != below], minlength=count) > 0
    climb([unit for unit in np.flatnonzero(~sits).tolist() if level[unit] == count], count + 1)
    return np.array(level, dtype=np.int64)
