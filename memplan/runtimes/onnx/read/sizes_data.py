"""Sizes that depend on data: which are known nevertheless, which have a bound, which are equal.

The library leaves more open than it has to where an operator reads its sizes from data that is
not known before the run: of TopK it gives only the number of axes. What these rules say is what
ONNX defines, whatever the data is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from memplan.runtimes.onnx.read.protos import (
    known_shape,
    number,
    numbers,
    row_of,
    subgraphs,
    types_of,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import Array, Constants

__all__ = ["DataCall", "Size", "count_rounds", "sizes_of"]

_Shape = tuple[int, ...]


class Size(NamedTuple):
    """A size of a result."""

    known: int | None = None  # it, where it does not depend on data
    # A bound, where there is a useful one. What data could only make smaller than an input, as it
    # does a Slice, has none: a plan for all of the input would be a plan for another model.
    most: int | None = None
    # What it is the value of, or is counted in: sizes of one graph with the same key are equal.
    key: tuple[str | int, ...] = ()


_Sizes = list[Size] | None  # of an output; `None` if the number of axes is open
_OPEN = Size()
_MOST_AXES = 64


@dataclass(frozen=True)
class DataCall:
    """An operator of ONNX with what it reads."""

    node: Any
    opset: int
    # Of its inputs; `None` for one that is left out, or is no tensor.
    shapes: Sequence[_Shape | None]
    # Values of its inputs, `None` for those that are not known before the run.
    data: Sequence[Array | None]

    def element(self, at: int, place: int = 0) -> Size:
        """Return a size that is an element of an input."""
        return Size(key=(self.node.input[at], place))

    def shape(self, at: int) -> _Shape:
        """Return the shape of an input that must be there."""
        found = self.shapes[at]
        if found is None:
            raise LookupError
        return found

    def value(self, at: int) -> list[int] | None:
        """Return an input as whole numbers, or `None` if it is left out or not known."""
        found = self.data[at] if at < len(self.data) else None
        return None if found is None else [int(one) for one in found.ravel()]

    def count(self, at: int) -> int:
        """Return the number of elements of an input that must be there."""
        return prod(self.shape(at))

    def has(self, at: int) -> bool:
        """Whether an input is not left out."""
        return at < len(self.node.input) and bool(self.node.input[at])

    def number(self, name: str, default: int) -> int:
        """Return an attribute, or its default."""
        return number(self.node, name, default)

    def has_attribute(self, name: str) -> bool:
        """Return whether an attribute is not left out."""
        return any(one.name == name for one in self.node.attribute)


_Rule = Callable[[DataCall], Sequence[_Sizes]]


def sizes_of(call: DataCall) -> Sequence[_Sizes]:
    """Return what is known of the sizes of an operator's outputs, in order; nothing if nothing."""
    rule = _RULES.get(row_of(call.node).sizes)
    try:
        return () if rule is None else rule(call)
    except (ArithmeticError, LookupError, TypeError, ValueError):  # the inference says what is bad
        return ()


def _known(shape: Sequence[int]) -> list[Size]:
    return [Size(size) for size in shape]


def _all_open(axes: int) -> list[Size]:
    """Return so many open sizes; a file with very many is damaged, and nothing is known of it."""
    if axes > _MOST_AXES:
        raise ValueError
    return [_OPEN] * axes


def _open_along(shape: Sequence[int], axes: Sequence[int], size: Size = _OPEN) -> list[Size]:
    """Return the sizes of a shape, of which those along some axes are open."""
    found = _known(shape)
    for axis in axes:
        found[axis] = size
    return found


def _top(call: DataCall) -> Sequence[_Sizes]:
    axis = call.number("axis", -1) % len(call.shape(0))
    return [_open_along(call.shape(0), [axis], call.element(1))] * 2


def _slice(call: DataCall) -> Sequence[_Sizes]:
    axes = call.value(3) if call.has(3) else list(range(call.count(1)))
    return [[_OPEN] * len(call.shape(0)) if axes is None else _open_along(call.shape(0), axes)]


