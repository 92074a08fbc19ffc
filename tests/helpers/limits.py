"""Limits that keep a test from hanging: child processes end, and Ctrl-C reaches them."""

from __future__ import annotations

import functools
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0  # seconds for a child process, where a test asks for no other limit


def limit_children() -> None:
    """End every child process that is waited for longer than `PATIENCE`, and fail its test."""
    for name in ("wait", "communicate"):
        setattr(subprocess.Popen, name, _limit(getattr(subprocess.Popen, name)))


def _limit(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of Popen with a timeout, unless it is given one as its last argument."""

    @functools.wraps(method)
    def limited(child: subprocess.Popen[Any], *arguments: Any, **named: Any) -> Any:
        places = 1 if method.__name__ == "wait" else 2
        if len(arguments) == places or named.get("timeout") is not None:
            return method(child, *arguments, **named)
        try:
            return method(child, *arguments, **{**named, "timeout": PATIENCE})
        except subprocess.TimeoutExpired:
            child.kill()
            raise

    return limited


def restore_interrupts() -> None:
    """Make SIGINT interrupt again: a shell's background job ignores it, and so do its children."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
