"""What writers of bands ask of a cut: which rows and columns an operator takes, reads and makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memplan.levers.rewrite.bands import Action, Cut
from memplan.programs.graph.pictures import Span

__all__ = ["find_rules", "find_slices", "label_part"]


def find_slices(found: Cut, action: Action) -> list[tuple[int, int, int]]:
    """Return what a slice takes: for 0 (rows), 1 (columns) or both, the first and behind the last.

    They are counted from the beginning of what it is taken from.
    """
    _, given = found.part(action.inputs[0])
    _, taken = found.part(action.output)
    pairs = enumerate(zip(given, taken, strict=True))
    return [(at, a[0] - b[0], a[1] - b[0]) for at, (b, a) in pairs if a != b]


def find_rules(found: Cut, action: Action) -> Iterator[tuple[Any, Span, Span]]:
    """Yield, of rows and of columns, the rule of a part, which it is fed, and which it makes."""
    read = found.uncut.operators[action.step].reads[0]
    _, made = found.part(action.output)
    yield from zip((read.rows, read.columns), action.feeds[0], made, strict=True)


def label_part(found: Cut, tensor: int) -> str:
    """Return the end of the name of a part of a picture."""
    _, ((top, bottom), (left, right)) = found.part(tensor)
    return f" [{top}:{bottom}, {left}:{right}] ({tensor})"
