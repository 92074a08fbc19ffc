"""Puts memplan in the place of tinygrad's memory planner.

    with memplan.targets.tinygrad.planning() as planned:
        step(x)  # what is captured or realized here

tinygrad's planner asks an allocator, TLSF, for an offset where a buffer begins, and gives it back
where the buffer ends. Here the planner runs twice: first with an allocator that only records what
it is asked for, and then with one that answers with the offsets of a plan. So lifetimes, lanes of
copies, holds and blocks are those of tinygrad, in each release whose planner uses this allocator.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np

from memplan.extras import require
from memplan.notes import Code, Note
from memplan.plan import Plan, Status
from memplan.problem import Problem
from memplan.referee import verify
from memplan.solvers import solve

__all__ = ["Arena", "Planned", "place_by_host", "planning"]

# Where the releases have their planner. What gets offsets is called `TLSFAllocator` in both.
_PLANNERS: Final = (
    ("tinygrad.schedule.memory", "memory_plan_rewrite"),  # from 0.13
    ("tinygrad.engine.memory", "_internal_memory_planner"),  # 0.10.3 to 0.12
)
_ALLOCATOR: Final = "TLSFAllocator"


class Arena:
    """One arena of a schedule: one lane of one device.

    Attributes
    ----------
    problem
        Its buffers, in the order in which they begin. Times count calls of the allocator.
    plan
        The offsets that tinygrad got.
    """

    def __init__(self, problem: Problem, host: Any, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self._host = host
        self._host_offsets: list[int] | None = None
        if plan.status is not Status.OPTIMAL and self.host_bytes < self.bytes:
            self.plan = Plan.of(
                problem, self.host_offsets, lower_bound=plan.lower_bound, solver="tlsf"
            )
        verify(problem, self.plan)

    @property
    def offsets(self) -> list[int]:
        """The offsets that tinygrad got, in bytes."""
        assert self.plan.offsets is not None
        return [int(offset) for offset in self.plan.offsets]

    @property
    def bytes(self) -> int:
        """The bytes of the arena."""
        return self.plan.peak or 0

    @property
    def host_bytes(self) -> int:
        """The bytes of the arena with tinygrad's own allocator, which runs for this question."""
        return int((np.array(self.host_offsets, np.int64) + self.problem.size).max(initial=0))

    @property
    def host_offsets(self) -> list[int]:
        """The offsets of tinygrad's own allocator."""
        if self._host_offsets is None:
            self._host_offsets = place_by_host(self.problem, self._host)
        return self._host_offsets


class Planned:
    """What `planning` did; it grows while schedules are planned.

    Attributes
    ----------
    calls
        The arenas of each schedule. Schedules that ask for the same share one `Arena`.
    notes
        Why tinygrad's own plan was kept; empty if memplan made all of them.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Arena, ...]] = []
        self.notes: list[Note] = []

    def _keep_host(self, why: str) -> None:
        note = Note(Code.HOST_PLANS, f"tinygrad's own plans are kept: {why}")
        if note not in self.notes:
            self.notes.append(note)


@contextmanager
def planning(*, nodes: int | None = 2_000, timeout: float | None = None) -> Iterator[Planned]:
    """Plan the memory of tinygrad's schedules while the context is open, in all threads.

    A plan is verified, and never has more bytes than tinygrad's own. What `TinyJit` captures keeps
    its plan when the context has ended. If the release has another kind of planner, tinygrad plans
    as without this context, and a note says so. Inside of another such context, this one changes
    nothing, and yields what the other one does.

    Parameters
    ----------
    nodes, timeout
        For each arena; see `memplan.solve`.

    Yields
    ------
    Planned
        The arenas, with tinygrad's own bytes, and notes.

    Raises
    ------
    MemplanError
        If tinygrad is not installed, and for arguments that `memplan.solve` refuses.
    """
    library = require("tinygrad", extra="tinygrad")
    solve(Problem(()), nodes=nodes, timeout=timeout)  # it rejects bad arguments before a run
    planned = Planned()
    found = _find_planner()
    if found is None:
        version = getattr(library, "__version__", "")
        planned._keep_host(f"memplan does not know the planner of this release {version}".rstrip())
        yield planned
        return
    module, stock = found
    if hasattr(stock, "planned"):  # this context is inside of another one, which plans
        yield stock.planned
        return
    arenas: dict[tuple[bytes, ...], Arena] = {}

    def find_arena(recorder: _Recorder) -> Arena:
        problem = recorder.make_problem()
        key = tuple(column.tobytes() for column in (problem.start, problem.end, problem.size))
        if key not in arenas:
            plan = solve(problem, nodes=nodes, timeout=timeout, threads=1)
            arenas[key] = Arena(problem, recorder.host, plan)
        return arenas[key]

    def plan(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            recorders = _record(module, stock, schedule, args, kwargs)
        except Exception as error:
            planned._keep_host(f"its planner is not as expected ({error!r})")
            return stock(schedule, *args, **kwargs)
        found = tuple(find_arena(recorder) for recorder in recorders)
        try:
            answer = _prescribe(module, stock, found, schedule, args, kwargs)
        except Exception as error:
            planned._keep_host(f"its planner did not take the offsets ({error!r})")
            return stock(schedule, *args, **kwargs)
        if found:
            planned.calls.append(found)
        return answer

    plan.planned = planned  # type: ignore[attr-defined]
    _replace(stock, plan)
    try:
        yield planned
    finally:
        _replace(plan, stock)


def _find_planner() -> tuple[ModuleType, Callable[..., Any]] | None:
    """Return the planner of the installed release and its module, if it is of a known kind."""
    for name, function in _PLANNERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, function) and hasattr(module, _ALLOCATOR):
            return module, getattr(module, function)
    return None


def _replace(old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Replace a function wherever modules of tinygrad have it: they import it by its name."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "tinygrad" and module is not None:
            for key, value in list(vars(module).items()):
                if value is old:
                    setattr(module, key, new)


class _RecordedError(Exception):
    """The planner has asked for all offsets."""


class _Recorder:
    """An allocator that records lifetimes; all of its offsets differ."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self._rows: list[list[int]] = []  # start, end, size
        self._live: dict[int, list[int]] = {}
        self._clock = self._top = 0

    def alloc(self, size: int) -> int:
        row, offset = [self._tick(), 0, size], self._top
        self._rows.append(row)
        self._live[offset] = row
        self._top += max(size, self.host.block_size)
        return offset

    def free(self, offset: int) -> None:
        self._live.pop(offset)[1] = self._tick()

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def make_problem(self) -> Problem:
        end = self._tick()
        for row in self._live.values():
            row[1] = end
        self._live.clear()
        start, stop, size = np.array(self._rows, np.int64).reshape(-1, 3).T
        alignment = np.full(len(size), self.host.block_size)
        return Problem.from_arrays(start, stop, size, alignment=alignment)


