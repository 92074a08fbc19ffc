"""The greedy memory planner of TensorFlow Lite for Microcontrollers.

It places the buffers by falling size (equal sizes in the order of the problem), each at the lowest
offset that is free during its lifetime. Buffers planned offline (our pins) come before all others.
The same order with best fit is `greedy_by_size`.
"""

from __future__ import annotations

import numpy as np

from memplan.solvers.run import Run
from memplan_lab.baselines._pairs import list_pairs, place_lowest

__all__ = ["solve"]


def solve(run: Run) -> None:
    """Place the largest first, each at its lowest free offset."""
    problem = run.problem
    pairs = list_pairs(run)
    if pairs is None:
        return
    order = np.argsort(-problem.size, kind="stable").tolist()
    if all(run.step() for _ in order):
        run.offer(place_lowest(problem, order, pairs), "by size, first fit")
