"""Bump allocation (MemoMalloc, section 2.3): an offset that every buffer raises by its size.

It needs as much as a program that never frees memory: the sum of all sizes, and of alignment.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.solvers.run import Run
from memplan_lab.baselines._blocks import stack

__all__ = ["solve"]


def solve(run: Run) -> None:
    """Place the buffers by start, each above the one before it, around pins and reserved ranges.

    A group is placed as one block when the first of its members begins.
    """
    problem = run.problem
    together = [np.array(rows) for rows in problem.groups]
    alone = np.flatnonzero(problem.group == NONE)
    # Pinned groups come after other pins, because a group must not overlap any pin. A group with a
    # single member is an ordinary buffer.
    blocks = [np.array([row]) for row in alone.tolist()] + sorted(
        together, key=lambda rows: len(rows) > 1
    )

    offsets = [0] * len(problem)
    barred = [(block.lower, block.upper) for block in problem.reserved]
    free: list[npt.NDArray[np.intp]] = []
    pinned: list[tuple[int, int]] = []
    for rows in blocks:
        fixed = rows[problem.pin[rows] != NONE]
        if len(fixed) == 0:
            free.append(rows)
            continue
        base = int(problem.pin[fixed[0]] - problem.lead[fixed[0]])
        _put(problem, rows, base, offsets)
        span = (base, base + _extent(problem, rows))
        if len(rows) > 1 and not _can_lie(problem, rows, offsets, span, barred + pinned):
            return  # pins and groups together leave no plan in which nothing is shared
        if span[0] < span[1]:
            pinned.append(span)
        run.charge(len(rows))
    barred += pinned

    free.sort(key=lambda rows: int(problem.start[rows].min()))
    shapes = [_shape(problem, rows) for rows in free]
    sizes = (
        (pad + _extent(problem, rows), unit) for rows, (pad, unit) in zip(free, shapes, strict=True)
    )
    for rows, (pad, _), offset in zip(free, shapes, stack(sizes, barred), strict=True):
        for _ in rows:
            if not run.step():
                return
        _put(problem, rows, offset + pad, offsets)
    run.offer(offsets, "by start, nothing shared")


def _extent(problem: Problem, rows: npt.NDArray[np.intp]) -> int:
    """Return the bytes from the beginning of a block to the end of its last member."""
    return int((problem.lead[rows] + problem.size[rows]).max())


def _shape(problem: Problem, rows: npt.NDArray[np.intp]) -> tuple[int, int]:
    """Return the bytes to leave free before a block, and its alignment.

    They align the member with the strictest alignment, and so all members.
    """
    strictest = rows[int(problem.alignment[rows].argmax())]
    unit = int(problem.alignment[strictest])
    return -int(problem.lead[strictest]) % unit, unit


def _can_lie(
    problem: Problem,
    rows: npt.NDArray[np.intp],
    offsets: list[int],
    span: tuple[int, int],
    taken: list[tuple[int, int]],
) -> bool:
    """Return whether a group may have the place that its pin gives: aligned, without overlap."""
    at = np.array([offsets[row] for row in rows.tolist()])
    pin = problem.pin[rows]
    legal = (at >= 0) & (at % problem.alignment[rows] == 0) & ((pin == NONE) | (pin == at))
    apart = all(upper <= span[0] or span[1] <= lower for lower, upper in taken)
    return bool(legal.all()) and apart


def _put(problem: Problem, rows: npt.NDArray[np.intp], base: int, offsets: list[int]) -> None:
    for row in rows.tolist():
        offsets[row] = base + int(problem.lead[row])
