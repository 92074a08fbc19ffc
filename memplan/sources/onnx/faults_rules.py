"""Operators that cannot run at their sizes, though the library infers a shape for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from memplan.sources.onnx.graph_memory import VIEWS
from memplan.sources.onnx.protos import is_standard, number

__all__ = ["is_contradictory"]

_Shape = tuple[int, ...]
_Shapes = list[_Shape | None]
_Rule = Callable[[Any, _Shapes, _Shapes], Iterator[bool]]


def is_contradictory(node: Any, inputs: _Shapes, outputs: _Shapes) -> bool:
    """Whether the shapes that an operator reads contradict each other.

    Parameters
    ----------
    node
        The operator.
    inputs, outputs
        The shapes of its inputs and outputs; `None` for one that is left out or is no tensor.
    """
    if any(size < 0 for shape in outputs if shape is not None for size in shape):
        return True  # as of a window that is larger than what it moves over
    rule = _RULES.get(node.op_type) if is_standard(node) else None
    if rule is None:
        return False
    missing = [None] * 8  # optional inputs that are left out at the end
    return not all(rule(node, [*inputs, *missing], [*outputs, *missing]))


def _same_elements(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    if inputs[0] is not None and outputs[0] is not None:
        yield prod(inputs[0]) == prod(outputs[0])


def _convolution(weights: int) -> _Rule:
    def rule(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
        data, kernel = inputs[0], inputs[weights]
        if data is not None and kernel is not None and len(data) > 1 and len(kernel) > 1:
            yield data[1] == kernel[1] * number(node, "group", 1)

    return rule


def _transposed_convolution(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, kernel = inputs[:2]
    if data is not None and kernel is not None and len(data) > 1 and kernel:
        yield data[1] == kernel[0]


def _recurrent(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, kernel, again, _, lengths, *states = inputs[:7]
    if data is None or kernel is None or again is None or len(data) != 3:
        return
    yield len(kernel) == 3 == len(again) and kernel[2] == data[2]
    batches = data[0 if number(node, "layout", 0) else 1]
    yield lengths is None or lengths == (batches,)
    state = (kernel[0], batches, again[-1])
    if number(node, "layout", 0):
        state = (batches, kernel[0], again[-1])
    count = 2 if node.op_type == "LSTM" else 1
    yield all(one is None or one == state for one in states[:count])


def _by_channel(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data = inputs[0]
    if data is not None and len(data) > 1:
        yield all(one is None or prod(one) == data[1] for one in inputs[1:])


def _by_layer(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, scale = inputs[:2]
    if data is not None and scale is not None:
        yield _can_broadcast(scale, data[number(node, "axis", -1) :])


def _by_broadcast(other: int) -> _Rule:
    """Return the rule of an input that is repeated to the shape of the result."""

    def rule(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
        one, result = inputs[other], outputs[0]
        if one is not None and result is not None:
            yield _can_broadcast(one, result)

    return rule


def _by_slope(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, slope = inputs[:2]
    if data is not None and slope is not None:
        # Before opset 7 a slope for each channel was a list, without the axes to broadcast it.
        yield _can_broadcast(slope, data) or slope == data[1:2]


def _can_broadcast(shape: _Shape, to: _Shape) -> bool:
    """Whether a tensor can be repeated to another shape."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(one in (1, other) for one, other in pairs)


def _scatter(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, where, updates = inputs[:3]
    if data is not None and where is not None and updates is not None and where:
        yield updates == where[:-1] + data[where[-1] :]


def _scatter_elements(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, where, updates = inputs[:3]
    if data is not None and where is not None and updates is not None:
        yield where == updates and len(data) == len(where)


def _split(node: Any, inputs: _Shapes, outputs: _Shapes) -> Iterator[bool]:
    data, axis = inputs[0], number(node, "axis", 0)
    parts = outputs[: len(node.output)]
    if data is not None and all(one is not None and len(one) == len(data) for one in parts):
        yield sum(one[axis] for one in parts if one is not None) == data[axis]


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(VIEWS, _same_elements),
    **dict.fromkeys(("Conv", "ConvInteger"), _convolution(1)),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _by_channel),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _by_layer),
    "Gemm": _by_broadcast(2),
    "PRelu": _by_slope,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter,
    "Split": _split,
}
