"""The operators of an ONNX model, and which rows and columns of its inputs each needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

from memplan.base.extras import require
from memplan.programs.graph import Kind, Tensor
from memplan.programs.graph.pictures import (
    Each,
    Map,
    Maps,
    Padding,
    Shifted,
    Spread,
    WholeError,
    Window,
    resize,
)
from memplan.programs.sources._pictures import RANK, PictureCall, describe
from memplan.runtimes.onnx.operators import Row, find_row
from memplan.runtimes.onnx.read.protos import type_of
from memplan.runtimes.onnx.read.shapes_arithmetic import Constants
from memplan.runtimes.onnx.read.shapes_windows import pool_axis

__all__ = [
    "RANK",
    "ROW_AXIS",
    "NodeCall",
    "describe_rows",
    "find_pads",
    "gives_sizes",
    "read_attributes",
]

_GRAPHS: Final = (5, 10)  # AttributeProto.GRAPH and GRAPHS
ROW_AXIS: Final = 2  # NCHW


@dataclass(frozen=True)
class NodeCall(PictureCall):
    """An operator of the file."""

    opset: int
    attributes: dict[str, Any]
    names: Sequence[str]  # of its inputs
    constants: Constants  # of the graph

    @classmethod
    def of(
        cls,
        node: Any,
        inputs: Sequence[Tensor | None],
        output: Tensor,
        opset: int,
        constants: Constants,
    ) -> NodeCall:
        """Return a node of the file, which reads and makes these tensors."""
        return cls(
            type_of(node),
            [None if one is None else one.shape or () for one in inputs],
            [one is not None and one.kind is Kind.CONSTANT for one in inputs],
            output.shape or (),
            ROW_AXIS,
            opset,
            read_attributes(node),
            node.input,
            constants,
        )

    @property
    def row(self) -> Row:
        """What is known of the operator."""
        return find_row(self.kind)

    def values(self, at: int) -> list[Any] | None:
        """Return the numbers in an input, or `None` if they are not in the file."""
        found = self.constants.find(self.names[at]) if at < len(self.names) else None
        return None if found is None else list(found.reshape(-1).tolist())

    def weights(self, at: int) -> tuple[int, ...]:
        """Return the shape of the weights of a convolution."""
        if len(self.shape(at)) != RANK or not self.fixed[at]:
            raise WholeError("its weights are not in the file")
        return self.shape(at)

    def steps(self, axis: int) -> tuple[int, int]:
        """Return stride and dilation of the windows along rows or columns."""
        held = (self.attributes.get(name) or (1, 1) for name in ("strides", "dilations"))
        stride, dilation = (one[axis] for one in held)
        return stride, dilation


def describe_rows(
    node: Any,
    inputs: Sequence[int | None],
    outputs: Sequence[int],
    tensors: Sequence[Tensor],
    opset: int,
    constants: Constants,
) -> dict[str, Any]:
    """Return the fields `reads`, `why_whole` and `macs` of an operator of a graph.

    Inputs and outputs are numbers of tensors in the graph, inputs by position.
    """
    if not outputs:
        return {}
    read, made = [None if at is None else tensors[at] for at in inputs], tensors[outputs[0]]
    call = NodeCall.of(node, read, made, opset, constants)

    def find_maps() -> Maps:
        if len(outputs) > 1 or any(one.type in _GRAPHS for one in node.attribute):
            raise WholeError("it has sub-graphs, or several results")
        if not call.row.rows:
            raise WholeError(f"memplan does not know which rows of its inputs {call.kind} needs")
        call.result  # noqa: B018 (raises)
        maps = _RULES[call.row.rows](call)
        for tensor in (made, *(read[place] for place in maps)):
            if tensor is not None and tensor.bytes < prod(tensor.shape or ()):
                raise WholeError("two elements of a picture share a byte")
        return maps

    return {**describe(find_maps, inputs), "macs": _count_macs(call)}


def read_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node that are neither graphs nor lists of graphs, by name."""
    read_value = require("onnx.helper", extra="onnx").get_attribute_value
    found = {one.name: read_value(one) for one in node.attribute if one.type not in _GRAPHS}
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in found.items()
    }


def _each(call: NodeCall) -> Maps:
    if "axis" in call.attributes or "broadcast" in call.attributes:
        raise WholeError("it broadcasts as old versions of ONNX did")
    return call.each()


