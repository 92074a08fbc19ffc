"""The parts of pages: tables and charts under a heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Table:
    """A table: lines of text under headings.

    Attributes
    ----------
    caption
        What it shows, in a sentence.
    headings
        Of the columns, k of them.
    lines
        Cells, k in each.
    left
        The columns that are flush left.
    """

    caption: str
    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    left: frozenset[int] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure.

    Attributes
    ----------
    name
        Of its file, without a suffix; distinct in a report.
    caption
        What it shows, in a sentence; it is also the text for readers who cannot see it.
    figure
        Attached to no display.
    """

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Section:
    """What the report says under a heading.

    Attributes
    ----------
    text
        Paragraphs, plain.
    blocks
        What follows them.
    """

    text: Sequence[str] = ()
    blocks: Sequence[Table | Chart] = ()
