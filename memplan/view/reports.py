"""Reports as files: as text, and as a page of HTML."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType

if TYPE_CHECKING:
    from memplan.view.comparison import Cell, Report, Table

__all__ = ["format_page", "render_plain"]

_WIDTH = 140


def render_plain(what: RenderableType) -> str:
    """Return what a file gets of this, without spaces at the ends of lines."""
    file = io.StringIO()
    paper = Console(file=file, width=_WIDTH, markup=False, highlight=False, emoji=False)
    paper.print(what)
    return "".join(f"{each.rstrip()}\n" for each in file.getvalue().splitlines())


_STYLE = """\
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; margin: 0.5em 0 }
th, td { padding: 0.2em 0.8em; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
code { white-space: pre-wrap }"""


def format_page(report: Report, title: str) -> str:
    """Return a comparison as one HTML file that needs no network; names may hold any text."""
    first, *others = report.sentences
    blocks = [f"<h1>{escape(first)}</h1>", *(f"<p>{escape(each)}</p>" for each in others)]
    for table in report.tables:
        blocks += [f"<h2>{escape(table.title)}</h2>"] if table.title else []
        blocks.append(_format_table(table))
        blocks += [f"<p>{escape(table.rest)}</p>"] if table.rest else []
    if report.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
        blocks.append(f"<ul>{notes}</ul>")
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>'
    lines = ["<!doctype html>", '<html lang="en">', head, *blocks, "</html>", ""]
    return "\n".join(lines)


def _format_table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = ("".join(f"<td>{_format_cell(cell)}</td>" for cell in row) for row in table.rows)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}\n</table>"


def _format_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    from memplan.view.comparison import Name

    text = escape(cell.text)
    return f"<code>{text}</code>" if isinstance(cell, Name) else text
