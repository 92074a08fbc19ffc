"""The placement problem by CP-SAT of OR-tools, which propagates and learns clauses.

There are two encodings of the rule that buffers which are live together share no address:

- `pairs`: a Boolean for each pair in conflict says which lies below (TelaMalloc, section 5.1);
- `no_overlap`: rectangles of time and address, fixed in time, in one `NoOverlap2D`.

CP-SAT computes in whole numbers, in a unit of bytes that divides all amounts. So its answers are
exact, and its status is proved.
"""

from __future__ import annotations

import importlib
import math
import queue
from typing import Any, Final

from memplan.base.errors import MemplanError
from memplan.solvers.run import Run
from memplan_lab.baselines._cp_model import MOST_PAIRS, CpModel, Refuted, program_of, search
from memplan_lab.baselines._mip_model import unit_of
from memplan_lab.baselines._start import greedy_start, highest_top

__all__ = ["solve"]

_MOST_UNITS: Final = 1 << 50  # the largest amount; sums of larger ones could exceed 64 bits
_MOST: Final = (1 << 31) - 1  # the largest value of a parameter of CP-SAT
_ROUNDED: Final = 1e-6  # how far a bound, which is a float, may be above a whole number


def solve(run: Run) -> None:
    """Place by the solutions of CP-SAT, until it has proved one or the budget ends."""
    encoding = run.choice("encoding", ("pairs", "no_overlap"))
    with_start = run.switch("start")
    start = greedy_start(run) if with_start else None
    if run.settled or run.nodes_left == 0 or run.out_of_time():
        return
    unit, top = unit_of(run.problem), highest_top(run)
    if top // unit > _MOST_UNITS:
        run.note = "amounts are above 2^50 of the bytes that divide them all: too many for CP-SAT"
        return
    try:
        bottom = run.bound if with_start else 0
        program = program_of(
            _library(), run.problem, encoding, unit=unit, bottom=bottom, top=top, start=start
        )
    except Refuted:
        _refute(run)
        return
    if program is None:
        run.note = f"more than {MOST_PAIRS} pairs conflict: too many for CP-SAT"
    else:
        _search(run, program)


def _search(run: Run, program: CpModel) -> None:
    """Run CP-SAT; receive its answers and check the deadline meanwhile."""
    cp_model = _library()
    reports: queue.SimpleQueue[list[int] | float] = queue.SimpleQueue()

    class Listener(cp_model.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
        def on_solution_callback(self) -> None:
            reports.put([self.value(each) for each in program.multiples])

    solver = cp_model.CpSolver()
    solver.best_bound_callback = reports.put
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = run.seed % (_MOST + 1)
    if run.seconds_left is not None:
        solver.parameters.max_time_in_seconds = run.seconds_left
    if run.nodes_left is not None:
        solver.parameters.max_number_of_conflicts = run.nodes_left

    def is_over() -> bool:
        _read_reports(run, program, reports)
        return run.settled or run.out_of_time()

    status = search(solver, program.model, is_over, Listener())
    _read_reports(run, program, reports)
    run.charge(solver.num_conflicts)
    if status == cp_model.INFEASIBLE:
        _refute(run)
    elif status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        _learn(run, program, solver.best_objective_bound)
    if not run.settled and run.nodes_left == 0:
        run.note = run.note or "the nodes are over"


def _read_reports(
    run: Run, program: CpModel, reports: queue.SimpleQueue[list[int] | float]
) -> None:
    while not reports.empty():
        report = reports.get()
        if isinstance(report, float):
            _learn(run, program, report)
        else:
            run.offer(program.offsets(report), "a solution of CP-SAT")


def _learn(run: Run, program: CpModel, bound: float) -> None:
    """Report a bound on the peak, in units; without a plan the number may have no meaning."""
    if math.isfinite(bound) and bound <= program.top:
        run.learn(math.ceil(bound - _ROUNDED) * program.unit)


def _refute(run: Run) -> None:
    """Report that no plan fits, if the top was the capacity; any other top is known to fit."""
    capacity = run.problem.capacity
    if capacity is not None and run.peak is None:
        run.learn(capacity + 1)
        run.note = "refuted by CP-SAT"


def _library() -> Any:
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError as error:
        # OR-tools and highspy both bring a libhighs.so.1, and the first to be loaded serves both.
        raise MemplanError(
            f"cp_sat cannot load OR-tools ({error}); if highspy is loaded, use another process"
        ) from error
