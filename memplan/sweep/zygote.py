"""The warm process of a worker: it has one thread, has imported all that solves, and forks.

    Dask worker             zygote                      task
    (threads)  -- orders -> (memplan is imported)
                            fork -------------------->  limits, one solve, the referee
               <- outcome - waits, kills at the limit <-  JSON, end

A task needs a process of its own: so its memory is its own, its crash is not the worker's, and a
hang can be killed. A fresh Python costs some 0.3 s before it can solve, three times a task of
100 ms; a fork of a process that has imported everything costs a few milliseconds. The Dask worker
cannot be what is forked: it has threads, and a lock that another thread holds at the fork is held
forever in the child. This process has one thread and solves nothing but a problem of two buffers at
its start, so that every task begins in the same state.

It ends when the other end of its pipe is closed, which is also how it learns that its worker was
killed: nothing is left behind.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from io import BytesIO
from math import ceil
from multiprocessing.connection import Connection
from typing import IO, NoReturn

from memplan.bench import exchange
from memplan.bench.child import ending
from memplan.bench.rows import Outcome, Request, last_line
from memplan.bench.worker import answer
from memplan.errors import MemplanError
from memplan.problem import Problem
from memplan.view.units import human

READY = b"ready"
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, beside the problem, which comes as the bytes of `exchange`.

    Attributes
    ----------
    request
        As `memplan.bench.worker` answers it; its path is not used.
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

    def text(self) -> bytes:
        """Return it as it goes through a pipe."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, text: bytes) -> Order:
        """Return what `text` made."""
        values = json.loads(text)
        request, modules = Request(**values["request"]), tuple(values["modules"])
        return cls(**{**values, "request": request, "modules": modules})


def main() -> None:
    """Answer orders until the other end of the pipe is closed; argument 1 is its descriptor."""
    worker = Connection(int(sys.argv[1]))
    _warm_up()
    # What lives now lives on: a collection in a child would only copy its pages.
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryFile() as complaints, suppress(EOFError, OSError):
        worker.send_bytes(READY)
        last, problem = b"", Problem([])
        while True:
            order, written = Order.of(worker.recv_bytes()), worker.recv_bytes()
            for name in order.modules:
                with suppress(ImportError):  # the task says so, in its own words
                    import_module(name)
            if written != last:  # the solvers come by turns: many tasks share a problem
                last, problem = written, exchange.read(BytesIO(written))
            outcome = _forked(order, problem, worker, complaints)
            worker.send_bytes(json.dumps(asdict(outcome)).encode())


def _warm_up() -> None:
    """Do once here what every child would do for the first time: imports, tables of symbols."""
    answer(
        Problem.from_arrays([0, 0], [1, 1], [1, 1]),
        Request("", "greedy", "min_peak", 1.0, None, 1, 0, 1),
    )


def _forked(order: Order, problem: Problem, worker: Connection, complaints: IO[bytes]) -> Outcome:
    """Run an order in a child of its own; return its outcome, or how it ended without one."""
    complaints.seek(0)
    complaints.truncate()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        worker.close()
        os.close(readable)
        _task(order, problem, writable, complaints.fileno())
    os.close(writable)
    with suppress(OSError):  # both set it, so that it holds whoever comes first
        os.setpgid(child, child)
    try:
        said = _wait(readable, worker, order.seconds)
        if said is None:
            _kill_group(child)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(readable)
        _kill_group(child)  # also what the task has started and left
    if said is None:
        return Outcome(
            "killed", error=f"it was killed after {order.seconds:.0f} s, far past its time-out"
        )
    if status == 0:
        return Outcome(**json.loads(said))
    complaints.seek(0)
    reason = last_line(complaints.read().decode(errors="replace"))
    return Outcome("error", error=f"{ending(os.waitstatus_to_exitcode(status))}: {reason}")


def _wait(task: int, worker: Connection, seconds: float) -> bytes | None:
    """Return what a task says until its end; None if it takes longer.

    Raises
    ------
    EOFError
        If the worker is gone.
    """
    deadline = time.monotonic() + seconds
    said = bytearray()
    while True:
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([task, worker.fileno()], [], [], left)
        if worker.fileno() in ready:  # it asks for one thing at a time, so that this is its end
            raise EOFError
        if not ready:
            return None
        chunk = os.read(task, _CHUNK)
        if not chunk:
            return bytes(said)
        said += chunk


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS: the latter for a zombie
        os.killpg(leader, signal.SIGKILL)


def _task(order: Order, problem: Problem, said: int, complaints: int) -> NoReturn:
    """Be the child: solve, say how it went, end. Nothing of the parent is cleaned up here."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(complaints, 1)
        os.dup2(complaints, 2)
        _limit(order)
        with os.fdopen(said, "wb") as file:
            file.write(json.dumps(asdict(_outcome(order, problem))).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _limit(order: Order) -> None:
    _at_most(resource.RLIMIT_CORE, 0)
    # RLIMIT_AS would also count what is only reserved, as allocators and libraries do.
    _at_most(resource.RLIMIT_DATA, order.memory)
    # The zygote kills it long before; this is for a task whose zygote was killed. No RLIMIT_CPU:
    # under one, Linux counts the CPU time of a process by the tick, 4 ms, and here it is measured.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ceil(order.seconds) + 1)


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
