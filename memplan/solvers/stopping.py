"""Ctrl-C ends a question with its best answer so far: one guarantee, for all that take searches.

A question that many searches answer is asked within `stoppable`. After the first Ctrl-C, the search
that runs ends with its best answer, and each later one ends at once, as if its time were over; so
what there is becomes the answer, and says that it was interrupted. What takes long without a search
asks `is_stopped`. A second Ctrl-C ends everything.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memplan.base.errors import NoPlanError
from memplan.solvers.native import set_stopped

__all__ = ["Stop", "is_asked", "is_stopped", "note_interrupt", "stoppable"]


class Stop:
    """Whether Ctrl-C has ended a question."""

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        """End all searches of this thread, those to come too."""
        self.is_set = True
        set_stopped(True)

    def handle(self, number: int, frame: Any) -> None:
        """Take a signal; the second one is an ordinary Ctrl-C."""
        if self.is_set:
            raise KeyboardInterrupt
        self.set()


class _Threads(threading.local):
    stop: Stop | None = None


_of_thread = _Threads()


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ask a question, or a part of one, that Ctrl-C ends with its best answer so far.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C came before there was an answer, and at the second one.
    """
    outer = _of_thread.stop
    if outer is not None:
        yield outer
        return
    stop = _of_thread.stop = Stop()
    before = None
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before = signal.signal(signal.SIGINT, stop.handle)
    try:
        yield stop
    except NoPlanError:
        if stop.is_set:
            raise KeyboardInterrupt from None
        raise
    finally:
        _of_thread.stop = None
        set_stopped(False)
        if before is not None:
            signal.signal(signal.SIGINT, before)


def is_asked() -> bool:
    """Return whether this thread is in a question, so that others say that it was interrupted."""
    return _of_thread.stop is not None


def is_stopped() -> bool:
    """Return whether Ctrl-C has ended the question of this thread."""
    stop = _of_thread.stop
    return stop is not None and stop.is_set


def note_interrupt() -> bool:
    """End the question of this thread; return whether there is one."""
    stop = _of_thread.stop
    if stop is not None:
        stop.set()
    return stop is not None
