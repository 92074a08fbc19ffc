"""Finds which rows and columns the operators of a TFLite model need for a part of their results.

The rules are those of the reference kernels (tensorflow/lite/kernels/internal/reference).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from memplan.graph.pictures import (
    Blocks,
    Each,
    Maps,
    Padding,
    Read,
    Shifted,
    Size,
    Transposed,
    WholeError,
    Window,
    broadcast,
    join,
    require_size,
    resize,
    window,
)
from memplan.sources.tflite.kernels import IN_PLACE
from memplan.sources.tflite.model import OperatorInfo, TensorInfo

__all__ = ["ROW_AXIS", "describe_rows"]

ROW_AXIS: Final = 1  # NHWC
_VALID: Final = 1  # of the schema's Padding; 0 is SAME
_RANK: Final = 4

_Tensors = Sequence[TensorInfo | None]


def describe_rows(
    info: OperatorInfo, inputs: _Tensors, indices: Sequence[int], output: TensorInfo | None
) -> dict[str, Any]:
    """Return the fields `reads`, `why_whole` and `macs` of an operator of a graph.

    Parameters
    ----------
    info
        The operator in the file.
    inputs, indices
        By position: what it reads, and the number of that in the graph.
    output
        Its first result.
    """
    macs = _count_macs(info, inputs, output)
    try:
        if info.subgraphs or output is None or len(info.outputs) != 1:
            raise WholeError("it has sub-graphs, or several results")
        maps = _find_maps(info, inputs, output)
    except WholeError as why:
        return {"why_whole": str(why), "macs": macs}
    reads = tuple(Read(indices[at], *maps[at]) for at in sorted(maps))
    return {"reads": reads, "why_whole": "", "macs": macs}


def _find_maps(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    rule = _RULES.get(info.type)
    if info.type in _MIXES:
        raise WholeError("it mixes all rows")
    if rule is None:
        raise WholeError(f"memplan does not know which rows of its inputs {info.type} needs")
    require_size(output.shape, ROW_AXIS, "its result")
    if info.type in _WITH_OPTIONS and not info.options:
        raise WholeError("the file does not have its options")
    return rule(info, inputs, output)


def _size(inputs: _Tensors, at: int) -> Size:
    """Return the rows and columns of an input."""
    tensor = inputs[at] if at < len(inputs) else None
    return require_size(tensor.shape if tensor else None, ROW_AXIS, "an input")


def _values(inputs: _Tensors, at: int) -> tuple[int, ...]:
    tensor = inputs[at] if at < len(inputs) else None
    if tensor is None or tensor.values is None:
        raise WholeError("what it does is known only at run time")
    return tensor.values


def _weights(inputs: _Tensors) -> tuple[int, ...]:
    """Return the shape of the weights of a convolution."""
    weights = inputs[1] if len(inputs) > 1 else None
    if weights is None or len(weights.shape) != _RANK or not weights.data:
        raise WholeError("its weights are not in the file")
    return weights.shape


def _each(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    """Return the maps of an operator on elements, of which some inputs may be broadcast."""
    shapes = [tensor.shape if tensor else None for tensor in inputs]
    fixed = [tensor is not None and bool(tensor.data) for tensor in inputs]
    size = require_size(output.shape, ROW_AXIS, "its result")
    return broadcast(shapes, size, fixed, ROW_AXIS)


def _first(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    """Return the maps of an operator on the channels of each point."""
    _size(inputs, 0)
    return {0: (Each(), Each())}


def _connect(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    if _size(inputs, 0) != output.shape[1:3]:
        raise WholeError("it mixes all rows")
    return {0: (Each(), Each())}


def _convolve(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    _size(inputs, 0)
    _, height, width, _ = _weights(inputs)
    padding, step_x, step_y, dilation_x, dilation_y = info.options
    rows = _window(padding, height, step_y, dilation_y, zeros=True)
    return {0: (rows, _window(padding, width, step_x, dilation_x, zeros=True))}


def _pool(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    _size(inputs, 0)
    padding, step_x, step_y, width, height = info.options
    return {0: (_window(padding, height, step_y, 1), _window(padding, width, step_x, 1))}


def _window(
    padding: int, kernel: int, stride: int, dilation: int, *, zeros: bool = False
) -> Window:
    kind = Padding.NONE if padding == _VALID else Padding.SAME
    return window(kernel, stride, dilation, kind, zeros=zeros)


def _transpose(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    sizes = _size(inputs, 2)
    padding, step_x, step_y = info.options
    _values(inputs, 0)
    _, *kernels, _ = _weights(inputs)
    maps = []
    for size, made, kernel, stride in zip(
        sizes, output.shape[1:3], kernels, (step_y, step_x), strict=True
    ):
        more = max(kernel - stride, 0)
        before, extra = (0, more) if padding == _VALID else (more // 2, 0)
        if made != size * stride + extra:
            raise WholeError("its result has an odd number of rows or columns")
        maps.append(Transposed(kernel, stride, before, extra))
    return {2: (maps[0], maps[1])}


def _resize(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    size, result = _size(inputs, 0), require_size(output.shape, ROW_AXIS, "its result")
    _values(inputs, 1)
    align_corners, half_pixels = info.options
    if align_corners and size != result:
        raise WholeError("its corners are aligned, so its scale depends on all rows")
    linear = info.type == "RESIZE_BILINEAR"
    before, after = (int(half_pixels), 1) if linear else (0, 0)
    return {0: resize(size, result, before, after, divides=True)}


def _pad(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    _size(inputs, 0)
    amounts = _values(inputs, 1)
    if len(amounts) != 2 * _RANK or any(amounts[:2]):
        raise WholeError("it pads the batch")
    return {0: (Shifted(amounts[2]), Shifted(amounts[4]))}


def _join(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    axis = info.options[0] % _RANK
    for at in range(len(inputs)):
        _size(inputs, at)
    return join([tensor.shape[axis] for tensor in inputs if tensor], axis, ROW_AXIS)


def _to_depth(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    _size(inputs, 0)
    return {0: (Blocks(down=info.options[0]),) * 2}


def _to_space(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> Maps:
    _size(inputs, 0)
    return {0: (Blocks(up=info.options[0]),) * 2}


def _count_macs(info: OperatorInfo, inputs: _Tensors, output: TensorInfo | None) -> int:
    """Return the multiplications with addition of an operator with weights."""
    weights = inputs[1] if len(inputs) > 1 else None
    if weights is None or not weights.shape or output is None:
        return 0
    if info.type == "TRANSPOSE_CONV":
        source = inputs[2] if len(inputs) > 2 else None
        return 0 if source is None else prod(source.shape[:-1]) * prod(weights.shape)
    if info.type == "FULLY_CONNECTED":
        source = inputs[0]
        return 0 if source is None else source.elements * weights.shape[0]
    if info.type == "CONV_2D":
        return prod(output.shape[:-1]) * prod(weights.shape)
    if info.type == "DEPTHWISE_CONV_2D":
        return prod(output.shape[:-1]) * prod(weights.shape[1:])
    return 0


_ELEMENTS: Final = """
    DEQUANTIZE EQUAL GELU GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_NOT NOT_EQUAL POW
    RELU_N1_TO_1 RELU_0_TO_1 ZEROS_LIKE
