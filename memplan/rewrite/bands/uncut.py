"""What is cut into bands: a graph whose operators say which rows they need, and its runtime."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Final

from memplan.graph import Graph, Operator, lay_out
from memplan.graph.pictures import Even, Map, Read, Size, Span, Told, Transposed, Window

__all__ = ["MANY", "Box", "Uncut", "find_scratch", "tell_rows"]

MANY: Final = 1 << 16  # bands that an operator joins, where its runtime has no limit

Box = tuple[Span, Span]
"""A part of a picture: its rows and its columns."""


@dataclass(frozen=True)
class Uncut:
    """A graph as it is, and what its runtime adds to bands.

    Attributes
    ----------
    graph
        Its outermost operators are those that can be done in parts.
    fan_in
        The most tensors that one operator may join.
    kept
        By operator: the bytes that the runtime keeps for it all the time.
    kept_by_copies
        The same for an operator that takes or joins bands.
    """

    graph: Graph
    fan_in: int = MANY
    kept: tuple[int, ...] = ()
    kept_by_copies: int = 0

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The outermost operators."""
        return self.graph.operators

    @property
    def rows_are_apart(self) -> bool:
        """Whether a row is one piece of memory, so that bands of rows can be views of the whole."""
        return self.graph.row_axis == 1

    @cached_property
    def sizes(self) -> tuple[Size | None, ...]:
        """By tensor: its rows and columns; `None` if it is not a picture of one item of a batch."""
        return tuple(map(self.graph.find_size, range(len(self.graph.tensors))))

    @cached_property
    def made(self) -> tuple[int, ...]:
        """By operator: its first output, or -1."""
        return tuple(operator.makes for operator in self.graph.operators)

    @cached_property
    def parts(self) -> dict[tuple[int, Box, bool], tuple[Box, tuple[Box, ...]]]:
        """What operators need for parts of their results, as far as it was asked for."""
        return {}

    def size(self, tensor: int) -> Size:
        """Return the rows and columns of a picture."""
        found = self.sizes[tensor]
        assert found is not None, "an operator that can be cut reads and makes pictures"
        return found

    def depth(self, tensor: int) -> int:
        """Return how many elements a point of a picture has."""
        return prod(self.graph.tensors[tensor].shape or ()) // prod(self.size(tensor))

    def bytes_of(self, tensor: int, box: Box) -> int:
        """Return the size of a part of a picture, in bytes."""
        rows, columns = self.size(tensor)
        return self.graph.tensors[tensor].bytes // (rows * columns) * area(box)

    def overhead(self, operator: int) -> int:
        """Return the bytes that the runtime keeps for an operator, or for a copy (-1)."""
        if operator < 0:
            return self.kept_by_copies
        return self.kept[operator] if self.kept else 0

    @property
    def macs(self) -> int:
        """Multiplications with addition of the whole program."""
        return sum(operator.macs for operator in self.operators)


def tell_rows(graph: Graph) -> Graph:
    """Return a graph for kernels that are told which rows of their result to make.

    They find the rows around a picture from these. What is not in the arena, as constants and
    what the caller keeps, they read where it is: no band of it is taken.
    """
    layout = lay_out(graph, pins=False)
    planned = {t for row in layout.rows for t in layout.storages[row].tensors}
    operators = tuple(_tell_operator(graph, each, planned) for each in graph.operators)
    return replace(graph, operators=operators)


def _tell_operator(graph: Graph, operator: Operator, planned: Container[int]) -> Operator:
    if operator.why_whole:
        return operator
    if operator.makes not in planned:
        return replace(operator, reads=(), why_whole="its result is not in the arena")
    reads = []
    for read in operator.reads:
        size = graph.find_size(read.tensor)
        if read.tensor in planned and size is not None:
            rules = (
                _tell(each, n) for each, n in zip((read.rows, read.columns), size, strict=True)
            )
            reads.append(Read(read.tensor, *rules))
    return replace(operator, reads=tuple(reads))


def _tell(rule: Map, size: int) -> Map:
    return Told(rule.free(size) if isinstance(rule, (Even, Window)) else rule)


def find_scratch(uncut: Uncut, operator: Operator, box: Box) -> int:
    """Return the scratch of an operator for a part of its result, in bytes.

    Scratch is what a graph calls a workspace, or a second result. A transposed convolution has an
    accumulator for each element; others need as much for a part as for the whole.
    """
    others = (uncut.graph.tensors[t].bytes for t in operator.outputs[1:])
    scratch = operator.workspace + sum(others)
    if not any(_is_transposed(read.rows) for read in operator.reads):
        return scratch
    return -(-scratch * area(box) // area(whole(uncut.size(operator.makes))))


def _is_transposed(rule: Map) -> bool:
    return isinstance(rule.rule if isinstance(rule, Told) else rule, Transposed)


def area(box: Box) -> int:
    """Return how many points a part of a picture has."""
    (top, bottom), (left, right) = box
    return (bottom - top) * (right - left)


def whole(size: Size) -> Box:
    """Return the box of a whole picture."""
    return (0, size[0]), (0, size[1])


def is_empty(box: Box) -> bool:
    """Return whether a box has no point."""
    (top, bottom), (left, right) = box
    return top == bottom or left == right


def hull(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around others."""
    if len(boxes) == 1:
        return boxes[0]
    rows, columns = zip(*boxes, strict=True)
    return (min(rows)[0], max(row[1] for row in rows)), (
        min(columns)[0],
        max(c[1] for c in columns),
    )


def is_inside(box: Box, other: Box) -> bool:
    """Return whether a box is a part of another one."""
    ((top, bottom), (left, right)), (rows, columns) = box, other
    return rows[0] <= top and bottom <= rows[1] and columns[0] <= left and right <= columns[1]
