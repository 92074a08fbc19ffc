"""The parts of pages: tables and charts under a heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memplan_lab.bench.tables import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure."""

    name: str  # of its file, without a suffix; distinct in a report
    caption: str  # what it shows, in a sentence; it is also the text for readers who cannot see it
    figure: Figure  # attached to no display


@dataclass(frozen=True, slots=True)
class Section:
    """What the report says under a heading."""

    text: Sequence[str] = ()  # paragraphs, plain
    blocks: Sequence[Shown | Chart] = ()  # what follows them
