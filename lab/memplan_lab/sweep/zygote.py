"""The warm process of a worker: it has one thread, has imported all that solves, and forks.

    Dask worker             zygote                      task
    (threads)  --- work --> (memplan is imported)
                            fork -------------------->  limits, one solve, the referee
               <- outcome - waits, kills at the limit <-  outcome, end

A task needs a process of its own: so its memory is its own, its crash is not the worker's, and a
hang can be killed. A fresh Python costs some 0.3 s before it can solve, three times a task of
100 ms; a fork of a process that has imported everything costs a few milliseconds. The Dask worker
cannot be what is forked: it has threads, and a lock that another thread holds at the fork is held
forever in the child. This process has one thread and solves nothing but a problem of two buffers at
its start, so that every task begins in the same state.

Even so, half of those milliseconds come before a solve. So the next task, where it is known, is
forked while one solves, and waits for its turn; but not as long as that may be a short solve, whose
time is for nobody to disturb.

It ends when the other end of its pipe is closed, which is also how it learns that its worker was
killed: nothing is left behind.
"""

from __future__ import annotations

import gc
import pickle
import sys
import tempfile
from contextlib import suppress
from itertools import cycle
from multiprocessing.connection import Connection
from typing import Any

from memplan_lab.bench.rows import Request
from memplan_lab.bench.worker import TWO, answer
from memplan_lab.sweep.forked import Forked

READY = b"ready"
_UNDISTURBED = 0.05  # seconds, in which all runs of a short solve are over


def main() -> None:
    """Answer works until the other end of the pipe is closed; argument 1 is its descriptor."""
    worker = Connection(int(sys.argv[1]))
    _warm_up()
    # What lives now lives on: a collection in a child would only copy its pages.
    gc.collect()
    gc.freeze()
    with suppress(EOFError, OSError):
        worker.send_bytes(READY)
        _serve(worker)


def _warm_up() -> None:
    """Do once here what every child would do for the first time: imports, tables of symbols."""
    answer(
        TWO,
        Request("", "greedy", "min_peak", 1.0, None, 1, 0, 1),
    )


def _serve(worker: Connection) -> None:
    """Run works, one after the other.

    Each message is a work, or None for the one that was announced before; and the next one, which
    is announced, or None.
    """
    announced: Any = None  # a `Work`, before it is asked for
    ahead: Forked | None = None  # its process
    with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as other:
        files = cycle((one, other))
        try:
            while True:
                work, after = pickle.loads(worker.recv_bytes())
                if ahead is not None and work is not None:
                    ahead.end()
                    ahead = None
                running = ahead or Forked(work or announced, worker, next(files))
                announced, ahead = after, None
                try:
                    running.begin()
                    if after is not None and not running.says_within(_UNDISTURBED):
                        ahead = Forked(after, worker, next(files))
                    worker.send_bytes(running.outcome())
                finally:
                    running.end()  # and its memory is free before another begins
        finally:
            if ahead is not None:
                ahead.end()
