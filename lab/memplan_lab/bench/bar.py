"""The progress of a run on standard error: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread
from typing import Final

_PAUSE: Final = 10.0  # seconds between two lines in a file or a pipe

Announce = Callable[[str], None]  # called with the name of the next step


def no_step(_: str) -> None:
    """Show nothing."""


@contextmanager
def bar(total: int) -> Iterator[Announce]:
    """Show how many of `total` steps are done while the context lasts."""
    from rich.console import Console

    if not sys.stderr.isatty():
        with _tell_lines(total) as announce:
            yield announce
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    text = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        begun = count()
        yield lambda what: progress.update(task, completed=next(begun), description=what)


@contextmanager
def _tell_lines(total: int) -> Iterator[Announce]:
    """Write a line every ten seconds, also during a long step."""
    state: list[str] = []  # the names of the steps that have begun
    since, is_over = time.monotonic(), Event()

    def tell() -> None:
        while not is_over.wait(_PAUSE):
            at = f"{len(state)} of {total}: {state[-1]}" if state else f"{total} runs to do"
            sys.stderr.write(f"memplan: {time.monotonic() - since:.0f} s, {at}\n")
            sys.stderr.flush()

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield state.append
    finally:
        is_over.set()
        teller.join()
