"""Comparisons in a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.view.comparison import Amount, Cell, Name, Report, Table
from memplan.view.words import tables
from memplan.view.words.parts import escape_sentence, make_name, make_table

__all__ = ["comparison"]


def comparison(report: Report) -> RenderableType:
    """Return sentences and tables for Rich to print."""
    parts: list[RenderableType] = [Text(each, style="bold") for each in report.sentences]
    for each in report.tables:
        parts += [Text(), *_render_table(each)]
    parts += [Text(escape_sentence(note)) for note in report.notes]
    return Group(*parts)


def _render_table(one: Table) -> list[RenderableType]:
    made = make_table(*one.columns)
    for row in one.rows:
        made.add_row(*map(_render_cell, row))
    title = [Text(one.title, style="bold")] if one.title else []
    return [*title, made, *([Text(one.rest)] if one.rest else [])]


def _render_cell(cell: Cell) -> tables.Cell:
    if isinstance(cell, Name):
        return make_name(cell.text)
    if isinstance(cell, Amount):
        return tables.Cell(cell.text, brief=cell.brief)
    return tables.Cell(cell)