def _normalize(call: NodeCall) -> Maps:
    if call.attributes.get("training_mode"):
        raise WholeError("it normalizes by all rows")
    if call.opset < 7 and not call.attributes.get("is_test"):
        raise WholeError("it normalizes by all rows")
    return call.first()


def _softmax(call: NodeCall) -> Maps:
    if call.opset < 13 or call.attributes.get("axis", -1) % RANK != 1:
        raise WholeError("it normalizes by all rows or columns")
    return call.first()


def _quantize(call: NodeCall) -> Maps:
    scale, axis = call.shape(1), call.attributes.get("axis", 1)
    if prod(scale) != 1 and (len(scale) != 1 or axis % RANK != 1):
        raise WholeError("it has a scale for each row, column or block")
    return call.first()


def _window(call: NodeCall, kernel: Sequence[int]) -> Maps:
    if call.attributes.get("ceil_mode"):
        raise WholeError("its last windows may reach beyond the padding (ceil_mode)")
    size = call.size(0)
    if len(kernel) != 2:
        raise WholeError("its windows do not have two dimensions")
    maps: list[Map] = []
    for axis in (0, 1):
        stride, dilation = call.steps(axis)
        window = Window(kernel[axis], stride, dilation, Padding.FREE)
        before, made = _count_rows(call, window, axis, size[axis])
        if made != call.result[axis]:
            raise WholeError("its result has other rows than its windows make")
        window = replace(window, before=before)
        first, last = window.find_inside(size[axis], call.result[axis])
        if first >= last:
            raise WholeError("all its windows are in the padding")
        maps.append(window)
    return {0: (maps[0], maps[1])}


