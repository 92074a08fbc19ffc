"""A process for one task, forked from one that is warm: it gets ready, waits for its turn, solves.

    parent                          child
    fork ------------------------>  limits, warm-up
    begin ------------------------> one solve, the referee
    outcome <---------------------- end

Between the fork and its turn, which may come much later, it holds what it has copied and no more.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from math import ceil
from multiprocessing.connection import Connection
from typing import IO, NoReturn

from memplan.errors import MemplanError
from memplan.problem import Problem
from memplan.view.units import human
from memplan_lab.bench import exchange
from memplan_lab.bench.child import ending
from memplan_lab.bench.rows import Outcome, Request, last_line
from memplan_lab.bench.worker import answer, warm_up

_CHUNK = 1 << 16
_TURN = b"!"


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, beside the problem.

    Attributes
    ----------
    request
        As `memplan_lab.bench.worker` answers it; its path is not used.
    capacity
        In bytes, in place of the problem's.
    seconds
        After which the task is killed.
    memory
        Bytes of data (heap, stacks, anonymous mappings) that it may have.
    modules
        To import before the fork, so that tasks do not pay for it.
    """

    request: Request
    capacity: int | None
    seconds: float
    memory: int
    modules: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """A task as it travels, its problem as the bytes of `exchange`: nothing is on a shared disk."""

    order: Order
    problem: bytes


class Forked:
    """The process of a task, as its parent sees it.

    Parameters
    ----------
    work
        The task.
    worker
        Nothing comes through it before the outcome is sent; so what comes is its end.
    complaints
        A file for what the process writes where it should not; nobody else's meanwhile.
    """

    def __init__(self, work: Work, worker: Connection, complaints: IO[bytes]) -> None:
        for name in work.order.modules:
            with suppress(ImportError):  # the task says so, in its own words
                import_module(name)
        problem = _read(work.problem)
        self._order, self._worker, self._complaints = work.order, worker, complaints
        complaints.seek(0)
        complaints.truncate()
        self._code: int | None = None
        turn, self._turn = os.pipe()
        self._said, said = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            for ours in (worker.fileno(), self._turn, self._said):
                os.close(ours)
            _run(work.order, problem, turn, said, complaints.fileno())
        os.close(turn)
        os.close(said)
        with suppress(OSError):  # both set it, so that it holds whoever comes first
            os.setpgid(self._child, self._child)

    def begin(self) -> None:
        """Say that it is its turn; its time runs from here."""
        self._deadline = time.monotonic() + self._order.seconds
        with suppress(BrokenPipeError):  # it has crashed already
            os.write(self._turn, _TURN)

    def says_within(self, seconds: float) -> bool:
        """Return whether it speaks, or ends, in this time.

        Raises
        ------
        EOFError
            If the worker is gone.
        """
        ready, _, _ = select.select([self._said, self._worker.fileno()], [], [], seconds)
        if self._worker.fileno() in ready:
            raise EOFError
        return bool(ready)

    def outcome(self) -> bytes:
        """Return its `Outcome`, pickled, or how it ended without one.

        Raises
        ------
        EOFError
            If the worker is gone.
        """
        said = bytearray()
        while self.says_within(max(0.0, self._deadline - time.monotonic())):
            chunk = os.read(self._said, _CHUNK)
            if chunk:
                said += chunk
            else:  # a task that was killed while it spoke has not come to the end
                return bytes(said) if said.endswith(pickle.STOP) else self._crash()
        late = f"it was killed after {self._order.seconds:.0f} s, far past its time-out"
        return pickle.dumps(Outcome("killed", error=late))

    def _crash(self) -> bytes:
        code = self._reaped()
        self._complaints.seek(0)
        reason = last_line(self._complaints.read().decode(errors="replace"))
        return pickle.dumps(Outcome("error", error=f"{ending(code)}: {reason}"))

    def _reaped(self) -> int:
        if self._code is None:
            _, status = os.waitpid(self._child, 0)
            self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def end(self) -> None:
        """End it, whatever it is at, and what it has started and left."""
        os.close(self._turn)
        os.close(self._said)
        _kill_group(self._child)
        self._reaped()


@lru_cache(maxsize=1)  # the solvers come by turns: many tasks share a problem
def _read(problem: bytes) -> Problem:
    return exchange.read(BytesIO(problem))


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS: the latter for a zombie
        os.killpg(leader, signal.SIGKILL)


def _run(order: Order, problem: Problem, turn: int, said: int, complaints: int) -> NoReturn:
    """Be the child, to its end. Nothing of the parent is cleaned up here."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(complaints, 1)
        os.dup2(complaints, 2)
        _limit(order)
        warm_up(order.request)
        if os.read(turn, 1) == _TURN:  # and not its parent's end
            # The parent kills it long before; this is for a task whose parent was killed.
            signal.alarm(ceil(order.seconds) + 1)
            with os.fdopen(said, "wb") as file:
                file.write(pickle.dumps(_outcome(order, problem)))
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _limit(order: Order) -> None:
    _at_most(resource.RLIMIT_CORE, 0)
    # RLIMIT_AS would also count what is only reserved, as allocators and libraries do. And no
    # RLIMIT_CPU: under one, Linux counts the CPU time of a process by the tick, 4 ms, and here it
    # is measured.
    _at_most(resource.RLIMIT_DATA, order.memory)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _at_most(what: int, limit: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(what, (limit, limit))


def _outcome(order: Order, problem: Problem) -> Outcome:
    try:
        outcome = answer(problem.with_capacity(order.capacity), order.request)
    except MemplanError as error:  # a pin above the capacity
        outcome = Outcome("error", error=str(error))
    except MemoryError:
        outcome = Outcome("error", error="MemoryError")
    if outcome.status == "error" and "MemoryError" in outcome.error.partition(":")[0]:
        return outcome.but("error", f"it needs more memory than its {human(order.memory)}")
    return outcome
