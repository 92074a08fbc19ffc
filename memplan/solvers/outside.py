"""Runs solvers that the core does not have: those of other packages, or in other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memplan.base.errors import MemplanError, PlanError
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee import verify
from memplan.solvers import registry
from memplan.solvers.native import Progress, Round
from memplan.solvers.run import Run

__all__ = ["solve"]


def solve(
    problem: Problem,
    *,
    solver: str,
    minimize: bool,
    seconds: float | None,
    nodes: int | None,
    threads: int,
    seed: int,
    options: Mapping[str, object],
    progress: Callable[[Progress], object] | None = None,
    trace: Callable[[Round], object] | None = None,
) -> tuple[Plan, bool]:
    """Return the plan of one solver, and whether Ctrl-C cut it short, as `native.solve` does.

    The plan is checked, as it comes from other packages: a `MemplanError` says that it is wrong.
    """
    known = registry.SOLVERS[solver]
    registry.check_libraries(solver)
    run = Run(
        problem,
        solver=solver,
        minimize=minimize,
        seconds=seconds,
        nodes=nodes,
        seed=seed,
        options=options,
        progress=progress,
    )
    assert known.solve is not None  # only a solver of the core has none
    interrupted = False
    try:
        if not run.settled:
            known.solve(run)
    except KeyboardInterrupt:
        interrupted = True
    if trace is not None:
        trace(run.round(interrupted))
    plan = run.plan()
    if known.is_refereed and plan.has_offsets:
        try:
            verify(problem, plan)
        except PlanError as error:
            raise MemplanError(f"the solver {solver} made a plan that is wrong: {error}") from error
    return plan, interrupted