def _count_rows(call: NodeCall, window: Window, axis: int, size: int) -> tuple[int, int]:
    """Return how many rows are before the first one of an input, and how many windows there are."""
    kind, step = call.attributes.get("auto_pad", "NOTSET"), window.stride
    pads = (call.attributes.get("pads") or (0,) * RANK)[axis::2] if kind == "NOTSET" else kind
    if call.row.rows == "pool":
        return pool_axis(size, window.kernel, step, window.dilation, pads, ceil=False)
    if kind.startswith("SAME"):
        total = max((-(-size // step) - 1) * step + window.reach - size, 0)
        before = total // 2 if kind == "SAME_UPPER" else total - total // 2
        pads = before, total - before
    elif kind == "VALID":
        pads = 0, 0
    return pads[0], (size + sum(pads) - window.reach) // step + 1


def _transpose(call: NodeCall) -> Maps:
    size, result, weights = call.size(0), call.result, call.weights(1)
    if call.attributes.get("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in call.attributes:
        raise WholeError("its padding follows from its result")
    maps = []
    for axis in (0, 1):
        stride, dilation = call.steps(axis)
        pads = call.attributes.get("pads") or (0,) * RANK
        extra = (call.attributes.get("output_padding") or (0, 0))[axis]
        reach = (weights[2 + axis] - 1) * dilation + 1
        made = (size[axis] - 1) * stride + reach + extra - pads[axis] - pads[2 + axis]
        if reach < stride or result[axis] != made:
            raise WholeError("some rows of its result have none of its input")
        maps.append(Spread(reach, stride, pads[axis]))
    return {0: (maps[0], maps[1])}


def _filter(call: NodeCall) -> Maps:
    return _window(call, call.weights(call.row.filter)[2:])


def _pool(call: NodeCall) -> Maps:
    return _window(call, call.attributes.get("kernel_shape") or ())


def _convolve_and_add(call: NodeCall) -> Maps:
    """Return the maps of a convolution that is fused with an addition, and reads input 3 too."""
    maps = _filter(call)
    if call.shape(3):
        if call.shape(3) != call.made:
            raise WholeError("what it adds has another shape than its result")
        maps[3] = (Each(), Each())
    return maps


def _reorder(call: NodeCall) -> Maps:
    if call.attributes.get("channels_last"):
        raise WholeError("rows are not on the axis of its input")
    return call.first()


def _repeat(call: NodeCall) -> Maps:
    """Return the map of a resize of blocks of channels, which repeats rows and columns."""
    where = call.attributes.get("coordinate_transformation_mode", "asymmetric")
    if call.attributes.get("mode", "nearest") != "nearest" or where != "asymmetric":
        raise WholeError("it interpolates rows")
    return {0: resize(call.size(0), call.result, 0, 0)}


def _resize(call: NodeCall) -> Maps:
    size, result, old = call.size(0), call.result, call.opset < 11
    linear = call.attributes.get("mode", "nearest") == "linear"
    if call.attributes.get("mode", "nearest") not in ("nearest", "linear"):
        raise WholeError("it is cubic")
    where = call.attributes.get("coordinate_transformation_mode", "half_pixel")
    where = "asymmetric" if old else where
    if where not in ("asymmetric", "half_pixel", "pytorch_half_pixel"):
        raise WholeError(f"its positions depend on all rows ({where})")
    if call.attributes.get("antialias") or "keep_aspect_ratio_policy" in call.attributes:
        raise WholeError("it is filtered, or keeps the ratio of rows and columns")
    if where.startswith("pytorch") and any(a > b == 1 for a, b in zip(size, result, strict=True)):
        raise WholeError("its result is a single row or column, which is a rule of its own")
    if call.shape(0)[:2] != call.made[:2]:
        raise WholeError("it resizes channels")
    if not gives_sizes(call.opset, call.kind, [one is not None for one in call.shapes]):
        at = 2 if call.kind == "Resize" and not old else 1
        scales = call.attributes.get("scales") or call.values(at)
        ratios = [other / one for one, other in zip(size, result, strict=True)]
        if scales is None or list(scales)[-2:] != ratios or "axes" in call.attributes:
            raise WholeError("its scale is not exact, or known only at run time")
    if linear:
        before, after = int(where != "asymmetric"), 1
    else:
        rounding = call.attributes.get("nearest_mode", "round_prefer_floor")
        rounding = "floor" if old else rounding
        exact = rounding == "floor" if where == "asymmetric" else rounding.startswith("round")
        before, after = (0, 0) if exact else (1, 1)
    return {0: resize(size, result, before, after)}


def gives_sizes(opset: int, kind: str, inputs: Sequence[bool]) -> bool:
    """Return whether a resize has an input that says how many rows its result has."""
    return kind == "Resize" and opset >= 11 and len(inputs) > 3 and inputs[3]


def find_pads(call: NodeCall) -> list[int]:
    """Return how much a Pad adds: before each of the four axes, and after each."""
    given = call.attributes.get("pads", call.attributes.get("paddings"))
    given = call.values(1) if given is None and call.opset >= 11 else given
    axes = call.values(3) if call.shape(3) else list(range(RANK))
    if given is None or axes is None or len(given) != 2 * len(axes):
        raise WholeError("what it adds is known only at run time")
    pads = [0] * (2 * RANK)
    for at, axis in enumerate(axes):
        pads[axis % RANK], pads[axis % RANK + RANK] = given[at], given[at + len(axes)]
    return [int(one) for one in pads]


def _pad(call: NodeCall) -> Maps:
    call.size(0)
    if call.attributes.get("mode", "constant") != "constant":
        raise WholeError("it repeats rows")
    pads = find_pads(call)
    if min(pads) < 0 or pads[0] or pads[RANK]:
        raise WholeError("it cuts off rows, or pads the batch")
    return {0: (Shifted(pads[2]), Shifted(pads[3]))}


def _slice(call: NodeCall) -> Maps:
    axes = call.attributes.get("axes") or call.values(3)
    if axes is None or {axis % RANK for axis in axes} != {1}:
        raise WholeError("it takes some of the rows or columns")
    return call.first()


def _count_macs(call: NodeCall) -> int:
    """Return the multiplications with addition of an operator with weights."""
    if call.row.work == "filter":
        return prod(call.made) * prod(call.shape(call.row.filter)[1:])
    if call.row.work == "spread":
        return prod(call.shape(0)) * prod(call.shape(1)[1:])
    if call.row.work == "product" and call.shape(0):
        turned = call.attributes.get("transA")
        return prod(call.made) * call.shape(0)[-2 if turned else -1]
    return 0


# By the names that rows of `operators.TABLE` give them.
_RULES: Final[dict[str, Callable[[NodeCall], Maps]]] = {
    "convolve_and_add": _convolve_and_add,
    "each": _each,
    "filter": _filter,
    "first": NodeCall.first,
    "join": lambda call: call.join(call.attributes.get("axis", 1) % RANK),
    "normalize": _normalize,
    "pad": _pad,
    "pool": _pool,
    "quantize": _quantize,
    "reorder": _reorder,
    "repeat": _repeat,
    "resize": _resize,
    "slice": _slice,
    "softmax": _softmax,
    "to_depth": lambda call: call.blocks(down=call.attributes["blocksize"]),
    "to_space": lambda call: call.blocks(up=call.attributes["blocksize"]),
    "transpose": _transpose,
}
