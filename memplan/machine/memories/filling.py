"""Fills one memory step by step, for choices that were not placed as a whole, and as compilers do.

A plan of the choice that is too high loses the units that end above the capacity. What is left out
then goes, in some order, to the lowest addresses that are free for its whole life.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memplan.machine.memories.question import Question
from memplan.problem.columns import Column
from memplan.problem.plan import Plan

__all__ = ["Filling", "fill_memory", "is_simple"]

_Bools = npt.NDArray[np.bool_]


def is_simple(question: Question) -> bool:
    """Return whether lifetimes and alignments say all about where buffers may lie."""
    problem = question.problem
    return not (
        problem.has_gaps
        or problem.has_conflicts
        or problem.has_groups
        or problem.has_pins
        or problem.has_reserved
        or question.apart
    )


def fill_memory(
    filling: Filling, chosen: Sequence[int], plan: Plan | None
) -> Iterator[tuple[list[int], Column]]:
    """Yield units that fit into a memory together, with an offset for each unit, in several ways.

    The other memories have room for what is left out. `chosen` is the best choice by load, and the
    plan one of that choice, which may be too high.
    """
    if plan is not None and plan.offsets is not None:
        for order in filling.orders():
            yield filling.fill(order, filling.keep(plan))
    first = np.full(len(filling.worth), -1, np.int64)
    for order in filling.orders(chosen):
        yield filling.fill(order, first)


class Filling:
    """A memory that is filled, and the columns of all units; each unit is a row of the question.

    `worth` is by unit what is saved if it is there; 0 or less if it need not be there.
    """

    def __init__(self, question: Question, memory: int, worth: Column) -> None:
        rows = np.array([unit[0] for unit in question.units], np.int64)
        problem, where = question.problem, question.memories[memory]
        assert where.capacity is not None
        self._ids = [problem.ids[row] for row in rows.tolist()]
        self.start, self.end = problem.start[rows], problem.end[rows]
        self.size, self.worth = problem.size[rows], worth
        self.unit = np.lcm(problem.alignment[rows], where.alignment)
        self.capacity = where.capacity

    def keep(self, plan: Plan) -> Column:
        """Return the offsets of units that end within the capacity, and -1 for all others."""
        offset = np.full(len(self._ids), -1, np.int64)
        place = {id: at for at, id in enumerate(self._ids)}
        for id in plan.ids:
            at = place[id]
            if plan.offset(id) + int(self.size[at]) <= self.capacity:
                offset[at] = plan.offset(id)
        return offset

    def orders(self, chosen: Sequence[int] | None = None) -> Iterator[Column]:
        """Yield orders of all units that are worth something."""
        length = np.maximum(self.end - self.start, 1).astype(float)
        density = self.worth / length / np.maximum(self.size, 1)
        sorts = [-density, -self.worth.astype(float), -self.size.astype(float)]
        if chosen is not None:
            meets = np.array([self._meets(at).sum() for at in range(len(self._ids))])
            sorts.append(-meets * float(self.size.max(initial=0) + 1) - self.size)
            first = np.ones(len(self._ids))
            first[np.array(chosen, np.int64)] = 0
            yield self._useful(np.lexsort((-self.size, first)))
        for key in sorts:
            yield self._useful(np.argsort(key, kind="stable"))

    def _useful(self, order: Column) -> Column:
        return order[self.worth[order] > 0]

    def _meets(self, at: int) -> _Bools:
        meets: _Bools = (self.start < self.end[at]) & (self.start[at] < self.end)
        return meets

    def fill(self, order: Column, offset: Column) -> tuple[list[int], Column]:
        """Add units in an order, each at the lowest offset that is free, if there is one."""
        offset = offset.copy()
        for at in order.tolist():
            if offset[at] >= 0:
                continue
            meets = self._meets(at) & (offset >= 0)
            lower = offset[meets]
            sequence = np.argsort(lower, kind="stable")
            tops = np.maximum.accumulate(np.append(0, (lower + self.size[meets])[sequence]))
            tops = -(-tops // self.unit[at]) * self.unit[at]
            free = np.append(lower[sequence], self.capacity) - tops >= self.size[at]
            if free.any():
                offset[at] = tops[int(free.argmax())]
        return np.flatnonzero(offset >= 0).tolist(), offset
