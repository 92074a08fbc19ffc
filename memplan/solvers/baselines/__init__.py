"""Planners of others, to compare with: one file for each, in Python, over NumPy or a library.

Each is a function `solve(run)`, which is told all about a call by its `Run` and hands its plans to
it. None is used by `auto`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from memplan.errors import MissingExtraError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.solvers import registry
from memplan.solvers.baselines._run import Run
from memplan.solvers.native import Progress, Round

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
    """Return the plan of one planner, and whether Ctrl-C cut it short, as `native.solve` does.

    Raises
    ------
    MissingExtraError
        If the library that it needs is not installed.
    MemplanError
        If an option has a value that it does not know.
    """
    known = registry.SOLVERS[solver]
    for library in known.libraries:
        if find_spec(library) is None:
            raise MissingExtraError(
                f"{solver} needs the library {library}: pip install 'memplan[{known.extra}]'"
            )
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
    module = importlib.import_module(f"memplan.solvers.baselines.{known.module}")
    interrupted = False
    try:
        if not run.settled:
            module.solve(run)
    except KeyboardInterrupt:
        interrupted = True
    if trace is not None:
        trace(run.round(interrupted))
    return run.plan(), interrupted
