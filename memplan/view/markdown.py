"""Comparisons as GitHub-flavoured Markdown, for a comment or a job's summary.

A name may hold any text. As code it is no HTML, no mention, no link; what could still end the code,
or the cell of the table, is written as numbers of characters.
"""

from __future__ import annotations

from memplan.base.errors import quoted
from memplan.view.comparison import Cell, Name, Report, Table

__all__ = ["format_code", "format_report"]


def format_report(report: Report) -> str:
    """Return sentences and tables as a document; it ends with a line break."""
    first, *others = report.sentences
    blocks = [f"**{first}**", *others]
    for table in report.tables:
        if table.title:
            blocks.append(f"#### {table.title}")
        blocks.append(_format_table(table))
        if table.rest:
            blocks.append(table.rest)
    blocks += [f"- {_escape(note)}" for note in report.notes]
    return "\n\n".join(blocks) + "\n"


def _escape(text: str) -> str:
    """Return a sentence with names of any kind in it as what Markdown and HTML read as text."""
    return "".join(c if c.isalnum() or c in " ,.:()" else f"&#{ord(c)};" for c in text)


def _format_table(table: Table) -> str:
    """Return the rows; names stand on the left, amounts on the right."""
    sides = [" :-- ", *[" --: "] * (len(table.columns) - 1)]
    lines = [_format_row(table.columns), f"|{'|'.join(sides)}|"]
    return "\n".join([*lines, *map(_format_row, table.rows)])


def _format_row(cells: tuple[Cell, ...]) -> str:
    return f"| {' | '.join(map(_format_cell, cells))} |"


def _format_cell(cell: Cell) -> str:
    if isinstance(cell, Name):
        return format_code(cell.text)
    return cell if isinstance(cell, str) else cell.text


def format_code(text: str) -> str:
    """Return any text as code that nothing in it can end, on one line, not too long."""
    plain = quoted(text)[1:-1]
    if not set(plain) & set("`|\\") and plain.strip():
        return f"`{plain}`"
    # Markdown still reads what stands in HTML's code, but leaves references to characters alone.
    letters = (each if each.isalnum() else f"&#{ord(each)};" for each in plain)
    return f"<code>{''.join(letters)}</code>"
