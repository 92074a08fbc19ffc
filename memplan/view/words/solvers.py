"""Solvers in a terminal: what each is, which constraints it supports, and its options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from memplan.view.words.parts import list_facts
from memplan.view.words.tables import Column, FittedTable

__all__ = ["option_table", "solver_table"]

_LINE = 30  # columns that a sentence about an option needs beside its name and default


def solver_table(
    rows: Iterable[tuple[str, str, Sequence[bool]]], constraints: Sequence[str]
) -> RenderableType:
    """Return the solvers by name: what each is, then the constraints that each supports.

    The constraints are rows and not columns, and there are several tables where one would not fit
    a narrow terminal.
    """
    rows = list(rows)
    summaries = list_facts([(name, summary) for name, summary, _ in rows])
    return Group(summaries, _Supported(rows, constraints))


class _Supported:
    """Tables of which solver supports which constraint, each no wider than the terminal."""

    def __init__(
        self, rows: Sequence[tuple[str, str, Sequence[bool]]], constraints: Sequence[str]
    ) -> None:
        self._rows, self._constraints = rows, constraints

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows, first = self._rows, max(map(len, ("constraint", *self._constraints)))
        while rows:
            ends = list(accumulate((2 + len(name) for name, _, _ in rows), initial=first))
            most = max(1, sum(end <= options.max_width for end in ends) - 1)
            made = FittedTable([Column("constraint"), *(Column(row[0]) for row in rows[:most])])
            for number, constraint in enumerate(self._constraints):
                marks = ["yes" if supported[number] else "-" for _, _, supported in rows[:most]]
                made.add_row(constraint, *marks)
            yield Text()
            yield made
            rows = rows[most:]


def option_table(name: str, options: Sequence[tuple[str, str, str]]) -> RenderableType:
    """Return the options of a solver: the name of each, its default, and what it does."""
    if not options:
        return Text(f"{name} has no options.")
    return _Options(options)


class _Options:
    """The options as a table whose sentences wrap; in a narrow terminal each as a paragraph."""

    def __init__(self, options: Sequence[tuple[str, str, str]]) -> None:
        self._rows = [("option", "default", "means"), *options]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = max(len(name) for name, _, _ in self._rows) + 2
        defaults = max(len(default) for _, default, _ in self._rows) + 2
        beside = options.max_width - names - defaults >= _LINE
        indent = names + defaults if beside else 2
        for number, (name, default, means) in enumerate(self._rows):
            style = "" if number else "bold"
            head = f"{name:<{names}}{default:<{defaults}}" if beside else f"{name}  {default}"
            lines = [str(line) for line in Text(means).wrap(console, options.max_width - indent)]
            if not beside:
                yield Text(head, style=style or "bold", overflow="crop")
                head = " " * indent
            for line in lines or [""]:
                yield Text((head + line).rstrip(), style=style)
                head = " " * indent