def _along(at: int) -> _Rule:
    """Return the rule of an operator that changes the axes in an input, or all of them."""

    def rule(call: DataCall) -> Sequence[_Sizes]:
        shape, axes = call.shape(0), call.value(at) if call.has(at) else None
        if call.has_attribute("axes") and not call.has(at):
            axes = numbers(call.node, "axes")
        return [_open_along(shape, range(len(shape)) if axes is None else axes)]

    return rule


def _expand(call: DataCall) -> Sequence[_Sizes]:
    shape = call.shape(0)
    more = max(call.count(1) - len(shape), 0)
    return [_all_open(more) + [Size(size) if size != 1 else _OPEN for size in shape]]


def _reshape(call: DataCall) -> Sequence[_Sizes]:
    rank = call.count(1)
    return [[Size(prod(call.shape(0)))] if rank == 1 else _all_open(rank)]


def _one_hot(call: DataCall) -> Sequence[_Sizes]:
    found = _known(call.shape(0))
    found.insert(call.number("axis", -1) % (len(found) + 1), call.element(1))
    return [found]


def _nonzero(call: DataCall) -> Sequence[_Sizes]:
    data, key = call.data[0], ("NonZero", call.node.input[0])
    count = Size(key=key) if data is None else Size(int(np.count_nonzero(data)))
    return [[Size(max(len(call.shape(0)), 1)), count]]


def _compress(call: DataCall) -> Sequence[_Sizes]:
    """Return what a condition leaves along an axis, or of all elements."""
    shape, axis = call.shape(0), 0
    if call.has_attribute("axis"):
        axis = call.number("axis", 0) % len(shape)
    else:
        shape = (prod(shape),)
    picks = call.value(1)  # it may be shorter than the axis
    count = _OPEN if picks is None else Size(sum(map(bool, picks[: shape[axis]])))
    return [_open_along(shape, [axis], count)]


def _unique(call: DataCall) -> Sequence[_Sizes]:
    shape, data = call.shape(0), call.data[0]
    if call.has_attribute("axis"):
        axis = call.number("axis", 0) % len(shape)
        along: int | None = axis
    else:
        shape, axis, along = (prod(shape),), 0, None
    count = Size(key=("Unique", *call.node.input, axis, len(shape)))
    if data is not None:
        count = Size(np.unique(data, axis=along).shape[axis])
    return [_open_along(shape, [axis], count), [count], [Size(shape[axis])], [count]]


def _reduce(call: DataCall) -> Sequence[_Sizes]:
    shape = call.shape(0)
    if call.number("keepdims", 1):
        return [[Size(1) if size == 1 else Size(most=size) for size in shape]]
    return [[_OPEN] * (len(shape) - call.count(1))]


def _squeeze(call: DataCall) -> Sequence[_Sizes]:
    shape, count = call.shape(0), call.count(1)
    rest = [size for size in shape if size != 1]
    return [_known(rest) if len(rest) + count == len(shape) else [_OPEN] * (len(shape) - count)]


def _suppress(call: DataCall) -> Sequence[_Sizes]:
    """Return what is left of boxes: at most a number of each class of each picture."""
    kept, boxes = call.value(2), call.shape(1)[2]
    if not call.has(2):
        return [_known((0, 3))]
    if kept is None:
        return [[_OPEN, Size(3)]]
    return [[Size(most=prod(call.shape(1)[:2]) * max(min(kept[0], boxes), 0)), Size(3)]]


def _loop(call: DataCall) -> Sequence[_Sizes]:
    """Return what a loop gathers: a piece for each round, of which there may be a limit."""
    (_, body), *_ = subgraphs(call.node)
    most, types = _limit_rounds(call), types_of(body)
    states = len(call.node.input) - 2
    count = Size(key=("Loop", *call.node.output))
    if most is not None:
        count = Size(most) if _goes_on(call, body) else Size(most=most)
    found: list[_Sizes] = [None] * states
    for one in body.output[1 + states :]:
        piece = known_shape(types[one.name])
        found.append(None if piece is None else [count, *_known(piece)])
    return found


