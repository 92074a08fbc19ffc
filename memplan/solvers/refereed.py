"""A plan by the way, for reports that are about something else."""

from __future__ import annotations

from memplan import solvers
from memplan.errors import PlanError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.referee import verify

__all__ = ["NODES", "quick_plan", "refereed"]

NODES = 100_000


def quick_plan(
    problem: Problem,
    *,
    nodes: int = NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Plan:
    """Return a plan with a small peak, whatever the capacity, that the referee has let pass."""
    asked = problem.with_capacity(None)
    plan = solvers.solve(
        asked, objective="min_peak", nodes=nodes, timeout=timeout, threads=threads, seed=seed
    )
    return refereed(asked, plan)


def refereed(problem: Problem, plan: Plan) -> Plan:
    """Return a solver's plan if the referee lets it pass, or if there is none.

    Raises
    ------
    RuntimeError
        If it is wrong: that is our own mistake, and not one of the input.
    """
    if plan.has_offsets:
        try:
            verify(problem, plan)
        except PlanError as error:
            raise RuntimeError(f"{plan.solver} made a plan that is wrong: {error}") from error
    return plan
