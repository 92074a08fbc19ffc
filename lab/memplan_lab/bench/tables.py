"""Lines of text as a table: on a terminal, and in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

DASH = "–"


@dataclass(frozen=True)
class Shown:
    """A table that is ready to be printed."""

    title: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    left: Collection[int] = (0,)  # columns that are flush left

    def markdown(self) -> str:
        """Return the table in Markdown, without its title."""
        rule = [":--" if at in self.left else "--:" for at in range(len(self.headings))]
        lines = (self.headings, rule, *self.lines)
        return "".join("| " + " | ".join(line) + " |\n" for line in lines)

    def terminal(self) -> Table:
        """Return the table for a terminal; its first two columns are not broken."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        made = Table(
            title=self.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
        )
        for at, heading in enumerate(self.headings):
            made.add_column(heading, justify="left" if at in self.left else "right", no_wrap=at < 2)
        for line in self.lines:
            made.add_row(*map(Text, line))  # as it is: names may hold what Rich takes for markup
        return made
