"""The greedy memory planner of TensorFlow Lite for Microcontrollers.

By falling size, of equals as they are listed, each at the lowest place that is free of all that
live when it does. What is planned offline (our pins) comes before all the rest. Its kin with best
fit is `greedy_by_size`.
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
