"""What targets say of a program in bands."""

from __future__ import annotations

from dataclasses import dataclass

from memplan.notes import Note
from memplan.rewrite.bands import Cut, Frontier

__all__ = ["Striped"]


@dataclass(frozen=True)
class Striped:
    """A program in bands.

    Attributes
    ----------
    given_peak, peak
        The most bytes that are live at one time, before and after.
    extra
        The work that was added, as a share of the multiplications of the program.
    cut
        What was cut; it has no regions if the program is as it was.
    frontier
        The other programs in bands that could have been chosen.
    notes
        What the reader of the program assumed.
    """

    given_peak: int
    peak: int
    extra: float
    cut: Cut
    frontier: Frontier
    notes: tuple[Note, ...] = ()
