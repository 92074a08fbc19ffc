"""The progress of a run, as a bar on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

Announce = Callable[[str], None]  # called with the name of the next step


def no_step(_: str) -> None:
    """Show nothing."""


@contextmanager
def bar(total: int) -> Iterator[Announce]:
    """Show a bar of `total` steps while the context lasts."""
    from rich.console import Console
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
