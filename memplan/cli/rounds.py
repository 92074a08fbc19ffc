"""The rounds of a search as lines of JSON, for `--trace`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from memplan.base.files import writing

if TYPE_CHECKING:
    from memplan.solvers import Round

__all__ = ["open_log"]


@contextmanager
def open_log(path: str) -> Iterator[Callable[[Round], None]]:
    """Open a file for a trace; yield a function that writes a round as one line, at once.

    A file of this name is replaced. Unlike an output it is not written all at once, so that it
    shows what a search did which still runs, or was killed. The function raises a `FormatError` if
    it cannot write, which ends the search.
    """
    with ExitStack() as stack:
        with writing(path):
            os.makedirs(os.path.dirname(os.path.realpath(path)), exist_ok=True)
            file = open(path, "w", encoding="utf-8", newline="\n", buffering=1)  # noqa: SIM115

        def write(round: Round) -> None:
            line = round._replace(seconds=float(f"{round.seconds:.6f}"))._asdict()
            with writing(path):
                file.write(json.dumps(line) + "\n")

        def close() -> None:
            with suppress(OSError):  # `write` has raised already for a line that did not go out
                file.close()

        stack.callback(close)
        yield write
