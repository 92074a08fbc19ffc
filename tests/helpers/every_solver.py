"""The registry as parameters of tests: every solver, skipped where its library is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import memplan as mp
from memplan.solvers import registry

OURS = tuple(name for name, solver in registry.SOLVERS.items() if not solver.is_baseline)
BASELINES = tuple(name for name, solver in registry.SOLVERS.items() if solver.is_baseline)


def is_missing(solver: str) -> bool:
    """Whether a solver needs a library that is not installed."""
    return any(find_spec(library) is None for library in registry.SOLVERS[solver].libraries)


def param(solver: str, *values: object) -> Any:
    """Return a parameter of a test: the solver, and what goes with it."""
    reason = f"{' or '.join(registry.SOLVERS[solver].libraries)} is not installed"
    return pytest.param(
        solver, *values, marks=pytest.mark.skipif(is_missing(solver), reason=reason)
    )


EVERY = [param(solver) for solver in registry.SOLVERS]


def refuses(solver: str, problem: mp.Problem) -> bool:
    """Whether a solver lacks a constraint of a problem."""
    try:
        registry.check(solver, problem)
    except mp.UnsupportedError:
        return True
    return False
