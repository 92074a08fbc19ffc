"""Amounts of memory as bars, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from memplan.view.units import exact, human, percent
from memplan.view.words.tables import shorten

__all__ = ["Bars"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDE = 80  # columns from which on there is room for exact amounts
_LONGEST = 60  # columns of a bar
_GAPS = 6  # between a label, a bar, an amount and a share


class Bars:
    """A line for each amount: its label, a bar, its bytes, and its share of the first amount.

    Files and pipes get nothing, because the facts after the bars say the same.
    """

    def __init__(self, amounts: Sequence[tuple[str, int, str]]) -> None:
        self._amounts = amounts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        longest = max(count for _, count, _ in self._amounts)
        if not options.is_terminal or not longest:
            return
        room = options.max_width
        write = exact if room >= _WIDE else human
        shown = [write(count) for _, count, _ in self._amounts]
        shares = [percent(count, self._amounts[0][1]) for _, count, _ in self._amounts]
        amount_width, share_width = max(map(len, shown)), max(map(len, shares))
        spare = room - amount_width - share_width - _GAPS
        label_width = min(max(len(label) for label, _, _ in self._amounts), max(7, spare // 2))
        width = max(0, min(_LONGEST, spare - label_width))
        dots = "..." if options.ascii_only else "…"
        for (label, count, style), amount, share in zip(self._amounts, shown, shares, strict=True):
            bar = _draw(count, longest, width, options.ascii_only)
            label = shorten(label, label_width, dots)
            line = Text(f"{label:<{label_width}}  ", no_wrap=True, overflow="crop")
            line.append(f"{bar:<{width}}", style=style)
            line.append(f"  {amount:>{amount_width}}  {share:>{share_width}}", style=style)
            yield line
        yield Text()


def _draw(count: int, longest: int, width: int, ascii_only: bool) -> str:
    """Return a bar whose length says a share of the longest; above 0 it is at least seen."""
    if ascii_only:
        return "#" * (max(1, count * width // longest) if count and width else 0)
    eighths = max(1, count * width * 8 // longest) if count and width else 0
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
