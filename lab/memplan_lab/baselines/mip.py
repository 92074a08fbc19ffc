"""The mixed-integer program of MemoMalloc (equation 2.1; TelaMalloc, figure 5), by HiGHS.

HiGHS computes in floating point; here its answers become exact. A solution gives only the order of
its offsets, in which all buffers are placed again in whole bytes. A bound is lowered by the sum of
all tolerances.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Final

import numpy as np
import numpy.typing as npt

from memplan.solvers.run import Run
from memplan_lab.baselines._highs import Known, highs
from memplan_lab.baselines._mip_model import model_of, point_of, unit_of
from memplan_lab.baselines._pairs import list_pairs, place_lowest
from memplan_lab.baselines._start import greedy_start, highest_top

__all__ = ["solve"]

Ints = npt.NDArray[np.int64]

_MOST_PAIRS: Final = 200_000  # with more, HiGHS presolves for minutes
_MOST_UNITS: Final = 1e6  # amounts above it have rounding errors as large as the tolerance
_TOLERANCE: Final = 1e-9  # of a constraint, and of a whole number
_MOST: Final = (1 << 31) - 1  # the largest value of an option of HiGHS


def solve(run: Run) -> None:
    """Place by the solutions of HiGHS, until it has proved one or the budget ends."""
    with_start = run.switch("start")
    start = greedy_start(run) if with_start else None
    if run.settled or run.nodes_left == 0 or run.out_of_time():
        return
    problem = run.problem
    pairs = list_pairs(run, _MOST_PAIRS, "for HiGHS")
    if pairs is None:
        return
    unit, top = unit_of(problem), highest_top(run)
    scale = max(unit, top / _MOST_UNITS)
    model = model_of(problem, pairs, bound=run.bound if with_start else 0, top=top, scale=scale)
    point = np.empty(0) if start is None else point_of(problem, pairs, start, scale=scale)
    cost = np.arange(len(model.lower)) == len(problem)  # the peak
    program = {**asdict(model), "cost": cost, "point": point, "shown": np.array(len(problem))}
    # A constraint may be wrong by the tolerance, and by the error of a whole number times `top`.
    # From the bottom to the peak there is at most one constraint for each buffer.
    slack = (len(problem) + 1) * (top / scale + 2) * _TOLERANCE * scale / unit
    counted = 0
    # The least peak is a whole number of units, so an error of half a unit does no harm.
    with highs(program, _options(run, tolerance=0.5 * unit / scale)) as reports:
        for known in reports:
            if known is not None:
                run.charge(known.nodes - counted)
                counted = known.nodes
                _learn(run, known, pairs, bytes=scale, unit=unit, slack=slack)
            if run.settled or run.out_of_time():
                return


def _learn(
    run: Run, known: Known, pairs: tuple[Ints, Ints], *, bytes: float, unit: int, slack: float
) -> None:
    """Report from an answer of HiGHS what is certain in whole numbers."""
    if known.point is not None:
        order = np.argsort(known.point, kind="stable").tolist()
        run.offer(place_lowest(run.problem, order, pairs), "a solution of HiGHS")
    if known.bound is not None:
        run.learn(math.ceil(known.bound * bytes / unit - slack) * unit)
    capacity = run.problem.capacity
    if known.status == "Infeasible" and capacity is not None and run.peak is None and slack < 0.5:
        run.learn(capacity + 1)
        run.note = "refuted by HiGHS"


def _options(run: Run, tolerance: float) -> dict[str, object]:
    options: dict[str, object] = {
        "threads": 1,
        "random_seed": run.seed % (_MOST + 1),
        "mip_feasibility_tolerance": _TOLERANCE,
        "primal_feasibility_tolerance": _TOLERANCE,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": tolerance,
    }
    if run.nodes_left is not None:
        options["mip_max_nodes"] = min(run.nodes_left, _MOST)
    return options
