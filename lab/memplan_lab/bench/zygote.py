"""The warm process: it has one thread, has imported everything that solves, and forks.

It solves nothing except a problem of two buffers at its start, so that every solve begins in the
same state. It ends when the other end of its pipe is closed, also if its caller was killed.
`memplan_lab.bench.processes` is the side of the caller.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from math import ceil
from multiprocessing.connection import Connection
from typing import IO, NoReturn

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.view.units import human
from memplan_lab.bench import exchange
from memplan_lab.bench.child import describe_end
from memplan_lab.bench.processes import READY, Order, Work
from memplan_lab.bench.rows import Outcome, Request, last_line
from memplan_lab.bench.worker import TWO, answer, warm_up

_CHUNK = 1 << 16


def main() -> None:
    """Answer works until the other end of the pipe is closed; argument 1 is its descriptor."""
    caller = Connection(int(sys.argv[1]))
    # This does the imports and loads the tables of symbols, which every child would do otherwise.
    answer(TWO, Request("greedy", "min_peak", 1.0, None, 1, 0, 1))
    # Objects that live now stay: a collection in a child would only copy their pages.
    gc.collect()
    gc.freeze()
    with suppress(EOFError, OSError), tempfile.TemporaryFile() as complaints:
        caller.send_bytes(READY)
        while True:
            work: Work = pickle.loads(caller.recv_bytes())
            caller.send_bytes(_run(work, caller, complaints))


def _run(work: Work, caller: Connection, complaints: IO[bytes]) -> bytes:
    """Return the `Outcome` of a solve in a process of its own, pickled."""
    child, reader = _fork(work, caller, complaints)
    reaped = False
    try:
        found = _receive(reader, caller, work.order.seconds)
        if found is None:
            late = f"it was killed after {work.order.seconds:.0f} s, long after its timeout"
            return pickle.dumps(Outcome("killed", error=late))
        if found.endswith(pickle.STOP):
            return found
        # The pickle has no end, because the process was killed while it wrote, or before.
        _, status = os.waitpid(child, 0)
        reaped = True
        complaints.seek(0)
        reason = last_line(complaints.read().decode(errors="replace"))
        end = describe_end(os.waitstatus_to_exitcode(status))
        return pickle.dumps(Outcome("error", error=f"{end}: {reason}"))
    finally:
        os.close(reader)
        with suppress(ProcessLookupError, PermissionError):  # macOS: the latter for a zombie
            os.killpg(child, signal.SIGKILL)  # also kills what it has started
        if not reaped:
            os.waitpid(child, 0)  # so that its memory is free before another begins


def _fork(work: Work, caller: Connection, complaints: IO[bytes]) -> tuple[int, int]:
    """Return the process of a solve, and the end of a pipe from which its outcome comes."""
    for name in work.order.modules:
        with suppress(ImportError):  # the solve says so, in its own words
            import_module(name)
    problem = _read(work.problem)
    complaints.seek(0)
    complaints.truncate()
    reader, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(caller.fileno())
        os.close(reader)
        _be_child(work.order, problem, pipe, complaints.fileno())
    os.close(pipe)
    with suppress(OSError):  # parent and child both set it, so that it holds for the first of them
        os.setpgid(child, child)
    return child, reader


@lru_cache(maxsize=1)  # the solvers come by turns: many works share a problem
def _read(problem: bytes) -> Problem:
    return exchange.unpack(problem)


def _receive(reader: int, caller: Connection, seconds: float | None) -> bytes | None:
    """Return all that a process writes until it ends; None where that takes too long."""
    deadline = None if seconds is None else time.monotonic() + seconds
    found = bytearray()
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reader, caller.fileno()], [], [], left)
        if caller.fileno() in ready:
            raise EOFError
        if not ready:
            return None
        chunk = os.read(reader, _CHUNK)
        if not chunk:
            return bytes(found)
        found += chunk


def _be_child(order: Order, problem: Problem, pipe: int, complaints: int) -> NoReturn:
    """Run a solve in this process and end it, without the parent's cleanup."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(complaints, 1)
        os.dup2(complaints, 2)
        _limit(order)
        warm_up(order.request)
        with os.fdopen(pipe, "wb") as file:
            file.write(pickle.dumps(_solve(order, problem)))
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _limit(order: Order) -> None:
    _limit_to(resource.RLIMIT_CORE, 0)
    if order.memory is not None:
        # RLIMIT_AS would also count memory that allocators and libraries only reserve. RLIMIT_CPU
        # is not set, because under it Linux counts the CPU time of a process in ticks of 4 ms,
        # which is too coarse for what is measured here.
        _limit_to(resource.RLIMIT_DATA, order.memory)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if order.seconds is not None:
        # The parent kills it long before; this is for a solve whose parent was killed.
        signal.alarm(ceil(order.seconds) + 1)


def _limit_to(what: int, limit: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(what, (limit, limit))


def _solve(order: Order, problem: Problem) -> Outcome:
    try:
        outcome = answer(problem.with_capacity(order.capacity), order.request)
    except MemplanError as error:  # a pin above the capacity
        outcome = Outcome("error", error=str(error))
    except MemoryError:
        outcome = Outcome("error", error="MemoryError")
    out_of_memory = outcome.status == "error" and "MemoryError" in outcome.error.partition(":")[0]
    if out_of_memory and order.memory is not None:
        return outcome.with_status("error", f"it needs more memory than its {human(order.memory)}")
    return outcome
