"""A plan by the way, for reports that are about something else."""

from __future__ import annotations

from memplan import solvers
from memplan.errors import PlanError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.verify import verify

__all__ = ["NODES", "quick_plan"]

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
    if plan.has_offsets:
        try:
            verify(asked, plan)
        except PlanError as error:  # our own mistake, and nobody's input
            raise RuntimeError(f"{plan.solver} made a plan that is wrong: {error}") from error
    return plan
