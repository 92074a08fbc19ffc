"""The library omnimalloc as a peer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from memplan.base.errors import MemplanError, UnsupportedError
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan_lab.extras import require

_NAME = "omnimalloc"

# A call to time, and what turns its result into a plan, outside of the timed part.
Job = Callable[[], Callable[[], Plan]]


def is_omnimalloc(solver: str) -> bool:
    """Whether a solver's name is `omnimalloc`, or `omnimalloc:ALLOCATOR`."""
    return solver.partition(":")[0] == _NAME


def prepare(problem: Problem, solver: str, timeout: float | None, threads: int, seed: int) -> Job:
    """Return the call to time: allocation alone, not the making of the library's own objects."""
    omnimalloc = require("omnimalloc", extra="peers")
    default = require("omnimalloc.allocators", extra="peers").DEFAULT_ALLOCATOR
    _refuse_unsupported(problem)
    omnimalloc.set_max_threads(threads)
    name = solver.partition(":")[2] or default
    allocator = _allocator(name, timeout, threads, seed)
    rows = np.flatnonzero(problem.size)  # it takes no buffers of size 0
    since = int(problem.start.min()) if len(problem) else 0  # nor negative times
    allocations = tuple(
        omnimalloc.Allocation(row, size, start - since, end - since, pin if pin >= 0 else None)
        for row, size, start, end, pin in zip(
            rows.tolist(),
            problem.size[rows].tolist(),
            problem.start[rows].tolist(),
            problem.end[rows].tolist(),
            problem.pin[rows].tolist(),
            strict=True,
        )
    )
    # `solve`, where there is one, also says whether the result is proved to be the best.
    run = getattr(allocator, "solve", allocator.allocate)

    def job() -> Callable[[], Plan]:
        result = run(allocations)
        return lambda: _plan(problem, solver, result)

    return job


def _refuse_unsupported(problem: Problem) -> None:
    for present, what in (
        (problem.has_alignment, "alignments"),
        (problem.has_gaps, "gaps"),
        (problem.has_reserved, "reserved ranges"),
        (problem.has_conflicts, "conflicts beside lifetimes"),
        (problem.has_groups, "groups"),
    ):
        if present:
            raise UnsupportedError(f"omnimalloc has no {what}, and this problem has some")


def _allocator(name: str, timeout: float | None, threads: int, seed: int) -> Any:
    from omnimalloc.allocators import BaseAllocator

    known = BaseAllocator.registry()
    if name not in known:
        raise MemplanError(
            f"omnimalloc has no allocator {name!r}; it has {', '.join(sorted(known))}"
        )
    wanted: dict[str, float] = {"num_threads": threads, "seed": seed}
    if timeout is not None:
        wanted["timeout"] = timeout
    taken = inspect.signature(known[name]).parameters
    return known[name](**{key: value for key, value in wanted.items() if key in taken})


def _plan(problem: Problem, solver: str, result: Any) -> Plan:
    offsets = np.maximum(problem.pin, 0)
    for allocation in getattr(result, "allocations", result):
        offsets[allocation.id] = allocation.offset
    free = problem.with_capacity(None)
    plan = Plan.of(free, offsets, lower_bound=problem.max_load, solver=solver)
    if getattr(result, "proved_optimal", False) and plan.peak is not None:
        return Plan.of(free, offsets, status=Status.OPTIMAL, lower_bound=plan.peak, solver=solver)
    return plan
