"""Planners of others, to compare with: one file for each, in Python, over NumPy or a library.

Each is a function `solve(run)`, which reads a call from its `Run` and offers it plans. memplan
finds `SOLVERS` by the entry points `memplan.solvers`; `auto` uses none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType

from memplan.solvers.registry import PLAIN, Solver
from memplan.solvers.run import Run

__all__ = ["SOLVERS"]

_SHARED_OBJECTS = {
    "order": "which buffer is placed first: size (default, largest), start or end",
    "fit": "which free object is chosen: best (default, smallest), first or worst (largest)",
}
_CP_SAT = {
    "encoding": "pairs (default: which of two lies below) or no_overlap (rectangles)",
    "start": "start from greedy_by_size's plan and memplan's bound (off: the model alone)",
}
_MIP = {"start": "start from greedy_by_size's plan and memplan's bound (off: equation 2.1 alone)"}


def _planner(
    name: str,
    summary: str,
    options: Mapping[str, str] | None = None,
    *,
    keeps: Iterable[str],
    libraries: tuple[str, ...] = (),
    extra: str = "",
) -> Solver:
    return Solver(
        name,
        summary,
        PLAIN.union(keeps),
        MappingProxyType(options or {}),
        solve=partial(_run_module, name),
        libraries=libraries,
        extra=f"memplan-lab[{extra}]" if extra else "",
        is_refereed=False,  # a benchmark checks a plan outside of the time that it measures
    )


def _run_module(name: str, run: Run) -> None:
    """Let the module of a planner solve; it is imported now, with the library that it needs."""
    importlib.import_module(f"{__name__}.{name}").solve(run)


SOLVERS = (
    # The planners of MemoMalloc (section 2.3), the shared objects of static memory planning, and
    # those that TelaMalloc is compared with.
    _planner(
        "bump",
        "no sharing: each buffer above the one before it",
        keeps=["pins", "reserved", "gaps", "windows", "conflicts", "groups"],
    ),
    _planner(
        "gergov",
        "at most three times the load (Gergov 1999)",
        keeps=[],
    ),
    _planner(
        "shared_objects",
        "shared objects, each as large as its largest buffer",
        _SHARED_OBJECTS,
        keeps=["reserved", "gaps"],
    ),
    _planner(
        "mincost_flow",
        "shared objects by min-cost flow (Lee et al. 2019)",
        keeps=["reserved"],
        libraries=("ortools",),
        extra="ortools",
    ),
    _planner(
        "mip",
        "mixed-integer program over pair orders, by HiGHS",
        _MIP,
        keeps=["pins", "reserved", "gaps"],
        libraries=("highspy",),
        extra="mip",
    ),
    _planner(
        "cp_sat",
        "CP-SAT over pair orders or rectangles (TelaMalloc, 5.1)",
        _CP_SAT,
        keeps=["pins", "reserved", "gaps"],
        libraries=("ortools", "pandas"),
        extra="ortools",
    ),
    _planner(
        "bfc",
        "best fit with coalescing at run time (TensorFlow)",
        keeps=[],
    ),
    _planner(
        "tflm_greedy",
        "largest first, first fit (TensorFlow Lite Micro)",
        keeps=["pins", "reserved", "gaps"],
    ),
    _planner(
        "hill_climb",
        "swaps in a placement order around the bottleneck (Vela)",
        keeps=["pins", "reserved", "gaps"],
    ),
)
