"""Bounds how many sizes all shapes of a model can have, before anything computes them.

A shape can be computed as data: one that is concatenated with itself forty times has more sizes
than fit in memory. The library that infers shapes has no limit for such data, so it is called only
if this bound is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from memplan.runtimes.onnx.operators import find_row
from memplan.runtimes.onnx.read.protos import numbers, subgraphs, tensor_type

__all__ = ["most_sizes"]

# By rule of `operators.TABLE`: the position of the input that holds the shape of the result.
_SHAPED_BY = {"reshape": 1, "expand": 1, "fill": 0, "tile": 1}
# For operators with these rules the library treats every tensor of one axis as a shape.
_COUNTED = frozenset({"counted", "join"})
_CEILING = 1 << 62  # bounds saturate here, so that they do not grow without limit


@dataclass(slots=True)
class _Bounds:
    """Upper bounds for tensors, by name."""

    rank: dict[str, int] = field(default_factory=dict)  # the number of axes
    # The number of elements, for tensors with known data.
    data: dict[str, int] = field(default_factory=dict)
    # The number of elements, for tensors that may have one axis.
    length: dict[str, int] = field(default_factory=dict)
    value: dict[str, int] = field(default_factory=dict)  # the value of a constant of one integer
    # The number of elements, for tensors with a declared shape.
    elements: dict[str, int] = field(default_factory=dict)
    total: int = 0  # the number of sizes in all shapes so far

    def declare(self, name: str, sizes: Sequence[int]) -> None:
        """Add the bounds that follow from a shape which the file declares."""
        self.rank[name] = max(self.rank.get(name, 0), len(sizes))
        self.elements[name] = abs(prod(sizes))
        if len(sizes) == 1:
            self.length[name] = max(self.length.get(name, 0), sizes[0])


def most_sizes(graph: Any, *, follow_data: bool) -> int:
    """Return an upper bound on the sizes in all shapes of a graph in order, saturating at 2^62.

    `follow_data` says that the library computes with shapes as data; otherwise only constants of
    the file count.
    """
    bounds = _Bounds()
    _bound(graph, bounds, follow_data)
    return min(bounds.total, _CEILING)


def _bound(graph: Any, bounds: _Bounds, follow_data: bool) -> None:
    rank, data = bounds.rank, bounds.data
    for one in graph.initializer:
        bounds.declare(one.name, one.dims)
        _take_constant(one.name, one, bounds)
    for one in graph.sparse_initializer:
        bounds.declare(one.values.name, one.dims)
    for value in (*graph.input, *graph.value_info, *graph.output):
        declared = tensor_type(value.type)
        if declared is not None:
            bounds.declare(value.name, [dim.dim_value for dim in declared.shape.dim])
            bounds.total += len(declared.shape.dim)
    for node in graph.node:
        for _, inner in subgraphs(node):
            _bound(inner, bounds, follow_data)
        axes = _axes(node, bounds)
        found = _data(node, bounds, follow_data)
        length = _length(node, bounds) if axes <= 1 else 0
        if find_row(node.op_type).grows in _COUNTED and follow_data:
            bounds.total += sum(bounds.length.get(name, 0) for name in node.input)
        for name in node.output:
            if name:
                # A declared shape counts too, as there may be no other bound.
                rank[name] = min(max(rank.get(name, 0), axes), _CEILING)
                data[name] = min(found, _CEILING)
                bounds.length[name] = min(max(bounds.length.get(name, 0), length), _CEILING)
                bounds.total += rank[name] + data[name]


def _take_constant(name: str, tensor: Any, bounds: _Bounds) -> None:
    bounds.data[name] = _elements(tensor)
    if bounds.data[name] == 1:
        width = 4 if tensor.data_type == 6 else 8
        held = [*tensor.int64_data, *tensor.int32_data]
        raw = int.from_bytes(tensor.raw_data[:width], "little", signed=True)
        bounds.value[name] = held[0] if held else raw


def _elements(tensor: Any) -> int:
    """Return how many sizes a constant can be: integers of at most one axis."""
    if len(tensor.dims) > 1 or tensor.data_type not in (6, 7):  # int32, int64
        return 0
    held = max(len(tensor.raw_data), len(tensor.int64_data), len(tensor.int32_data))
    return max(min(int(prod(tensor.dims)), held), 0)


def _axes(node: Any, bounds: _Bounds) -> int:
    """Return the most axes that a result has."""
    rule, given = find_row(node.op_type).grows, [bounds.rank.get(name, 0) for name in node.input]
    if rule in _SHAPED_BY:
        at = _SHAPED_BY[rule]
        shape = bounds.data.get(node.input[at], 0) if at < len(node.input) else 0
        return max([shape, *(given if rule in ("expand", "tile") else [])])
    if rule == "gather":
        return sum(given)
    if rule == "unsqueeze":
        more = bounds.data.get(node.input[1], 0) if len(node.input) > 1 else 0
        return max(given, default=0) + more + len(numbers(node, "axes"))
    return max(given, default=0) + (rule == "axis")


def _length(node: Any, bounds: _Bounds) -> int:
    """Return the most elements of a result that may have one axis."""
    rule = find_row(node.op_type).grows
    if rule == "range":
        return sum(abs(bounds.value.get(name, 0)) for name in node.input)
    given = [bounds.length.get(name, 0) for name in node.input]
    if rule in _SHAPED_BY:
        at = _SHAPED_BY[rule]
        asked = bounds.value.get(node.input[at], 0) if at < len(node.input) else 0
        if asked < 0:
            return max((bounds.elements.get(name, 0) for name in node.input[:1]), default=0)
        first = max(given[:1], default=0)
        return asked * max(first, 1) if rule == "tile" else max(asked, first)
    return sum(given) if rule == "join" else max(given, default=0)


def _data(node: Any, bounds: _Bounds, follow_data: bool) -> int:
    """Return the most elements of a result that is computed with as a shape."""
    rule = find_row(node.op_type).grows
    if rule == "constant":
        for one in node.attribute:
            if one.name == "value" and node.output:
                _take_constant(node.output[0], one.t, bounds)
                return bounds.data[node.output[0]]
        return len(numbers(node, "value_ints"))
    if not follow_data:
        return 0
    given = [bounds.data.get(name, 0) for name in node.input]
    if rule in _COUNTED and all(bounds.rank.get(name, 0) <= 1 for name in node.input):
        lengths = (bounds.length.get(name, 0) for name in node.input)
        given = list(map(max, given, lengths))
    if rule == "shape":
        return bounds.rank.get(node.input[0], 0) if node.input else 0
    if rule == "one":
        return 1
    if rule == "join":
        return sum(given)
    if rule == "gather" and len(given) > 1 and bounds.rank.get(node.input[1], 1) <= 1:
        return max(given[1], 1) if given[0] else 0
    return max(given, default=0)
