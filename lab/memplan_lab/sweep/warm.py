"""The worker's end of its warm processes: borrowed for a task, replaced when they die."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe

from memplan.errors import MemplanError
from memplan_lab.bench.rows import Outcome
from memplan_lab.sweep.forked import Work
from memplan_lab.sweep.zygote import READY

# Not `-m`, by which the module would be there twice.
_PROGRAM = "from memplan_lab.sweep.zygote import main; main()"

# What the zygote may take beyond the limit of a task: to kill it, and to answer.
_GRACE = 30.0
_START = 120.0  # seconds to import memplan; the disk of a cluster can be slow


class Zygote:
    """A process that forks for every task; see `memplan_lab.sweep.zygote`.

    Raises
    ------
    MemplanError
        If it does not start.
    """

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C on a terminal is for the sweep, which ends the rest
            # Threads that NumPy starts would not survive a fork.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        theirs.close()
        self._ahead: Work | None = None
        if self._answer(_START) != READY:
            self.close()
            raise MemplanError("the process that forks for tasks does not start")

    def run(self, work: Work, after: Work | None = None) -> Outcome:
        """Return how a task ended, whatever it did.

        Parameters
        ----------
        work
            The task.
        after
            The next one, if it is known, which is then made ready meanwhile.
        """
        known = work is self._ahead
        self._ahead = after
        try:
            self._pipe.send_bytes(pickle.dumps((None if known else work, after)))
        except OSError:
            said = None
        else:
            said = self._answer(work.order.seconds + _GRACE)
        if said is None:
            self.close()
            return Outcome("error", error="the process that forks for tasks died")
        outcome: Outcome = pickle.loads(said)
        return outcome

    def _answer(self, seconds: float) -> bytes | None:
        try:
            return self._pipe.recv_bytes() if self._pipe.poll(seconds) else None
        except (EOFError, OSError):
            return None

    @property
    def alive(self) -> bool:
        """Whether it can take another task."""
        return not self._pipe.closed and self._process.poll() is None

    def close(self) -> None:
        """End it, and its task."""
        self._pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_idle: list[Zygote] = []  # of this process; a worker with several threads has as many


@contextmanager
def borrowed() -> Iterator[Zygote]:
    """Lend a warm process that nobody else uses meanwhile."""
    zygote = _taken()
    try:
        yield zygote
    except BaseException:
        zygote.close()  # it may be in the middle of a task
        raise
    if zygote.alive:
        _idle.append(zygote)


def _taken() -> Zygote:
    while _idle:
        zygote = _idle.pop()
        if zygote.alive:
            return zygote
        zygote.close()
    return Zygote()
