"""Finds which rows and columns the operators of a TFLite model need for a part of their results.

The rules are those of the reference kernels (tensorflow/lite/kernels/internal/reference).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from memplan.programs.graph.pictures import (
    Maps,
    Padding,
    Shifted,
    Transposed,
    WholeError,
    Window,
    resize,
    window,
)
from memplan.programs.sources._pictures import RANK, PictureCall, describe
from memplan.runtimes.tflm.operators import find_row
from memplan.runtimes.tflm.read.model import OperatorInfo, TensorInfo

__all__ = ["ROW_AXIS", "describe_rows"]

ROW_AXIS: Final = 1  # NHWC
_VALID: Final = 1  # of the schema's Padding; 0 is SAME

_Tensors = Sequence[TensorInfo | None]


@dataclass(frozen=True)
class _Call(PictureCall):
    options: Mapping[str, int]
    inputs: _Tensors

    def values(self, at: int) -> tuple[int, ...]:
        """Return the numbers in an input."""
        tensor = self.inputs[at] if at < len(self.inputs) else None
        if tensor is None or tensor.values is None:
            raise WholeError("what it does is known only at run time")
        return tensor.values

    def weights(self) -> tuple[int, ...]:
        """Return the shape of the weights of a convolution."""
        if len(self.shape(1)) != RANK or not self.fixed[1]:
            raise WholeError("its weights are not in the file")
        return self.shape(1)


def describe_rows(
    info: OperatorInfo, inputs: _Tensors, indices: Sequence[int | None], output: TensorInfo | None
) -> dict[str, Any]:
    """Return the fields `reads`, `why_whole` and `macs` of an operator of a graph.

    The output is its first result; inputs, and their numbers in the graph, are by position.
    """
    shapes = [tensor.shape if tensor else None for tensor in inputs]
    fixed = [tensor is not None and bool(tensor.data) for tensor in inputs]
    made = output.shape if output else ()
    call = _Call(info.type, shapes, fixed, made, ROW_AXIS, info.options, inputs)

    def find_maps() -> Maps:
        if info.subgraphs or len(info.outputs) != 1 or output is None:
            raise WholeError("it has sub-graphs, or several results")
        rule = find_row(info.type).rows
        if rule == "mixes":
            raise WholeError("it mixes all rows")
        if not rule:
            raise WholeError(f"memplan does not know which rows of its inputs {info.type} needs")
        call.result  # noqa: B018 (raises)
        if rule in _WITH_OPTIONS and not info.options:
            raise WholeError("the file does not have its options")
        return _RULES[rule](call)

    return {**describe(find_maps, indices), "macs": _count_macs(call) if output else 0}


def _connect(call: _Call) -> Maps:
    if call.size(0) != call.result:
        raise WholeError("it mixes all rows")
    return call.first()


def _convolve(call: _Call) -> Maps:
    call.size(0)
    _, height, width, _ = call.weights()
    at = call.options
    rows = _window(at["padding"], height, at["step_y"], at["dilation_y"], zeros=True)
    columns = _window(at["padding"], width, at["step_x"], at["dilation_x"], zeros=True)
    return {0: (rows, columns)}


def _pool(call: _Call) -> Maps:
    call.size(0)
    at = call.options
    rows = _window(at["padding"], at["height"], at["step_y"], 1)
    return {0: (rows, _window(at["padding"], at["width"], at["step_x"], 1))}


def _window(
    padding: int, kernel: int, stride: int, dilation: int, *, zeros: bool = False
) -> Window:
    kind = Padding.NONE if padding == _VALID else Padding.SAME
    return window(kernel, stride, dilation, kind, zeros=zeros)


def _transpose(call: _Call) -> Maps:
    sizes = call.size(2)
    call.values(0)
    _, *kernels, _ = call.weights()
    steps = call.options["step_y"], call.options["step_x"]
    maps = []
    for size, made, kernel, stride in zip(sizes, call.result, kernels, steps, strict=True):
        more = max(kernel - stride, 0)
        before, extra = (0, more) if call.options["padding"] == _VALID else (more // 2, 0)
        if made != size * stride + extra:
            raise WholeError("its result has an odd number of rows or columns")
        maps.append(Transposed(kernel, stride, before, extra))
    return {2: (maps[0], maps[1])}


def _resize(call: _Call) -> Maps:
    size, result = call.size(0), call.result
    call.values(1)
    if call.options["align_corners"] and size != result:
        raise WholeError("its corners are aligned, so its scale depends on all rows")
    linear = call.kind == "RESIZE_BILINEAR"
    before, after = (int(call.options["half_pixels"]), 1) if linear else (0, 0)
    return {0: resize(size, result, before, after, divides=True)}


def _pad(call: _Call) -> Maps:
    call.size(0)
    amounts = call.values(1)
    if len(amounts) != 2 * RANK or any(amounts[:2]):
        raise WholeError("it pads the batch")
    return {0: (Shifted(amounts[2]), Shifted(amounts[4]))}


def _count_macs(call: _Call) -> int:
    """Return the multiplications with addition of an operator with weights."""
    weights = call.shape(1)
    if call.kind == "TRANSPOSE_CONV" and len(call.shapes) > 2:
        return prod(call.shape(2)[:-1]) * prod(weights)
    if call.kind == "FULLY_CONNECTED" and weights:
        return prod(call.shape(0)) * weights[0]
    if find_row(call.kind).rows == "convolve" and weights:
        return prod(call.made[:-1]) * prod(weights[call.kind == "DEPTHWISE_CONV_2D" :])
    return 0


# By the names that rows of `operators.TABLE` give them.
_RULES: Final[dict[str, Callable[[_Call], Maps]]] = {
    "connect": _connect,
    "convolve": _convolve,
    "each": _Call.each,
    "first": _Call.first,
    "join": lambda call: call.join(call.options["axis"] % RANK),
    "pad": _pad,
    "pool": _pool,
    "resize": _resize,
    "to_depth": lambda call: call.blocks(down=call.options["block"]),
    "to_space": lambda call: call.blocks(up=call.options["block"]),
    "transpose": _transpose,
}
_WITH_OPTIONS: Final = frozenset(
    {"convolve", "join", "pool", "resize", "to_depth", "to_space", "transpose"}
)
