"""What all targets say of pictures that are NCHW, and of a program in bands.

Rows are axis 2 and columns axis 3, so a band of rows lies in as many pieces of memory as there are
channels: bands are copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memplan.notes import Note
from memplan.rewrite.stripes import Cut, Each, Feed, Frontier, Map, Once, Resized, Size, Span

__all__ = [
    "FAN_IN",
    "Maps",
    "Spread",
    "Striped",
    "WholeError",
    "broadcast",
    "find_size",
    "require_picture",
    "resize",
]

FAN_IN: Final = 1 << 16  # joins take any number of bands
_RANK: Final = 4

Maps = dict[int, tuple[Map, Map]]
"""By position among the inputs: the maps of rows and of columns."""


class WholeError(Exception):
    """An operator can only be done as a whole; the sentence says why."""


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


@dataclass(frozen=True, slots=True)
class Spread:
    """A transposed convolution whose padding is free at both ends.

    Row i of the input adds to the `reach` rows from `i * stride - before` on. The reach is not less
    than the stride, so that every row of the result has one of the input.
    """

    reach: int
    stride: int
    before: int

    def feed(self, wanted: Span, size: int, result: int) -> Feed:
        """Return the rows that add to the wanted ones."""
        first = -(-(wanted[0] + self.before - self.reach + 1) // self.stride)
        last = (wanted[1] - 1 + self.before) // self.stride + 1
        begin = max(0, min(first, size - 1))
        return Feed((begin, min(size, max(last, begin + 1))), wanted)

    def pads(self, fed: Span, made: Span) -> Span:
        """Return how many rows to cut off at both ends; fewer than none are added."""
        first = fed[0] * self.stride - self.before
        last = (fed[1] - 1) * self.stride - self.before + self.reach
        return made[0] - first, last - made[1]


def find_size(shape: Sequence[int] | None) -> Size | None:
    """Return the rows and columns of a shape, or `None` if it is not that of one picture."""
    if shape is None or len(shape) != _RANK or shape[0] != 1 or min(shape) < 1:
        return None
    return shape[2], shape[3]


def require_picture(shape: Sequence[int] | None, what: str) -> Size:
    """Return the rows and columns of a shape; `what` has it."""
    size = find_size(shape)
    if size is None:
        if shape is not None and len(shape) == _RANK and shape[0] > 1:
            raise WholeError(f"{what} has a batch of {shape[0]}")
        raise WholeError(f"{what} has no rows and columns")
    return size


def broadcast(
    shapes: Sequence[tuple[int, ...] | None], result: Size, fixed: Sequence[bool]
) -> Maps:
    """Return the maps of an operator on elements.

    Parameters
    ----------
    shapes
        Of its inputs; `None` for one that is left out.
    result
        The rows and columns of its result.
    fixed
        Which inputs are constants.
    """
    maps: Maps = {}
    for at, shape in enumerate(shapes):
        if shape is None:
            continue
        spots = (1, 1, *shape)[-2:]
        if spots == (1, 1) and (fixed[at] or len(shape) != _RANK):
            continue  # the same values for all rows and columns
        size = require_picture(shape, "an input")
        rows, columns = (
            Each() if one == other else Once() for one, other in zip(size, result, strict=True)
        )
        maps[at] = (rows, columns)
    if not maps:
        raise WholeError("all its inputs are constants")
    return maps


def resize(size: Size, result: Size, before: int, after: int) -> tuple[Map, Map]:
    """Return the maps of a resize whose positions are exact in binary numbers.

    Row i of the result is interpolated between rows from `i // scale - before` to `... + after`.
    """
    rows, columns = (
        _resize_axis(one, other, before, after) for one, other in zip(size, result, strict=True)
    )
    return rows, columns


def _resize_axis(size: int, result: int, before: int, after: int) -> Map:
    if size == result:
        return Each()
    up, down = result // size, size // result
    if result == size * up and up.bit_count() == 1:
        return Resized(up=up, before=before, after=after)
    if size == result * down and down.bit_count() == 1:
        return Resized(down=down)
    raise WholeError(f"its scale of {size} to {result} is no power of two")
