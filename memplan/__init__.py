"""Static memory planning: place every buffer at an offset of one arena, and prove how well.

>>> import memplan as mp
>>> problem = mp.Problem([mp.Buffer("b1", start=0, end=3, size=4)], capacity=12)
>>> plan = mp.solve(problem)
>>> mp.verify(problem, plan)
>>> str(plan.status), plan.peak, plan.lower_bound, plan.offset("b1")
('optimal', 4, 4, 0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memplan import _core
from memplan.analysis.compare import compare
from memplan.analysis.explain import explain
from memplan.errors import (
    FormatError,
    MemplanError,
    MissingExtraError,
    PlanError,
    ProblemError,
    ProofError,
    UnsupportedError,
)
from memplan.plan import Plan, Status
from memplan.problem import Buffer, Gap, Problem, Reserved
from memplan.referee import verify
from memplan.repack.repacker import Repacker
from memplan.repack.selection import Selection, pack_most_valuable
from memplan.solvers import Budget, Interrupted, Progress, Round, lower_bound, solve

if TYPE_CHECKING:
    from memplan.analysis.inspection import inspect
    from memplan.formats import load_plan, save
    from memplan.paths import plan_paths
    from memplan.planning import Planned, plan_model
    from memplan.rewrite import Reordered, reorder, verify_order
    from memplan.sources import Loaded, load

__version__ = _core.version()

__all__ = [
    "Budget",
    "Buffer",
    "FormatError",
    "Gap",
    "Interrupted",
    "Loaded",
    "MemplanError",
    "MissingExtraError",
    "Plan",
    "PlanError",
    "Planned",
    "Problem",
    "ProblemError",
    "Progress",
    "ProofError",
    "Reordered",
    "Repacker",
    "Reserved",
    "Round",
    "Selection",
    "Status",
    "UnsupportedError",
    "__version__",
    "compare",
    "explain",
    "inspect",
    "load",
    "load_plan",
    "lower_bound",
    "pack_most_valuable",
    "plan_model",
    "plan_paths",
    "reorder",
    "save",
    "solve",
    "verify",
    "verify_order",
]


# A compiler that solves in memory does not wait for the readers of files.
_LATER = {
    "Loaded": "memplan.sources",
    "Planned": "memplan.planning",
    "Reordered": "memplan.rewrite",
    "inspect": "memplan.analysis.inspection",
    "load": "memplan.sources",
    "load_plan": "memplan.formats",
    "plan_model": "memplan.planning",
    "plan_paths": "memplan.paths",
    "reorder": "memplan.rewrite",
    "save": "memplan.formats",
    "verify_order": "memplan.rewrite",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
