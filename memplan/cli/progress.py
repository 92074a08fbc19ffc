"""The progress of a search on one line of standard error."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from memplan.view.units import human

if TYPE_CHECKING:
    from types import TracebackType

    from memplan.solvers import Progress

_PAUSE = 0.2  # seconds between two lines on a terminal
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows `Progress`: on a terminal one line, in place; otherwise a line for every change.

    It is a context manager, which clears the line on the terminal at the end.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._in_place = self._stream.isatty()
        # The first line waits for a pause, because a solve that ends at once needs none.
        self._shown_at = time.monotonic()
        self._known: tuple[object, ...] | None = None

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._in_place and self._known is not None:
            self._write(_CLEAR)

    def __call__(self, progress: Progress) -> None:
        """Show the progress, unless the last line is too recent or says the same."""
        now = time.monotonic()
        known = (progress.peak, progress.lower_bound)
        if now - self._shown_at < _PAUSE if self._in_place else known == self._known:
            return
        self._shown_at, self._known = now, known
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{_CLEAR}{format_progress(progress)[:width]}")
        else:
            self._write(f"memplan: {format_progress(progress)}\n")

    def _write(self, what: str) -> None:
        self._stream.write(what)
        self._stream.flush()


def format_progress(progress: Progress) -> str:
    """Return elapsed time, best plan, bound, gap and phase in a line."""
    peak = "no plan yet" if progress.peak is None else f"peak {human(progress.peak)}"
    gap = "" if progress.gap is None else f" (gap {progress.gap:.2%})"
    words = [
        f"{progress.seconds:6.1f} s",
        peak,
        f"bound {human(progress.lower_bound)}{gap}",
        progress.phase,
    ]
    return "  ".join(filter(None, words))
