"""Plans that are a part of another answer: checked, and on Ctrl-C the best so far."""

from __future__ import annotations

from typing import Any

from memplan import solvers
from memplan.base.errors import PlanError
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee import verify
from memplan.solvers.stopping import note_interrupt

__all__ = ["NODES", "check_plan", "find_plan", "quick_plan"]

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
    return find_plan(
        problem.with_capacity(None),
        objective="min_peak",
        nodes=nodes,
        timeout=timeout,
        threads=threads,
        seed=seed,
    )


def find_plan(problem: Problem, *given: Any, **search: Any) -> Plan:
    """Return what `memplan.solve` finds, accepted by the referee.

    Within a question, Ctrl-C gives the best plan so far; see `memplan.solvers.stopping`.

    Raises
    ------
    Interrupted
        On Ctrl-C outside of a question.
    """
    try:
        plan = solvers.solve(problem, *given, **search)
    except solvers.Interrupted as stop:
        if not note_interrupt():
            raise
        plan = stop.plan
    return check_plan(problem, plan)


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
