"""Quick plans for reports about other questions."""

from __future__ import annotations

from memplan import solvers
from memplan.errors import PlanError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.referee import verify

__all__ = ["NODES", "check_plan", "quick_plan"]

NODES = 100_000


def quick_plan(
    problem: Problem,
    *,
    nodes: int = NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return a plan with a small peak, without a capacity, which the referee has accepted."""
    asked = problem.with_capacity(None)
    plan = solvers.solve(
        asked, objective="min_peak", nodes=nodes, timeout=timeout, threads=threads, seed=seed
    )
    return check_plan(asked, plan)


def check_plan(problem: Problem, plan: Plan) -> Plan:
    """Return a solver's plan if the referee accepts it or if it has no offsets.

    Raises
    ------
    RuntimeError
        If the plan is wrong, which is a defect of memplan and not of the input.
    """
    if plan.has_offsets:
        try:
            verify(problem, plan)
        except PlanError as error:
            raise RuntimeError(f"{plan.solver} made a plan that is wrong: {error}") from error
    return plan
