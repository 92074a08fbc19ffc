"""Colours for classes of buffers: types of operators, kinds, modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memplan.base.errors import quoted
from memplan.problem.columns import Column

if TYPE_CHECKING:
    from matplotlib.patches import Patch

__all__ = ["PALETTE", "Classes"]

# Okabe and Ito's colours, made for all kinds of sight; in the order in which they differ most.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")

_OTHERS = "#b0b0b0"


@dataclass(frozen=True)
class Classes:
    """Which class has which colour."""

    # Of the classes with most bytes, the most first, as many as there are colours.
    colours: dict[str, str]
    others: int  # how many classes share grey

    @classmethod
    def of(cls, pictures: Iterable[tuple[Sequence[str], Column]]) -> Classes:
        """Choose colours for several pictures, from class and size of every buffer of each."""
        made: Counter[str] = Counter()
        for classes, sizes in pictures:
            for name, size in zip(classes, sizes.tolist(), strict=True):
                made[name] += size
        most = sorted(made, key=lambda name: (-made[name], name))
        colours = dict(zip(most, PALETTE, strict=False))
        return cls(colours, len(most) - len(colours))

    def colour(self, name: str) -> str:
        """Return the colour of a class."""
        return self.colours.get(name, _OTHERS)

    @property
    def rows(self) -> int:
        """How many rows a legend has."""
        return len(self.colours) + bool(self.others)

    def patches(self) -> list[Patch]:
        """Return what a legend lists."""
        from matplotlib.patches import Patch

        rows = [(colour, quoted(name)[1:-1] or "unknown") for name, colour in self.colours.items()]
        if self.others:
            rows.append((_OTHERS, f"{self.others:,} other{'s' if self.others > 1 else ''}"))
        return [Patch(facecolor=colour, label=label) for colour, label in rows]
