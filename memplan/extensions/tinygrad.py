"""Puts memplan in the place of tinygrad's memory planner.

    with memplan.extensions.tinygrad.planning() as planned:
        step(x)  # what is captured or realized here

tinygrad's planner asks an allocator, TLSF, for an offset where a buffer begins, and gives it back
where the buffer ends. Here the planner runs twice: first with an allocator that only records what
it is asked for, and then with one that answers with the offsets of a plan. So lifetimes, lanes of
copies, holds and blocks are those of tinygrad, in each release whose planner uses this allocator.
What runs is a copy of the planner with these allocators among its globals: tinygrad's modules keep
theirs, for other threads too.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, Final

import numpy as np

from memplan import solve
from memplan.base.errors import MemplanError
from memplan.base.extras import require
from memplan.base.notes import Code, Note
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify

__all__ = ["Arena", "Planned", "place_by_host", "planning"]

# Where the releases have their planner. What gets offsets is called `TLSFAllocator` in both.
_PLANNERS: Final = (
    ("tinygrad.schedule.memory", "memory_plan_rewrite"),  # from 0.13
    ("tinygrad.engine.memory", "_internal_memory_planner"),  # 0.10.3 to 0.12
)
_ALLOCATOR: Final = "TLSFAllocator"
# Held where a context begins or ends, and where a schedule is planned: what contexts share changes.
_LOCK: Final = threading.RLock()


class Arena:
    """One arena of a schedule: one lane of one device.

    Attributes
    ----------
    problem
        Its buffers, in the order in which they begin. Times count calls of the allocator.
    plan
        The offsets that tinygrad got.
    """

    def __init__(self, problem: Problem, make_host: Callable[[], Any], plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self._make_host = make_host
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
            self._host_offsets = place_by_host(self.problem, self._make_host())
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
    its plan when the context has ended. If memplan has no plan, because the release has another
    kind of planner or a buffer has more than 2^62 bytes, tinygrad plans as without this context,
    and a note says so. Threads plan one after the other. While another such context is open, also
    in another thread, this one yields what that one does, and the last one to end restores
    tinygrad's planner.

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
    with _LOCK:
        planner = _find_planner()
        if isinstance(planner, FunctionType):
            planner = _Planner(planner, partial(solve, nodes=nodes, timeout=timeout, threads=1))
        if planner is not None:
            planner.open()
    if planner is None:
        planned = Planned()
        version = getattr(library, "__version__", "")
        planned._keep_host(f"memplan does not know the planner of this release {version}".rstrip())
        yield planned
        return
    try:
        yield planner.planned
    finally:
        with _LOCK:
            planner.close()


class _Planner:
    """What the modules of tinygrad have for its planner while a context is open."""

    def __init__(self, stock: FunctionType, place: Callable[[Problem], Plan]) -> None:
        self.planned = Planned()
        self._stock = stock
        self._place = place
        self._arenas: dict[tuple[bytes, ...], Arena] = {}
        self._contexts = 0

    def open(self) -> None:
        self._contexts += 1
        if self._contexts == 1:
            _replace(self._stock, self)

    def close(self) -> None:
        self._contexts -= 1
        if self._contexts == 0:
            _replace(self, self._stock)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._contexts == 0:  # the caller has kept it
            return self._stock(*args, **kwargs)
        with _LOCK:
            try:
                recorders = _record(self._stock, args, kwargs)
                arenas = tuple(self._find_arena(recorder) for recorder in recorders)
                answer = _prescribe(self._stock, arenas, args, kwargs)
            except MemplanError as error:
                self.planned._keep_host(str(error))
            except Exception as error:
                self.planned._keep_host(f"its planner is not as expected ({error!r})")
            else:
                if arenas:
                    self.planned.calls.append(arenas)
                return answer
        return self._stock(*args, **kwargs)

    def _find_arena(self, recorder: _Recorder) -> Arena:
        problem = recorder.make_problem()
        key = tuple(column.tobytes() for column in (problem.start, problem.end, problem.size))
        if key not in self._arenas:
            self._arenas[key] = Arena(problem, recorder.make_host, self._place(problem))
        return self._arenas[key]


def _find_planner() -> FunctionType | _Planner | None:
    """Return what plans in the installed release, if it is of a known kind."""
    for name, function in _PLANNERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        planner = getattr(module, function, None)
        if isinstance(planner, _Planner):
            return planner
        # A copy of it gets other allocators only if it asks for them itself.
        if isinstance(planner, FunctionType) and _ALLOCATOR in _find_names(planner.__code__):
            return planner
    return None


def _find_names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function and in those within it."""
    inner = [_find_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


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

    def __init__(self, make_host: Callable[[], Any]) -> None:
        self.make_host = make_host
        self._block = int(make_host().block_size)
        self._rows: list[list[int]] = []  # start, end, size
        self._live: dict[int, list[int]] = {}
        self._clock = self._top = 0

    def alloc(self, size: int) -> int:
        row, offset = [self._tick(), 0, size], self._top
        self._rows.append(row)
        self._live[offset] = row
        self._top += max(size, self._block)
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
        columns = [[row[at] for row in self._rows] for at in range(3)]
        return Problem.from_arrays(*columns, alignment=[self._block] * len(self._rows))


class _Prescriber:
    """An allocator that answers with the offsets of an arena."""

    def __init__(self, arena: Arena) -> None:
        self._offsets = iter(arena.offsets)

    def alloc(self, size: int) -> int:
        return int(next(self._offsets))

    def free(self, offset: int) -> None:
        pass


def _record(stock: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Recorder]:
    """Return what the planner asks of its allocators, in the order in which it makes them."""
    recorders: list[_Recorder] = []
    make_host = stock.__globals__[_ALLOCATOR]

    def make(*given: Any, **named: Any) -> _Recorder:
        recorders.append(_Recorder(partial(make_host, *given, **named)))
        return recorders[-1]

    def stop(*_: Any, **__: Any) -> None:
        raise _RecordedError

    # When it has asked for all offsets it makes arenas, by a UOp or, up to 0.12, as a Buffer.
    makers = {"UOp": SimpleNamespace(new_buffer=stop), "Buffer": stop}
    with suppress(_RecordedError):
        _copy(stock, {_ALLOCATOR: make, **makers})(*args, **kwargs)
    return recorders


def _prescribe(
    stock: FunctionType, arenas: tuple[Arena, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the planner's answer with the offsets of the arenas."""
    waiting = iter(arenas)
    answering = {_ALLOCATOR: lambda *_, **__: _Prescriber(next(waiting))}
    return _copy(stock, answering)(*args, **kwargs)


def _copy(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """Return the function with other values of some globals, of which its module knows nothing."""
    code, names = function.__code__, {**function.__globals__, **names}
    answer = FunctionType(
        code, names, function.__name__, function.__defaults__, function.__closure__
    )
    answer.__kwdefaults__ = function.__kwdefaults__
    return answer


def place_by_host(problem: Problem, host: Any) -> list[int]:
    """Return the offsets of an unused `TLSFAllocator` of tinygrad, asked in order of time.

    No two times of the problem are equal, as in `Arena`.
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