def _limit_rounds(call: DataCall) -> int | None:
    """Return the number that a loop has for its rounds, if it is a constant that says something."""
    rounds = call.value(0) if call.has(0) else None
    return rounds[0] if rounds and 0 <= rounds[0] < 1 << 31 else None


def count_rounds(call: DataCall, body: Any) -> int | None:
    """Return the rounds of a loop; `None` if they depend on data."""
    return _limit_rounds(call) if _goes_on(call, body) else None


def _goes_on(call: DataCall, body: Any) -> bool:
    """Whether nothing but the number of rounds ends a loop."""
    begins = call.value(1) if call.has(1) else [1]
    goes_on, given = body.output[0].name, body.input[1].name
    same = {given}
    for node in body.node:
        if node.op_type == "Identity" and node.input[0] in same:
            same.add(node.output[0])
    value = Constants(body).find(goes_on)
    return begins == [1] and (goes_on in same or (value is not None and bool(value.all())))


def _branch(call: DataCall) -> Sequence[_Sizes]:
    """Return what either branch may make: the largest size along each axis."""
    branches = [body for _, body in subgraphs(call.node)]
    found: list[_Sizes] = []
    for at in range(len(call.node.output)):
        shapes = [known_shape(types_of(one)[one.output[at].name]) for one in branches]
        first, *others = (one for one in shapes if one is not None)
        if len(others) + 1 < len(shapes) or any(len(one) != len(first) for one in others):
            found.append(None)
            continue
        sizes = [set(along) for along in zip(first, *others, strict=True)]
        found.append([Size(most=max(one)) if len(one) > 1 else Size(*one) for one in sizes])
    return found


def _transform(call: DataCall) -> Sequence[_Sizes]:
    """Return the sizes of a Fourier transform of a length that is not known."""
    shape = call.shape(0)
    axis = call.number("axis", 1)
    if call.has(2):
        known = call.value(2)
        if known is None:
            return [[_OPEN] * len(shape)]
        axis = known[0]
    elif call.opset >= 20:
        axis = -2
    found = _open_along(shape, [axis])
    found[-1] = Size(1 if call.number("inverse", 0) and call.number("onesided", 0) else 2)
    return [found]


def _short_transform(call: DataCall) -> Sequence[_Sizes]:
    """Return the sizes of Fourier transforms of pieces, one side of each unless both are made."""
    length = call.value(3) if call.has(3) else None
    if length is None and call.has(2):
        length = list(call.shape(2))
    sides = _OPEN
    if length is not None:
        sides = Size(length[0] // 2 + 1 if call.number("onesided", 1) else length[0])
    return [[Size(call.shape(0)[0]), _OPEN, sides, Size(2)]]


# By the names that rows of `operators.TABLE` give them.
_RULES: dict[str, _Rule] = {
    "any": _along(99),
    "branch": _branch,
    "compress": _compress,
    "element": lambda call: [[call.element(0)]],
    "elements": lambda call: [[call.element(0, at) for at in range(call.count(0))]],
    "expand": _expand,
    "grid": lambda call: [[*_all_open(call.count(1) - 1), Size(call.count(1) - 2)]],
    "loop": _loop,
    "matrix": lambda call: [[_OPEN, _OPEN]],
    "nonzero": _nonzero,
    "one_hot": _one_hot,
    "pad": _along(3),
    "pictures": lambda call: [_open_along(call.shape(0), range(2, len(call.shape(0))))],
    "reduce": _reduce,
    "reshape": _reshape,
    "short_transform": _short_transform,
    "slice": _slice,
    "split": lambda call: (
        [_open_along(call.shape(0), [call.number("axis", 0)])] * len(call.node.output)
    ),
    "squeeze": _squeeze,
    "suppress": _suppress,
    "top": _top,
    "transform": _transform,
    "unique": _unique,
    "unsqueeze": lambda call: [_all_open(len(call.shape(0)) + call.count(1))],
}
