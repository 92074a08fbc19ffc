"""Tables that fit any width: columns are dropped by rank, and names are shortened in the middle.

A name is never wrapped and an amount is never cut. Where a table is wider than the terminal, first
amounts are written in their short form, then columns are dropped, those of the lowest rank first;
the room that is left over goes to the names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

__all__ = ["Cell", "Column", "FittedTable", "shorten", "shorten_end", "shorten_pair"]

Shorten = Callable[[str, int, str], str]

_GAP = 2  # characters between two columns
_ORDINARY = 80  # columns of a terminal for which `Column.least` is meant


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str  # on one line, with nothing that a terminal obeys
    brief: str = ""  # shown where the table is wider than the terminal; empty for the same text
    # How the text is shortened; `None` if it is never cut, as for amounts.
    cut: Shorten | None = None

    def form(self, brief: bool) -> str:
        """Return the text, or its short form."""
        return self.brief if brief and self.brief else self.text


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    header: str  # a column without a name is left out where all its cells are empty
    rank: int = 0  # columns of a higher rank are kept first where there is no room for all
    left: bool = False  # whether its cells begin at the left: texts do, amounts end at the right
    # Characters that a cell which can be cut keeps; in proportion on wide terminals.
    least: int = 12


class FittedTable:
    """Rows under headers, as wide as the terminal allows; the first column always stays."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._rows: list[list[Cell]] = []

    def add_row(self, *cells: Cell | str) -> None:
        """Add a row; a missing cell at its end is empty, and a string is never cut."""
        row = [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]
        self._rows.append(row + [Cell("")] * (len(self._columns) - len(row)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [[_spell(cell, options.ascii_only) for cell in row] for row in self._rows]
        shown, widths, brief = self._choose(rows, options.max_width)
        dots, rule = ("...", "-") if options.ascii_only else ("…", "─")
        columns = [self._columns[at] for at in shown]
        lines = [[Cell(column.header) for column in columns]]
        lines += [[row[at] for at in shown] for row in rows]
        for number, line in enumerate(lines):
            text = (" " * _GAP).join(
                _pad(cell.form(brief), width, cell.cut, dots, left=column.left or not place)
                for place, (cell, column, width) in enumerate(
                    zip(line, columns, widths, strict=True)
                )
            )
            style = "" if number else "bold"
            yield Text(text.rstrip(), style=style, no_wrap=True, overflow="crop")
            if not number:
                across = rule * (sum(widths) + _GAP * (len(widths) - 1))
                yield Text(across, no_wrap=True, overflow="crop")

    def _choose(self, rows: list[list[Cell]], room: int) -> tuple[list[int], list[int], bool]:
        """Return which columns are shown, how wide, and whether amounts are in short form."""
        every = [
            at
            for at, column in enumerate(self._columns)
            if at == 0 or column.header or any(row[at].text for row in rows)
        ]

        def find_spare(shown: list[int]) -> int:
            return room - sum(map(least.__getitem__, shown)) - _GAP * (len(shown) - 1)

        shown, brief = every, False
        least = {at: self._measure(rows, at, brief, room, least=True) for at in every}
        if find_spare(shown) < 0:
            shown, brief = every[:1], True
            least = {at: self._measure(rows, at, brief, room, least=True) for at in every}
            for at in sorted(every[1:], key=lambda at: -self._columns[at].rank):
                if find_spare([*shown, at]) >= 0:
                    shown.append(at)
            shown.sort()
        wanted = [self._measure(rows, at, brief, room, least=False) for at in shown]
        narrowest = [least[at] for at in shown]
        if find_spare(shown) < 0:  # not even the names have room
            narrowest = [room]
        return shown, _share_out(narrowest, wanted, find_spare(shown)), brief

    def _measure(
        self, rows: list[list[Cell]], at: int, brief: bool, room: int, *, least: bool
    ) -> int:
        column = self._columns[at]
        most = max(column.least, room * column.least // _ORDINARY)
        width = cell_len(column.header)
        for row in rows:
            natural = cell_len(row[at].form(brief))
            width = max(width, min(natural, most) if least and row[at].cut else natural)
        return width


def _share_out(least: list[int], wanted: list[int], spare: int) -> list[int]:
    """Give the columns what is left over: always one character to the narrowest that wants more."""
    widths = list(least)
    for _ in range(max(0, spare)):
        short = [at for at, width in enumerate(widths) if width < wanted[at]]
        if not short:
            break
        widths[min(short, key=lambda at: widths[at])] += 1
    return widths


def _spell(cell: Cell, ascii_only: bool) -> Cell:
    """Return the cell in characters that the terminal has, so that its width is known."""
    if not ascii_only or cell.text.isascii():
        return cell
    return Cell(cell.text.encode("ascii", "backslashreplace").decode(), cell.brief, cell.cut)


def _pad(text: str, width: int, cut: Shorten | None, dots: str, *, left: bool) -> str:
    if cut is not None and cell_len(text) > width:
        text = cut(text, width, dots)
    blank = " " * (width - cell_len(text))
    return text + blank if left else blank + text


def shorten(text: str, width: int, dots: str = "...") -> str:
    """Return a name in at most so many columns, with dots in the middle where it is longer."""
    if cell_len(text) <= width:
        return text
    room = width - len(dots)
    if room < 2:
        return _take(text, width)
    tail = _take(text[::-1], room // 2)[::-1]
    return _take(text, room - room // 2) + dots + tail


def shorten_end(text: str, width: int, dots: str = "...") -> str:
    """Return the beginning of a sentence in at most so many columns."""
    if cell_len(text) <= width:
        return text
    return _take(text, width - len(dots)) + dots if width > len(dots) else _take(text, width)


def shorten_pair(text: str, width: int, dots: str = "...") -> str:
    """Return "maker -> users" in at most so many columns, with both of them shortened."""
    maker, arrow, users = text.partition(" -> ")
    if not arrow or width < 12:
        return shorten(text, width, dots)
    room = width - len(arrow)
    half = min(cell_len(maker), max(room // 2, room - cell_len(users)))
    return shorten(maker, half, dots) + arrow + shorten(users, room - half, dots)


def _take(text: str, width: int) -> str:
    """Return as much of the beginning as so many columns hold; some letters take two columns."""
    taken, used = 0, 0
    for letter in text[: max(0, width)]:
        used += cell_len(letter)
        if used > width:
            break
        taken += 1
    return text[:taken]
