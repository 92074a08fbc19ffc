"""Lines of text as tables: on a terminal, and in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

DASH = "–"


def terminal(
    title: str, headings: Sequence[str], lines: Iterable[Sequence[str]], left: Collection[int]
) -> RenderableType:
    """Return a table; columns are flush right but for those of `left`, the first two unbroken."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for at, heading in enumerate(headings):
        made.add_column(heading, justify="left" if at in left else "right", no_wrap=at < 2)
    for line in lines:
        made.add_row(*map(Text, line))  # as it is: names may hold what Rich takes for markup
    return made


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]], left: Collection[int]) -> str:
    """Return the same table in Markdown."""
    rule = [":--" if at in left else "--:" for at in range(len(headings))]
    return "".join("| " + " | ".join(line) + " |\n" for line in (headings, rule, *lines))
