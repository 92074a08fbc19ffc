"""The greedy memory planner of TensorFlow Lite for Microcontrollers.

By falling size, of equals as they are listed, each at the lowest place that is free of all that
live when it does. What is planned offline (our pins) comes before all the rest. Its kin with best
fit is `greedy_by_size`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from memplan.solvers.baselines._pairs import conflicting, lowest
from memplan.solvers.baselines._run import Run

__all__ = ["solve"]

_MOST_PAIRS: Final = 2_000_000  # about a second and 100 MB


def solve(run: Run) -> None:
    """Place the largest first, each as low as it can lie."""
    problem = run.problem
    pairs = conflicting(problem, _MOST_PAIRS)
    if pairs is None:
        run.note = f"more than {_MOST_PAIRS} pairs conflict: too many to list"
        return
    order = np.argsort(-problem.size, kind="stable").tolist()
    if all(run.step() for _ in order):
        run.offer(lowest(problem, order, pairs), "by size, first fit")
