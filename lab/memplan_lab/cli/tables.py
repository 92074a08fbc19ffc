"""How commands print a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memplan.cli import output

__all__ = ["show_table"]


def show_table(
    title: str, headings: Sequence[str], lines: Iterable[Sequence[str]], *, markdown: bool
) -> None:
    """Print a table on the terminal, or in Markdown and without the title."""
    from memplan_lab.bench import tables

    made = list(lines)
    if markdown:
        output.line(tables.markdown(headings, made, (0,)))
    else:
        output.console().print(tables.terminal(title, headings, made, (0,)))
