"""One solver on one problem, measured and checked by the referee, in the caller's process."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from memplan.base.errors import MemplanError, PlanError, UnsupportedError
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee import verify
from memplan_lab.bench import peers
from memplan_lab.bench.memory import peak_rss_mib
from memplan_lab.bench.rows import Outcome, Request

T = TypeVar("T")

# A short run is repeated until these seconds or further runs are spent. The first run includes cold
# caches and new pages, which double the time of a run of 0.3 ms.
_SHORT = 0.02
_MORE = 10

# The C library may return the top of the heap to the system after a run, if nothing in use lies
# above it. The next run faults it in again, which doubles the time of a run of 0.2 ms. glibc stops
# doing so after a block of this size was freed, as in any program that works on arrays.
_KEPT = 16 << 20

TWO = Problem.from_arrays([0, 0], [1, 1], [1, 1])


def warm_up(request: Request) -> None:
    """Do what only a first solve does; `answer` will report errors.

    It loads libraries and models, and touches pages for the first time: a millisecond or more that
    belongs to the start of Python.
    """
    if peers.is_omnimalloc(request.solver):
        return
    from memplan.solvers import registry, solve  # not at the top: peers need no module of ours

    with suppress(Exception):
        bytearray(_KEPT)
        name, options = registry.parse(request.solver)
        first = request.solver if options or registry.SOLVERS[name].libraries else "auto"
        solve(TWO, solver=first, timeout=60)


def answer(problem: Problem, request: Request) -> Outcome:
    """Solve, measure and check; every failure becomes an outcome, so that a sweep continues."""
    try:
        if peers.is_omnimalloc(request.solver):
            return _run_peer(problem, request)
        return _run_solver(problem, request)
    except UnsupportedError as error:
        return Outcome("unsupported", error=str(error))
    except MemplanError as error:
        return Outcome("error", error=str(error))
    except Exception as error:  # a defect, ours or a peer's: it costs one row
        return Outcome("error", error=f"{type(error).__name__}: {error}")


def _run_solver(problem: Problem, request: Request) -> Outcome:
    from memplan.solvers import solve

    def prepare() -> Callable[[], Plan]:
        # A run stores computed values in the problem, which would save time in the next run.
        fresh = problem.with_capacity(problem.capacity)
        return lambda: solve(
            fresh,
            solver=request.solver,
            objective=request.objective,
            timeout=request.timeout,
            nodes=request.nodes,
            threads=request.threads,
            seed=request.seed,
        )

    plan, measured = _measure(prepare, request.repeat)
    outcome = replace(
        measured,
        status=plan.status.value,
        peak=plan.peak,
        lower_bound=plan.lower_bound,
        nodes=_count(plan, "nodes"),
        restarts=_count(plan, "restarts"),
        backtracks=_count(plan, "backtracks"),
    )
    try:
        if plan.has_offsets:
            verify(problem, plan)
    except PlanError as error:
        return replace(outcome, status="invalid", error=str(error))
    return outcome


def _run_peer(problem: Problem, request: Request) -> Outcome:
    finish, measured = _measure(
        lambda: peers.prepare(
            problem, request.solver, request.timeout, request.threads, request.seed
        ),
        request.repeat,
    )
    return peers.judge(problem, finish(), request.objective, measured)


def _measure(prepare: Callable[[], Callable[[], T]], repeat: int) -> tuple[T, Outcome]:
    """Run what `prepare` returns; return the last result, and times and memory as an outcome.

    It runs `repeat` times, and more often if a run is short. `prepare` is called before each run,
    and its time is not measured.
    """
    wall: list[float] = []
    cpu: list[float] = []
    gc.disable()  # a pause would count as time of the solver
    while len(wall) < repeat or (sum(wall) < _SHORT and len(wall) < repeat + _MORE):
        call = prepare()
        wall_begin, cpu_begin = time.perf_counter(), _cpu_seconds()
        result = call()
        cpu.append(_cpu_seconds() - cpu_begin)
        wall.append(time.perf_counter() - wall_begin)
    gc.enable()
    return result, Outcome("unknown", wall=tuple(wall), cpu=tuple(cpu), peak_rss_mib=peak_rss_mib())


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children (`mip` has one)."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _count(plan: Plan, name: str) -> int | None:
    value = plan.stats.get(name)
    return value if isinstance(value, int) else None
