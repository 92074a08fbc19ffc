"""A process of its own for every solve, forked from a warm process: the side of the caller.

    caller                  zygote                      solve
    (any threads) - work -> memplan is imported
                            fork -------------------->  limits, warm-up, one solve, the referee
              <- outcome -  waits, kills at the limit <-  outcome, end

A solve needs a process of its own: then its memory can be measured, a crash does not end the
caller, and a hang can be killed. A new Python needs some 0.3 s before it can solve, three times a
task of 100 ms; a fork of a process that has imported everything takes a few milliseconds. The
caller cannot be forked: it may have threads, and if another thread holds a lock at the fork, the
lock is held forever in the child. `memplan_lab.bench.zygote` runs in the warm process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe

from memplan.base.errors import MemplanError
from memplan.solvers import registry
from memplan_lab.bench.peers import is_omnimalloc
from memplan_lab.bench.rows import Outcome, Request

# `-m` would import the module twice, once under the name `__main__`.
_PROGRAM = "from memplan_lab.bench.zygote import main; main()"
READY = b"ready"

_START = 120.0  # seconds to import memplan; the disk of a cluster can be slow
# The seconds that a solve may take beyond its timeouts, to read and to check.
_GRACE = 10.0
_GRACE_PER_BUFFER = 2e-5
# The further seconds that the zygote may take, to kill the solve and to answer.
_GRACE_TO_KILL = 30.0


@dataclass(frozen=True, slots=True)
class Order:
    """What to run on a problem."""

    request: Request  # the request for `memplan_lab.bench.worker`
    capacity: int | None  # in bytes; replaces that of the problem
    seconds: float | None  # the time after which the process is killed; None for no limit
    # Bytes of data (heap, stacks, anonymous mappings) that the process may have, or None.
    memory: int | None
    modules: Sequence[str] = ()  # to import before the fork, so that no solve pays for it


@dataclass(frozen=True, slots=True)
class Work:
    """A solve as it is sent, with its problem as the bytes of `exchange`; needs no shared disk."""

    order: Order
    problem: bytes


def make_order(request: Request, n: int, capacity: int | None, memory: int | None = None) -> Order:
    """Return the order for a request on `n` buffers; capacity and memory are in bytes."""
    seconds = None
    if request.timeout is not None:
        seconds = request.repeat * request.timeout * 1.05 + _GRACE + _GRACE_PER_BUFFER * n
    return Order(request, capacity, seconds, memory, _modules(request.solver))


def _modules(spec: str) -> tuple[str, ...]:
    """Return the modules that a solver imports at its first call."""
    if is_omnimalloc(spec):
        return ("omnimalloc.allocators",)
    known = registry.SOLVERS[registry.parse(spec)[0]]
    if known.solve is None:
        return known.libraries
    return (*known.libraries, f"memplan_lab.baselines.{known.name}")


class Zygote:
    """A process that forks for every solve; see `memplan_lab.bench.zygote`."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C on a terminal goes to the caller, which ends the rest
            # Threads that NumPy starts would not survive a fork, and their CPU time would count as
            # the solver's.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        theirs.close()
        if self._receive(_START) != READY:
            self.close()
            raise MemplanError("the process that forks for each solve does not start")

    def run(self, work: Work) -> Outcome:
        """Return how a solve ended, even if it crashed or hung."""
        seconds = work.order.seconds
        try:
            self._pipe.send_bytes(pickle.dumps(work))
        except OSError:
            answer = None
        else:
            answer = self._receive(None if seconds is None else seconds + _GRACE_TO_KILL)
        if answer is None:
            self.close()
            return Outcome("error", error="the process that forks for solves died")
        outcome: Outcome = pickle.loads(answer)
        return outcome

    def _receive(self, seconds: float | None) -> bytes | None:
        try:
            return self._pipe.recv_bytes() if self._pipe.poll(seconds) else None
        except (EOFError, OSError):
            return None

    @property
    def alive(self) -> bool:
        """Whether it can take another solve."""
        return not self._pipe.closed and self._process.poll() is None

    def close(self) -> None:
        """End it, and its solve."""
        self._pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_idle: list[Zygote] = []  # of this process; each thread of a caller uses one of its own


@contextmanager
def borrow() -> Iterator[Zygote]:
    """Lend a warm process that no other thread uses meanwhile."""
    zygote = _take()
    try:
        yield zygote
    except BaseException:
        zygote.close()  # it may be in the middle of a solve
        raise
    if zygote.alive:
        _idle.append(zygote)


def _take() -> Zygote:
    while _idle:
        zygote = _idle.pop()
        if zygote.alive:
            return zygote
        zygote.close()
    return Zygote()


def close_idle() -> None:
    """End the warm processes that are not in use."""
    while _idle:
        _idle.pop().close()
