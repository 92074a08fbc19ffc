"""Sizes as formulas of the dimensions: what the library carries by name, and rules for the rest.

The library infers with names in place of sizes: a result has the name of a dimension wherever it
has this size. Where it makes a new name, a rule here says which formula it stands for, if there is
one. Sizes may be numbers of any kind, such as `memplan.problem.many.Many`.

    x [batch, 3, side, side]     Conv, stride 2     y [batch, 8, unk__0, unk__1]
                                                    unk__0 = (side - 1) // 2 + 1
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

from memplan.runtimes.onnx.read.protos import (
    has_subgraphs,
    number,
    numbers,
    row_of,
    tensor_type,
    types_in,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import Constants

__all__ = ["Formulas"]

_Shape = tuple[int, ...]


class Formulas:
    """The shapes of a model as the library infers them with names.

    The `ModelProto` has inferred shapes, is in order, and has no functions of its own. A
    `LookupError` says that a shape has not even names, or that an operator has graphs inside.
    """

    def __init__(self, model: Any) -> None:
        if any(has_subgraphs(node) for node in model.graph.node):
            raise LookupError
        self._nodes = [*model.graph.node]
        types = types_in(model.graph, ChainMap())
        self._shapes = {name: _read_shape(declared) for name, declared in types.items()}
        self._constants = Constants(model.graph)

    def sizes(self, dims: Mapping[str, int]) -> dict[str, int]:
        """Return the size that each name stands for; a `LookupError` says that one has no rule."""
        found = dict(dims)
        for node in self._nodes:
            for at, name in enumerate(node.output):
                shape = self._shapes[name] if name else ()
                new = [axis for axis, size in enumerate(shape) if self._is_open(size, found)]
                if new:
                    made = self._compute(node, at, shape, found)
                    found.update((str(shape[axis]), made[axis]) for axis in new)
        return found

    def _is_open(self, size: int | str, found: Mapping[str, int]) -> bool:
        return isinstance(size, str) and size not in found

    def _compute(
        self, node: Any, at: int, shape: Sequence[int | str], found: Mapping[str, int]
    ) -> _Shape:
        """Return the sizes of a result by the rule of its operator."""
        rule = _RULES.get(row_of(node).formula)
        if rule is None or at:
            raise LookupError(node.op_type)
        inputs = [
            tuple(found[size] if isinstance(size, str) else size for size in self._shapes[name])
            for name in node.input
            if name
        ]
        made = rule(_Call(node, inputs, [*map(self._constants.find, node.input)]))
        if len(made) != len(shape):
            raise LookupError(node.op_type)
        return made


def _read_shape(declared: Any) -> tuple[int | str, ...]:
    """Return sizes and names; `LookupError` for a shape with others."""
    one = tensor_type(declared)
    if one is None or not one.HasField("shape"):
        raise LookupError
    found = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in one.shape.dim]
    if "" in found:
        raise LookupError
    return tuple(found)


class _Call:
    """An operator with the shapes of its inputs, and those of them that are constants."""

    def __init__(self, node: Any, inputs: Sequence[_Shape], constants: Sequence[Any]) -> None:
        self.node, self.inputs, self.constants = node, inputs, constants

    def windows(self) -> list[tuple[int, int, int, int]]:
        """Return for each axis the reach of a window, its step, and the padding on both sides."""
        count = len(self.inputs[0]) - 2
        modes = [one.s for one in self.node.attribute if one.name == "auto_pad"]
        if modes not in ([], [b"NOTSET"]) or number(self.node, "ceil_mode"):
            raise LookupError(self.node.op_type)
        kernel = numbers(self.node, "kernel_shape") or [*self.inputs[1][2:]]
        steps = numbers(self.node, "strides") or [1] * count
        apart = numbers(self.node, "dilations") or [1] * count
        pads = numbers(self.node, "pads") or [0] * 2 * count
        sides = zip(kernel, steps, apart, pads[:count], pads[count:], strict=True)
        return [((size - 1) * gap + 1, step, a, b) for size, step, gap, a, b in sides]


def _convolve(call: _Call) -> _Shape:
    return _slide(call, call.inputs[1][0])


def _pool(call: _Call) -> _Shape:
    return _slide(call, call.inputs[0][1])


def _slide(call: _Call, channels: int) -> _Shape:
    """Return the results of windows."""
    first = call.inputs[0]
    made = []
    for size, (reach, step, before, after) in zip(first[2:], call.windows(), strict=True):
        room = size + before + after - reach
        if room < 0:  # no window fits, and runtimes differ
            raise LookupError
        made.append(room // step + 1)
    return (first[0], channels, *made)


def _spread(call: _Call) -> _Shape:
    """Return the results of a transposed convolution."""
    first, count = call.inputs[0], len(call.inputs[0]) - 2
    if numbers(call.node, "output_shape"):
        raise LookupError
    more = numbers(call.node, "output_padding") or [0] * count
    sides = zip(first[2:], call.windows(), more, strict=True)
    made = ((size - 1) * step + reach - a - b + add for size, (reach, step, a, b), add in sides)
    return (first[0], call.inputs[1][1] * number(call.node, "group", 1), *made)


def _broadcast(call: _Call) -> _Shape:
    rank = max(map(len, call.inputs))
    made = [1] * rank
    for shape in call.inputs:
        for axis, size in enumerate(shape, rank - len(shape)):
            if made[axis] == 1:
                made[axis] = size
            elif size != 1 and size != made[axis]:
                raise LookupError
    return tuple(made)


def _concat(call: _Call) -> _Shape:
    first = call.inputs[0]
    axis = number(call.node, "axis") % len(first)
    return (*first[:axis], sum(shape[axis] for shape in call.inputs), *first[axis + 1 :])


def _reshape(call: _Call) -> _Shape:
    target = call.constants[1]
    if target is None:
        raise LookupError
    wanted = [*map(int, target.tolist())]
    first, keeps = call.inputs[0], not number(call.node, "allowzero")
    made = [first[axis] if keeps and size == 0 else size for axis, size in enumerate(wanted)]
    if -1 in wanted:
        axis = wanted.index(-1)
        rest = prod(made[:axis]) * prod(made[axis + 1 :])
        made[axis] = prod(first) // rest
    return tuple(made)


def _flatten(call: _Call) -> _Shape:
    first = call.inputs[0]
    axis = number(call.node, "axis", 1)
    axis += len(first) if axis < 0 else 0
    return prod(first[:axis]), prod(first[axis:])


# By the names that rows of `operators.TABLE` give them.
_RULES: Final[dict[str, Callable[[_Call], _Shape]]] = {
    "broadcast": _broadcast,
    "concatenate": _concat,
    "convolve": _convolve,
    "flatten": _flatten,
    "pool": _pool,
    "reshape": _reshape,
    "spread": _spread,
}
