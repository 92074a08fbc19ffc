"""The status of a peer's plan, as if it were one of our solvers."""

from __future__ import annotations

from dataclasses import replace

from memplan.base.errors import PlanError
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify
from memplan_lab.bench.rows import Outcome


def judge(problem: Problem, plan: Plan, objective: str, measured: Outcome) -> Outcome:
    """Check a peer's plan and give it a status.

    Many peers have no capacity, or do not report optimality. So a plan at the load bound is
    `optimal`, and for the objective `fit` a plan within the capacity `fits`. A plan above the
    capacity is no answer (`unknown`), but its peak is kept.
    """
    if plan.peak is None:
        return replace(measured, status=plan.status.value, lower_bound=plan.lower_bound)
    try:
        verify(problem.with_capacity(None), plan)
    except PlanError as error:
        return replace(measured, status="invalid", error=str(error))
    bound = max(plan.lower_bound, problem.max_load)
    checked = replace(measured, peak=plan.peak, lower_bound=bound)
    capacity = problem.capacity
    if capacity is not None and plan.peak > capacity:
        over = f"the plan is {plan.peak - capacity} bytes beyond the capacity"
        return replace(checked, status="unknown", error=over)
    status = Status.FITS if objective == "fit" and capacity is not None else Status.FEASIBLE
    if plan.peak == bound:
        status = Status.OPTIMAL
    return replace(checked, status=status.value)