"""
_CHANNELS: Final = "L2_NORMALIZATION LOG_SOFTMAX SOFTMAX"
_MIXES: Final = frozenset(
    ["MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "RESHAPE", "SUM", "TRANSPOSE"]
)
_SKIPPED: Final = frozenset({"DYNAMIC_UPDATE_SLICE", "SOFTMAX"})
_EACH: Final = [name for name, rule in IN_PLACE.items() if not rule.moves and name not in _SKIPPED]
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
_RESIZES: Final = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
_Rule = Callable[[OperatorInfo, _Tensors, TensorInfo], Maps]
_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys((*_EACH, *_ELEMENTS.split()), _each),
    **dict.fromkeys(_CHANNELS.split(), _first),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(("PAD", "PADV2"), _pad),
    **dict.fromkeys(_RESIZES, _resize),
    "CONCATENATION": _join,
    "CONV_2D": _convolve,
    "DEPTHWISE_CONV_2D": _convolve,
    "DEPTH_TO_SPACE": _to_space,
    "FULLY_CONNECTED": _connect,
    "SPACE_TO_DEPTH": _to_depth,
    "TRANSPOSE_CONV": _transpose,
}
_WITH_OPTIONS: Final = frozenset(
    {
        *(*_POOLS, *_RESIZES, "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE"),
        *("SPACE_TO_DEPTH", "TRANSPOSE_CONV"),
    }
)
