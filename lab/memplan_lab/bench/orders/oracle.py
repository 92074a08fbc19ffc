"""The least peak of a small graph by CP-SAT of OR-tools, which shares nothing with our search."""

from __future__ import annotations

import math

from memplan.base.errors import MemplanError
from memplan_lab.bench.orders.program import OrderLists
from memplan_lab.extras import require

__all__ = ["LARGEST", "least_peak"]

LARGEST = 60  # operators


def least_peak(program: OrderLists, seconds: float) -> tuple[int, int]:
    """Return the peak of the best order found, and a bound on every order.

    Operators take places from 0 on, one each. A storage is an interval from the place of its first
    user to that of its last, and all that meet in one place fit below the peak.
    """
    problem = program.problem
    count = len(problem)
    if count > LARGEST:
        raise MemplanError(f"CP-SAT is asked for at most {LARGEST} operators, and not {count}")
    cp = require("ortools.sat.python.cp_model", extra="ortools")
    unit = math.gcd(*problem.size.tolist(), *problem.workspace.tolist()) or 1
    model = cp.CpModel()
    place = [model.new_int_var(0, count - 1, "") for _ in range(count)]
    model.add_all_different(place)
    for first, second in problem.arcs.tolist():
        model.add(place[first] < place[second])
    intervals, demands = [], []
    for storage, users in enumerate(program.users):
        given, wanted = problem.given[storage], problem.wanted[storage]
        if not (users or (given and wanted)):
            continue
        begin, end = model.new_int_var(0, count, ""), model.new_int_var(0, count, "")
        own = [place[user] for user in users]
        model.add(begin == 0) if given else model.add_min_equality(begin, own)
        model.add(end == count) if wanted else model.add_max_equality(end, [at + 1 for at in own])
        intervals.append(model.new_interval_var(begin, model.new_int_var(0, count, ""), end, ""))
        demands.append(program.size(storage) // unit)
    for at, bytes in zip(place, problem.workspace.tolist(), strict=True):
        intervals.append(model.new_fixed_size_interval_var(at, 1, ""))
        demands.append(bytes // unit)
    peak = model.new_int_var(0, sum(demands), "")
    model.add_cumulative(intervals, demands, peak)
    model.minimize(peak)
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    # CP-SAT would leave Ctrl-C with its default action, which ends the process without a word.
    solver.parameters.catch_sigint_signal = False
    if solver.solve(model) not in (cp.OPTIMAL, cp.FEASIBLE):
        raise MemplanError(f"CP-SAT found no order within {seconds:g} s")
    return int(solver.value(peak)) * unit, math.ceil(solver.best_objective_bound - 1e-6) * unit
