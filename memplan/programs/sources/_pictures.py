"""What the readers of models share to say which rows of its inputs an operator needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memplan.programs.graph.pictures import (
    Blocks,
    Each,
    Maps,
    Read,
    Size,
    WholeError,
    broadcast,
    join,
    require_size,
)

__all__ = ["RANK", "PictureCall", "describe"]

RANK = 4
_Shape = tuple[int, ...]


@dataclass(frozen=True)
class PictureCall:
    """An operator with what it reads; methods raise `WholeError` if that is no picture."""

    kind: str  # its type
    shapes: Sequence[_Shape | None]  # of its inputs, by position; `None` for one that is left out
    fixed: Sequence[bool]  # by position: whether it is a constant
    made: _Shape  # the shape of its first result
    row_axis: int  # that of rows in a shape of four axes; columns follow it

    def shape(self, at: int) -> _Shape:
        """Return the shape of an input; empty if there is none."""
        return (self.shapes[at] if at < len(self.shapes) else None) or ()

    def size(self, at: int) -> Size:
        """Return the rows and columns of an input."""
        return require_size(self.shape(at), self.row_axis, "an input")

    @property
    def result(self) -> Size:
        """The rows and columns of the result."""
        return require_size(self.made, self.row_axis, "its result")

    def each(self) -> Maps:
        """Return the maps of an operator on elements, of which some inputs may be broadcast."""
        return broadcast(self.shapes, self.result, self.fixed, self.row_axis)

    def first(self) -> Maps:
        """Return the maps of an operator on the channels of each point of its first input."""
        self.size(0)
        return {0: (Each(), Each())}

    def join(self, axis: int) -> Maps:
        """Return the maps of pictures that are joined along an axis."""
        for at in range(len(self.shapes)):
            self.size(at)
        return join([self.shape(at)[axis] for at in range(len(self.shapes))], axis, self.row_axis)

    def blocks(self, *, up: int = 1, down: int = 1) -> Maps:
        """Return the maps of blocks of rows that become channels, or the other way round."""
        self.size(0)
        return {0: (Blocks(up, down), Blocks(up, down))}


def describe(find_maps: Callable[[], Maps], indices: Sequence[int | None]) -> dict[str, Any]:
    """Return the fields `reads` and `why_whole` of an operator of a graph.

    `find_maps` returns the maps of its inputs, or raises `WholeError`; `indices` has by position
    the number of what it reads in the graph.
    """
    try:
        maps = find_maps()
        pictures = {indices[place] for place in maps}
        if sum(index in pictures for index in indices) > len(maps):
            raise WholeError("it reads a picture as a weight")
    except WholeError as why:
        return {"why_whole": str(why)}
    reads = tuple(Read(indices[place] or 0, *maps[place]) for place in sorted(maps))
    return {"reads": reads, "why_whole": ""}
