"""What is cut into bands: a graph whose operators say which rows they need, and its runtime."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Final, NamedTuple

from memplan.programs.graph import Graph, Kind, Operator, lay_out
from memplan.programs.graph.pictures import Even, Map, Read, Size, Span, Told, Transposed, Window

__all__ = ["MANY", "Box", "Part", "Uncut", "tell_rows"]

MANY: Final = 1 << 16  # bands that an operator joins, where its runtime has no limit

Box = tuple[Span, Span]
"""A part of a picture: its rows and its columns."""


class Part(NamedTuple):
    """What an operator does for a wanted part of its result."""

    made: Box  # the part that it makes, in which the wanted one is
    feeds: tuple[Box, ...]  # for each read, the part of the input that it is fed
    is_fed: tuple[bool, ...]  # for each read, whether that part has a point
    padded: Box | None  # the only feed with zeros around it, if the operator gets them from a copy
    macs: int  # multiplications with addition
    scratch: int  # bytes that it holds while it runs
    bytes: int  # of what it makes
    # The tensors that it is fed parts of, with the bytes of the largest part; -1 is the copy with
    # zeros around.
    fed: tuple[tuple[int, int], ...]


class _Axis(NamedTuple):
    """The same along one axis."""

    made: Span
    feeds: tuple[Span, ...]
    padded: Span | None


@dataclass(frozen=True)
class Uncut:
    """A graph as it is, and what its runtime adds to bands."""

    graph: Graph  # its outermost operators are those that can be done in parts
    fan_in: int = MANY  # the most tensors that one operator may join
    kept: tuple[int, ...] = ()  # by operator: the bytes that the runtime keeps for it all the time
    kept_by_copies: int = 0  # the same for an operator that takes or joins bands

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
    def bytes_of_points(self) -> tuple[int, ...]:
        """By tensor: the bytes of a point of it, if it is a picture."""
        sized = zip(self.graph.tensors, self.sizes, strict=True)
        return tuple(0 if size is None else each.bytes // prod(size) for each, size in sized)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """By tensor: the elements of a point of it, if it is a picture."""
        sized = zip(self.graph.tensors, self.sizes, strict=True)
        return tuple(0 if n is None else prod(each.shape or ()) // prod(n) for each, n in sized)

    @cached_property
    def wholes(self) -> tuple[Box, ...]:
        """By tensor: all rows and columns of it, none if it is no picture."""
        return tuple(((0, 0), (0, 0)) if size is None else whole(size) for size in self.sizes)

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """By operator: the tensors of its reads."""
        return tuple(tuple(read.tensor for read in each.reads) for each in self.graph.operators)

    @cached_property
    def fixed(self) -> frozenset[int]:
        """Tensors of which no view is taken, as they are not in the arena."""
        kinds = (Kind.CONSTANT, Kind.VARIABLE)
        tensors = enumerate(self.graph.tensors)
        return frozenset(at for at, tensor in tensors if tensor.kind in kinds)

    @cached_property
    def last_readers(self) -> dict[int, int]:
        """By tensor that is read: the last operator that reads it, which may be the caller."""
        found: dict[int, int] = {}
        for at, outer in enumerate(self.graph.operators):
            for inner in outer.walk():
                found.update(dict.fromkeys(inner.inputs, at))
                for block in inner.blocks:
                    found.update(dict.fromkeys(block.outputs, at))
        found.update(dict.fromkeys(self.graph.outputs, len(self.graph.operators)))
        return found

    @cached_property
    def _parts(self) -> dict[tuple[int, Box, bool], Part]:
        return {}

    @cached_property
    def _axes(self) -> dict[tuple[int, int, Span, bool], _Axis]:
        return {}

    @cached_property
    def _rules(self) -> dict[tuple[int, int, bool], tuple[Map, ...]]:
        return {}

    def find_part(self, at: int, wanted: Box, *, pads: bool) -> Part:
        """Return what an operator does for a wanted part; bands of all regions ask for the same.

        With `pads`, windows get zeros around what they are fed. A `ValueError` says that no part of
        its inputs is enough.
        """
        found = self._parts.get((at, wanted, pads))
        if found is None:
            rows, columns = (self._find_axis(at, each, wanted[each], pads) for each in (0, 1))
            made = (rows.made, columns.made)
            feeds = tuple(zip(rows.feeds, columns.feeds, strict=True))
            padded = None
            if rows.padded is not None and columns.padded is not None:
                padded = (rows.padded, columns.padded)
            operator = self.graph.operators[at]
            points = area(made), prod(self.size(operator.makes))
            macs = -(-operator.macs * points[0] // points[1])
            scratch = self._find_scratch(operator, *points)
            is_fed = tuple(area(fed) > 0 for fed in feeds)
            size = self.bytes_of(operator.makes, made)
            fed = self._measure_feeds(self.reads[at], feeds, padded)
            found = Part(made, feeds, is_fed, padded, macs, scratch, size, fed)
            self._parts[at, wanted, pads] = found
        return found

    def _measure_feeds(
        self, reads: Sequence[int], feeds: Sequence[Box], padded: Box | None
    ) -> tuple[tuple[int, int], ...]:
        if padded is not None and padded != feeds[0]:
            return ((-1, self.bytes_of(reads[0], padded)),)
        sizes: dict[int, int] = {}
        for tensor, fed in zip(reads, feeds, strict=True):
            sizes[tensor] = max(sizes.get(tensor, 0), self.bytes_of(tensor, fed))
        return tuple(sizes.items())

    def _find_axis(self, at: int, axis: int, wanted: Span, pads: bool) -> _Axis:
        key = (at, axis, wanted, pads)
        if key not in self._axes:
            operator = self.graph.operators[at]
            pads = pads and _pads_zeros(operator)
            rules = self._find_rules(at, axis, pads)
            result = self.size(operator.makes)[axis]
            found = [
                rule.feed(wanted, self.size(read.tensor)[axis], result)
                for rule, read in zip(rules, operator.reads, strict=True)
            ]
            made = {each.made for each in found} or {wanted}
            if len(made) != 1:
                raise ValueError("its inputs are padded in different ways")
            padded = None
            if pads and isinstance(rules[0], Window):
                before, after = rules[0].pads(*found[0])
                padded = (found[0].fed[0] - before, found[0].fed[1] + after)
            self._axes[key] = _Axis(made.pop(), tuple(each.fed for each in found), padded)
        return self._axes[key]

    def _find_rules(self, at: int, axis: int, pads: bool) -> tuple[Map, ...]:
        """Return the map of each read along an axis; with `pads`, windows have free padding."""
        key = (at, axis, pads)
        if key not in self._rules:
            rules = []
            for read in self.graph.operators[at].reads:
                rule = read.columns if axis else read.rows
                if pads and isinstance(rule, Window):
                    rule = rule.free(self.size(read.tensor)[axis])
                rules.append(rule)
            self._rules[key] = tuple(rules)
        return self._rules[key]

    def size(self, tensor: int) -> Size:
        """Return the rows and columns of a picture."""
        found = self.sizes[tensor]
        assert found is not None, "an operator that can be cut reads and makes pictures"
        return found

    def bytes_of(self, tensor: int, box: Box) -> int:
        """Return the size of a part of a picture, in bytes."""
        return self.bytes_of_points[tensor] * area(box)

    def _find_scratch(self, operator: Operator, points: int, all_: int) -> int:
        """Return the scratch of an operator for so many points of its result, of all, in bytes.

        Scratch is what a graph calls a workspace, or a second result. A transposed convolution has
        an accumulator for each element; others need as much for a part as for the whole.
        """
        others = (self.graph.tensors[tensor].bytes for tensor in operator.outputs[1:])
        scratch = operator.workspace + sum(others)
        if not any(_is_transposed(read.rows) for read in operator.reads):
            return scratch
        return -(-scratch * points // all_)

    @cached_property
    def overheads(self) -> tuple[int, ...]:
        """By operator: the bytes that the runtime keeps for it; the last one is for a copy (-1)."""
        return (*(self.kept or (0,) * len(self.operators)), self.kept_by_copies)

    @cached_property
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
    return graph.changed(operators=operators)


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


def _pads_zeros(operator: Operator) -> bool:
    """Return whether an operator is a window that may get zeros around its input from a copy."""
    if len(operator.reads) != 1:
        return False
    rules = (operator.reads[0].rows, operator.reads[0].columns)
    return all(isinstance(rule, Window) and rule.zeros for rule in rules)


def _is_transposed(rule: Map) -> bool:
    return isinstance(rule.rule if isinstance(rule, Told) else rule, Transposed)


def area(box: Box) -> int:
    """Return how many points a part of a picture has."""
    (top, bottom), (left, right) = box
    return (bottom - top) * (right - left)


def whole(size: Size) -> Box:
    """Return the box of a whole picture."""
    return (0, size[0]), (0, size[1])


def hull(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around others."""
    rows, columns = zip(*boxes, strict=True)
    (tops, bottoms), (lefts, rights) = zip(*rows, strict=True), zip(*columns, strict=True)
    return (min(tops), max(bottoms)), (min(lefts), max(rights))
