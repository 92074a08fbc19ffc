"""Solvers in a terminal: what each is, which constraints it supports, and its options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from memplan.view.words.parts import list_facts, make_table

__all__ = ["option_table", "solver_table"]

_NARROW = 80  # columns that every terminal has


def solver_table(
    rows: Iterable[tuple[str, str, Sequence[bool]]], constraints: Sequence[str]
) -> RenderableType:
    """Return the solvers by name: what each is, then the constraints that each supports.

    The constraints are rows and not columns, and there are several tables where one would not fit
    a narrow terminal.
    """
    rows = list(rows)
    parts: list[RenderableType] = [list_facts([(name, summary) for name, summary, _ in rows])]
    while rows:
        ends = accumulate((3 + len(name) for name, _, _ in rows), initial=len("constraint"))
        most = max(1, sum(end <= _NARROW for end in ends) - 1)
        made = make_table("constraint")
        for name, _, _ in rows[:most]:
            made.add_column(name, justify="center", no_wrap=True)
        for number, constraint in enumerate(constraints):
            marks = ["yes" if supported[number] else "-" for _, _, supported in rows[:most]]
            made.add_row(constraint, *marks)
        parts += ["", made]
        rows = rows[most:]
    return Group(*parts)


def option_table(name: str, options: Sequence[tuple[str, str, str]]) -> RenderableType:
    """Return the options of a solver: the name of each, its default, and what it does."""
    if not options:
        return Text(f"{name} has no options.")
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    made.add_column("option", no_wrap=True)
    made.add_column("default", no_wrap=True)
    made.add_column("means")
    for row in options:
        made.add_row(*row)
    return made
