"""Starts of complete planners: a plan of greedy, and an upper limit on better plans."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import MAX_BYTES
from memplan.solvers import native, registry
from memplan.solvers.run import Run

__all__ = ["greedy_start", "highest_top"]


def greedy_start(run: Run) -> npt.NDArray[np.int64] | None:
    """Offer the plan of greedy_by_size, and return its offsets."""
    chosen = registry.SOLVERS["greedy_by_size"]
    plan, interrupted = native.solve(
        run.problem,
        solver=chosen.name,
        core=chosen.core,
        minimize=True,
        seconds=run.seconds_left,
        nodes=run.nodes_left,
        threads=1,
        seed=run.seed,
        options=chosen.preset,
    )
    run.charge(int(str(plan.stats["nodes"])))
    if plan.offsets is not None:
        run.offer(plan.offsets, "greedy_by_size")
    if interrupted:
        raise KeyboardInterrupt
    return plan.offsets


def highest_top(run: Run) -> int:
    """Return the highest useful peak: that of the best plan, the capacity, or without sharing."""
    if run.peak is not None:
        return run.peak
    problem = run.problem
    stops = [block.upper for block in problem.reserved]
    stops += (problem.pin + problem.size)[problem.pin >= 0].tolist()
    apart = sum((problem.size + problem.alignment - 1).tolist())
    capacity = MAX_BYTES if problem.capacity is None else problem.capacity
    return min(capacity, int(max(stops, default=0) + apart))
