"""A plan as a picture of characters, for terminals.

In a terminal with 256 colours, a character is two cells, one above the other; elsewhere it is one
cell, and buffers are letters. Names of buffers may hold any text, so that they are escaped: a
terminal must not take them for commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from memplan.base.errors import quoted
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import NONE, Column
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan
from memplan.problem.spans import spans
from memplan.view import cells
from memplan.view.cells import Grid
from memplan.view.classes import PALETTE
from memplan.view.curve import time_axis
from memplan.view.levels import Level, find_levels, find_top
from memplan.view.picture import offsets
from memplan.view.units import human, lifetime, plural
from memplan.view.verdict import Grade, verdict_of

__all__ = ["picture"]

_HEIGHT = 20  # lines, so that picture and table fit on a screen of 40
_NARROWEST = 10  # columns of the picture itself
_KEYS = "ABCDEFGHJKLM"  # for the buffers that the legend names; I looks like a wall
_MARKS = "#+o=:*%"  # for all other buffers, without colours
_DARK = frozenset(("#0072b2",))  # colours of the palette on which white reads better than black


def picture(
    problem: Asked, plan: Plan, width: int | None = None, height: int | None = None
) -> RenderableType:
    """Return the picture of a plan for Rich to print.

    Time runs to the right and addresses upwards, both linearly. A cell shows the buffer which holds
    most of it, and is empty only where no buffer holds any of it. The buffers with most cells have
    a key letter, which a table below explains. Lines mark capacity, peak and lower bound.

    Parameters
    ----------
    problem, plan
        The problem and its plan; the order of the plan's buffers does not matter.
    width
        In characters, labels included; `None` is the width of the terminal.
    height
        In lines, of the picture without its labels; `None` is 20.

    Raises
    ------
    PlanError
        If the plan has no offsets, or none for some buffer.
    """
    problem = problem_of(problem)
    return _Picture(problem, plan, offsets(problem, plan), width, height or _HEIGHT)


@dataclass(frozen=True)
class _Picture:
    problem: Problem
    plan: Plan
    offset: Column
    width: int | None
    height: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        held = spans(self.problem)
        marked = find_levels(self.problem, self.plan, self.offset)
        end = find_top(marked)
        yield self._facts(marked, end)
        if not len(held.buffer):
            yield Text("no buffer holds anything at any time")
            return
        coloured = _has_colours(console, options)
        labels = self._labels(marked, end)
        margin = max(map(len, labels.values()))
        columns = max(_NARROWEST, (self.width or options.max_width) - margin - 2)
        rows = self.height * (2 if coloured else 1)
        grid = cells.find_owners(held, self.offset, end, columns, rows)
        keys = {row: key for (row, _), key in zip(cells.count_cells(grid), _KEYS, strict=False)}
        ink = _Blocks(grid, keys) if coloured else _Letters(grid, keys)

        wall, corner, line, dash = "|+--" if options.ascii_only else "│└─┄"
        for at in range(self.height, -1, -1):
            label = labels.get(at, "")
            text = Text(f"{label:>{margin}} {wall}", no_wrap=True, overflow="crop")
            empty = dash if label else " "
            body = ink.line(at, empty) if at < self.height else Text(empty * columns)
            yield text.append_text(body)
        zero = f"{'0':>{margin}} {corner}{line * columns}"
        yield Text(zero, no_wrap=True, overflow="crop")
        yield Text(self._times(margin, columns), no_wrap=True, overflow="crop")
        yield self._legend(keys, ink)

    def _facts(self, marked: list[Level], end: int) -> Text:
        heights = [
            f"{level} (above the picture)" if level.bytes > end else str(level) for level in marked
        ]
        peak = int((self.offset + self.problem.size).max(initial=0))
        verdict = verdict_of(self.problem, self.plan, peak)
        # The plan may be one of other sizes: what its file says holds only if the referee agrees.
        status = verdict.text if verdict.grade is Grade.BAD else self.plan.status
        return Text("   ".join([plural(len(self.problem), "buffer"), *heights, status]))

    def _labels(self, marked: list[Level], end: int) -> dict[int, str]:
        """Return the labels of the lines just above levels; of two, that of the higher level."""
        labels: dict[int, str] = {}
        for level in marked:
            if level.bytes <= end:
                labels.setdefault(level.bytes * self.height // end, human(level.bytes))
        return labels

    def _times(self, margin: int, columns: int) -> str:
        loads = Loads(self.problem)
        section = loads.peak_section
        assert section is not None  # a problem in which no buffer holds anything has no picture
        first, last = int(loads.start[0]), int(loads.end[-1])
        peak = int(loads.start[section])
        column = (peak - first) * columns // (last - first)
        return " " * (margin + 2) + time_axis(str(first), str(peak), str(last), column, columns)

    def _legend(self, keys: dict[int, str], ink: _Blocks | _Letters) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("", min_width=1, no_wrap=True)
        table.add_column("buffer", no_wrap=True, overflow="ellipsis")
        for name in ("size", "lifetime", "offset"):
            table.add_column(name, no_wrap=True, justify="right")
        problem = self.problem
        for row, key in keys.items():
            table.add_row(
                Text(key, style=ink.style(row)),
                Text(quoted(problem.ids[row])[1:-1]),
                human(int(problem.size[row])),
                lifetime(int(problem.start[row]), int(problem.end[row])),
                f"{int(self.offset[row]):,}",
            )
        return table


def _has_colours(console: Console, options: ConsoleOptions) -> bool:
    # A terminal with 16 colours shows two of the palette as one.
    enough = console.color_system in ("256", "truecolor")
    return enough and not console.no_color and not options.ascii_only


class _Letters:
    """A character for every cell."""

    def __init__(self, grid: Grid, keys: dict[int, str]) -> None:
        self._grid = grid
        shades = cells.choose_shades(grid, len(_MARKS))
        self._marks = {row: keys.get(row, _MARKS[shade]) for row, shade in shades.items()}

    def line(self, at: int, empty: str) -> Text:
        return Text("".join(self._marks.get(row, empty) for row in self._grid[at].tolist()))

    def style(self, row: int) -> Style:
        return Style()


class _Blocks:
    """Two cells in a character, in colours; keys are in the middle of their buffers."""

    def __init__(self, grid: Grid, keys: dict[int, str]) -> None:
        self._lower, self._upper = grid[::2], grid[1::2]
        self._shade = cells.choose_shades(grid, len(PALETTE))
        self._keys = dict(self._place_keys(keys))

    def _place_keys(
        self, keys: dict[int, str]
    ) -> Iterator[tuple[tuple[int, int], tuple[str, Style]]]:
        """Find a character in the middle for every key; half of one where there is no whole."""
        for row, key in keys.items():
            lower, upper = self._lower == row, self._upper == row
            whole = lower & upper
            y, x = np.nonzero(whole if whole.any() else lower | upper)
            best = np.argmin((2 * (y - y.mean())) ** 2 + (x - x.mean()) ** 2)
            yield (int(y[best]), int(x[best])), (key, self.style(row))

    def line(self, at: int, empty: str) -> Text:
        pairs = zip(self._upper[at].tolist(), self._lower[at].tolist(), strict=True)
        drawn = [self._character(at, x, *pair, empty) for x, pair in enumerate(pairs)]
        text = Text()
        for style, run in groupby(drawn, key=itemgetter(1)):
            text.append("".join(map(itemgetter(0), run)), style)
        return text

    def _character(
        self, at: int, column: int, upper: int, lower: int, empty: str
    ) -> tuple[str, Style]:
        if (at, column) in self._keys:
            return self._keys[at, column]
        if upper == lower:
            return (empty, Style.null()) if upper == NONE else (" ", self.style(upper))
        if upper == NONE:
            return "▄", Style(color=self._colour(lower))
        if lower == NONE:
            return "▀", Style(color=self._colour(upper))
        return "▀", Style(color=self._colour(upper), bgcolor=self._colour(lower))

    def style(self, row: int) -> Style:
        colour = self._colour(row)
        on_it = "#ffffff" if colour in _DARK else "#000000"
        return Style(color=on_it, bgcolor=colour, bold=True)

    def _colour(self, row: int) -> str:
        return PALETTE[self._shade[row]]
