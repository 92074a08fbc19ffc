"""Programs as pictures and operators on them, which is all that cutting into bands needs.

A target makes a `Program` from its own file, and later writes the operators of a `Cut` into it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import prod

from memplan.graph import Graph, lay_out
from memplan.rewrite.stripes.maps import Map, Span, Told, Window

__all__ = ["Box", "Program", "Read", "Size", "Step"]

Box = tuple[Span, Span]
"""A part of a picture: its rows and its columns."""

Size = tuple[int, int]
"""The rows and the columns of a picture."""


@dataclass(frozen=True, slots=True)
class Read:
    """A picture that an operator reads, and which part of it a part of the result needs."""

    tensor: int
    rows: Map
    columns: Map


@dataclass(frozen=True, slots=True)
class Step:
    """An outermost operator of a graph, as a step that can be done for a part of its result.

    Attributes
    ----------
    operator
        Its index in the graph.
    makes
        Its result, a tensor.
    reads
        The pictures among its inputs, each once for every place at which it is an input; none of
        those that kernels read where they are.
    macs
        Multiplications with addition for the whole result.
    why_whole
        Why it can only be done as a whole; empty if it can be done in parts.
    scratch_scales
        Whether a part needs scratch in proportion; otherwise as much as the whole.
    """

    operator: int
    makes: int = -1
    reads: tuple[Read, ...] = ()
    macs: int = 0
    why_whole: str = ""
    scratch_scales: bool = False


@dataclass(frozen=True)
class Program:
    """A graph with what is known of its operators.

    Attributes
    ----------
    graph
        The program as it is.
    steps
        By operator.
    sizes
        By tensor: its rows and columns; `None` if it is not a picture of one item of a batch.
    rows_are_apart
        Whether a row of a picture is one piece of memory, so that bands of rows can be views of
        the whole.
    fan_in
        The most tensors that one operator may join.
    kept
        By operator: the bytes that the runtime keeps for it all the time.
    kept_by_copies
        The same for an operator that takes or joins bands.
    """

    graph: Graph
    steps: tuple[Step, ...]
    sizes: tuple[Size | None, ...]
    rows_are_apart: bool
    fan_in: int
    kept: tuple[int, ...] = ()
    kept_by_copies: int = 0

    def size(self, tensor: int) -> Size:
        """Return the rows and columns of a picture."""
        found = self.sizes[tensor]
        assert found is not None, "a step that can be cut reads and makes pictures"
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

    def for_own_kernels(self) -> Program:
        """Return the program for kernels that are told which rows of their result to make.

        They find the rows around a picture from these. What is not in the arena, as constants and
        what the caller keeps, they read where it is: no band of it is taken.
        """
        layout = lay_out(self.graph, pins=False)
        planned = {t for row in layout.rows for t in layout.storages[row].tensors}
        steps = tuple(self._tell(step, planned) for step in self.steps)
        return replace(self, steps=steps, kept=(), kept_by_copies=0)

    def _tell(self, step: Step, planned: Container[int]) -> Step:
        if step.why_whole:
            return step
        if step.makes not in planned:
            return replace(step, reads=(), why_whole="its result is not in the arena")
        reads = []
        for read in step.reads:
            if read.tensor in planned:
                rows, columns = self.size(read.tensor)
                rules = _tell(read.rows, rows), _tell(read.columns, columns)
                reads.append(Read(read.tensor, *rules))
        return replace(step, reads=tuple(reads))

    @property
    def macs(self) -> int:
        """Multiplications with addition of the whole program."""
        return sum(step.macs for step in self.steps)


def _tell(rule: Map, size: int) -> Map:
    return Told(rule.free(size) if isinstance(rule, Window) else rule)


def area(box: Box) -> int:
    """Return how many points a part of a picture has."""
    (top, bottom), (left, right) = box
    return (bottom - top) * (right - left)


def whole(size: Size) -> Box:
    """Return the box of a whole picture."""
    return (0, size[0]), (0, size[1])


def is_empty(box: Box) -> bool:
    """Return whether a box has no point."""
    return area(box) == 0


def hull(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around others."""
    return (
        (min(box[0][0] for box in boxes), max(box[0][1] for box in boxes)),
        (min(box[1][0] for box in boxes), max(box[1][1] for box in boxes)),
    )


def is_inside(box: Box, other: Box) -> bool:
    """Return whether a box is a part of another one."""
    return all(b[0] <= a[0] and a[1] <= b[1] for a, b in zip(box, other, strict=True))
