"""Bump allocation (source 002, section 2.3): an offset that every buffer raises by its size.

A program which never gives memory back needs as much: all sizes together, and what alignment adds.
"""

from __future__ import annotations

import numpy as np

from memplan.problem.columns import NONE
from memplan.solvers.run import Run
from memplan_lab.baselines._blocks import stack

__all__ = ["solve"]


def solve(run: Run) -> None:
    """Place the buffers by start, each above the one before it, around pins and reserved ranges."""
    problem = run.problem
    pinned = problem.pin != NONE
    tops = problem.pin + problem.size
    barred = [(block.lower, block.upper) for block in problem.reserved]
    held = pinned & (problem.size > 0)
    barred += zip(problem.pin[held].tolist(), tops[held].tolist(), strict=True)

    rows = np.flatnonzero(~pinned)
    rows = rows[np.argsort(problem.start[rows], kind="stable")]
    blocks = zip(problem.size[rows].tolist(), problem.alignment[rows].tolist(), strict=True)
    offsets = problem.pin.tolist()
    for row, offset in zip(rows.tolist(), stack(blocks, barred), strict=True):
        if not run.step():
            return
        offsets[row] = offset
    run.charge(int(pinned.sum()))
    run.offer(offsets, "by start, nothing shared")
