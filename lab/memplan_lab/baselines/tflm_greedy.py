"""The greedy memory planner of TensorFlow Lite for Microcontrollers.

It places the buffers by falling size, equal ones as they are listed, each at the lowest place that
is free of all that live when it does. Buffers planned offline (our pins) come before all others.
The same order with best fit is `greedy_by_size`.
"""

from __future__ import annotations

import numpy as np

from memplan.solvers.run import Run
from memplan_lab.baselines._pairs import listed, lowest

__all__ = ["solve"]


def solve(run: Run) -> None:
    """Place the largest first, each as low as it can lie."""
    problem = run.problem
    pairs = listed(run)
    if pairs is None:
        return
    order = np.argsort(-problem.size, kind="stable").tolist()
    if all(run.step() for _ in order):
        run.offer(lowest(problem, order, pairs), "by size, first fit")