class _Prescriber:
    """An allocator that answers with the offsets of an arena."""

    def __init__(self, arena: Arena) -> None:
        self._offsets = iter(arena.offsets)

    def alloc(self, size: int) -> int:
        return int(next(self._offsets))

    def free(self, offset: int) -> None:
        pass


def _record(
    module: ModuleType,
    stock: Callable[..., Any],
    schedule: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[_Recorder]:
    """Return what the planner asks of its allocators, in the order in which it makes them."""
    recorders: list[_Recorder] = []
    make_host = getattr(module, _ALLOCATOR)

    def make(*given: Any, **named: Any) -> _Recorder:
        recorders.append(_Recorder(make_host(*given, **named)))
        return recorders[-1]

    def stop(*_: Any) -> None:
        raise _RecordedError

    replaced: dict[str, Any] = {_ALLOCATOR: make}
    if hasattr(module, "UOp"):  # it makes arenas by it when it has asked for all offsets
        replaced["UOp"] = SimpleNamespace(new_buffer=stop)
    with suppress(_RecordedError), _replaced(module, replaced):
        stock(schedule, *args, **kwargs)
    return recorders


def _prescribe(
    module: ModuleType,
    stock: Callable[..., Any],
    arenas: tuple[Arena, ...],
    schedule: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Return the planner's answer with the offsets of the arenas."""
    waiting = iter(arenas)
    answering = {_ALLOCATOR: lambda *_, **__: _Prescriber(next(waiting))}
    with _replaced(module, answering):
        return stock(schedule, *args, **kwargs)


@contextmanager
def _replaced(module: ModuleType, names: dict[str, Any]) -> Iterator[None]:
    """Replace what a module calls by these names."""
    stock = {name: getattr(module, name) for name in names}
    vars(module).update(names)
    try:
        yield
    finally:
        vars(module).update(stock)


def place_by_host(problem: Problem, host: Any) -> list[int]:
    """Return the offsets of an allocator that is asked in the order of time.

    Parameters
    ----------
    problem
        No two of its times are equal, as in `Arena`.
    host
        An unused `TLSFAllocator` of tinygrad.
    """
    starts = [(time, row, True) for row, time in enumerate(problem.start.tolist())]
    ends = [(time, row, False) for row, time in enumerate(problem.end.tolist())]
    sizes = problem.size.tolist()
    offsets = [0] * len(sizes)
    for _, row, begins in sorted(starts + ends):
        if begins:
            offsets[row] = host.alloc(sizes[row])
        else:
            host.free(offsets[row])
    return offsets
