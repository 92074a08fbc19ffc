"""Finds which rows and columns the operators of a TFLite model need for a part of their results.

The rules are those of the reference kernels (tensorflow/lite/kernels/internal/reference). Tensors
are NHWC, so rows of one picture are apart in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from memplan.graph import Graph
from memplan.rewrite.stripes import (
    Blocks,
    Each,
    Joined,
    Map,
    Once,
    Padding,
    Program,
    Read,
    Resized,
    Shifted,
    Size,
    Step,
    Transposed,
    Window,
)
from memplan.sources.tflite.kernels import IN_PLACE
from memplan.sources.tflite.model import Model, OperatorInfo, TensorInfo

__all__ = ["FAN_IN", "program_of"]

FAN_IN: Final = 10  # the most inputs of TFLM's CONCATENATION
_VALID: Final = 1  # of the schema's Padding; 0 is SAME
_RANK: Final = 4
_LONGEST_STEP = 1024  # rows from one window to the next; cuts are looked for in every one
_KEPT: Final = 200  # bytes in the tail of TFLM's arena for an operator
_KEPT_BY_COPIES: Final = 110

_Tensors = Sequence[TensorInfo | None]
_Maps = dict[int, tuple[Map, Map]]
"""By position among the inputs: the maps of rows and of columns."""


class _WholeError(Exception):
    """An operator can only be done as a whole; the sentence says why."""


def program_of(model: Model, graph: Graph) -> Program:
    """Return the first sub-graph of a model with what is known of its operators.

    Parameters
    ----------
    model
        A model without operators that only unpack weights.
    graph
        Its graph, possibly with its operators in another order.
    """
    main = model.subgraphs[0]
    sizes: list[Size | None] = [_find_size(tensor) for tensor in main.tensors]
    sizes += [None] * (len(graph.tensors) - len(sizes))
    steps = []
    for at, operator in enumerate(graph.operators):
        info = main.operators[int(operator.name[1:])]
        tensors = [main.tensors[i] if i >= 0 else None for i in info.inputs]
        makes = info.outputs[0] if len(info.outputs) == 1 else -1
        try:
            if operator.blocks or makes < 0:
                raise _WholeError("it has sub-graphs, or several results")
            maps = _find_maps(info, tensors, main.tensors[makes])
        except _WholeError as why:
            steps.append(Step(at, makes, macs=_macs(info, tensors), why_whole=str(why)))
            continue
        output = main.tensors[makes]
        reads = tuple(Read(info.inputs[at_], *maps[at_]) for at_ in sorted(maps))
        scales = info.type == "TRANSPOSE_CONV"  # an accumulator for each element
        macs = _macs(info, tensors, output)
        steps.append(Step(at, makes, reads, macs, scratch_scales=scales))
    kept = tuple(_find_kept(main.operators[int(o.name[1:])], main.tensors) for o in graph.operators)
    return Program(graph, tuple(steps), tuple(sizes), True, FAN_IN, kept, _KEPT_BY_COPIES)


def _find_kept(info: OperatorInfo, tensors: Sequence[TensorInfo]) -> int:
    """Return what TFLM keeps for an operator in the tail of its arena, in bytes.

    Measured on a machine with pointers of 64 bits: structs of the operator and of its result, and
    eight bytes for each channel that is quantized on its own.
    """
    if info.type not in ("CONV_2D", "DEPTHWISE_CONV_2D") or not info.outputs:
        return _KEPT
    output = tensors[info.outputs[0]]
    return _KEPT + (8 * output.shape[-1] if output.dtype == "int8" and output.shape else 0)


def _find_size(tensor: TensorInfo) -> Size | None:
    shape = tensor.shape
    return shape[1:3] if len(shape) == _RANK and shape[0] == 1 and min(shape) > 0 else None


def _find_maps(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    rule = _RULES.get(info.type)
    if info.type in _MIXES:
        raise _WholeError("it mixes all rows")
    if rule is None:
        raise _WholeError(f"memplan does not know which rows of its inputs {info.type} needs")
    if len(output.shape) == _RANK and output.shape[0] > 1:
        raise _WholeError(f"its result has a batch of {output.shape[0]}")
    if _find_size(output) is None:
        raise _WholeError("its result has no rows and columns")
    if info.type in _WITH_OPTIONS and not info.options:
        raise _WholeError("the file does not have its options")
    return rule(info, inputs, output)


def _require(inputs: _Tensors, at: int) -> TensorInfo:
    tensor = inputs[at] if at < len(inputs) else None
    if tensor is None or _find_size(tensor) is None:
        raise _WholeError("an input has no rows and columns")
    return tensor


def _values(inputs: _Tensors, at: int) -> tuple[int, ...]:
    tensor = inputs[at] if at < len(inputs) else None
    if tensor is None or tensor.values is None:
        raise _WholeError("what it does is known only at run time")
    return tensor.values


def _each(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    """Return the maps of an operator on elements, of which some inputs may be broadcast."""
    maps: _Maps = {}
    for at, tensor in enumerate(inputs):
        if tensor is None or (tensor.data and _last_axes(tensor.shape) == (1, 1)):
            continue
        if len(tensor.shape) != _RANK:
            if _last_axes(tensor.shape) == (1, 1):
                continue  # the same values for all rows and columns
            raise _WholeError("an input is broadcast from fewer dimensions")
        _require(inputs, at)
        rows, columns = (
            Each() if tensor.shape[axis] == output.shape[axis] else Once() for axis in (1, 2)
        )
        maps[at] = (rows, columns)
    if not maps:
        raise _WholeError("all its inputs are constants")
    return maps


def _last_axes(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the rows and columns of a shape with leading ones."""
    _, rows, columns, _ = ((1,) * _RANK + shape)[-_RANK:]
    return rows, columns


def _first(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    """Return the maps of an operator on the channels of each point."""
    _require(inputs, 0)
    return {0: (Each(), Each())}


def _connect(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    source = _require(inputs, 0)
    if source.shape[:3] != output.shape[:3]:
        raise _WholeError("it mixes all rows")
    return {0: (Each(), Each())}


def _convolve(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    weights = inputs[1] if len(inputs) > 1 else None
    _require(inputs, 0)
    if weights is None or len(weights.shape) != _RANK or not weights.data:
        raise _WholeError("its weights are not in the file")
    padding, step_x, step_y, dilation_x, dilation_y = info.options
    return {
        0: (
            _window(padding, weights.shape[1], step_y, dilation_y, zeros=True),
            _window(padding, weights.shape[2], step_x, dilation_x, zeros=True),
        )
    }


def _pool(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    _require(inputs, 0)
    padding, step_x, step_y, width, height = info.options
    return {0: (_window(padding, height, step_y, 1), _window(padding, width, step_x, 1))}


def _window(
    padding: int, kernel: int, stride: int, dilation: int, *, zeros: bool = False
) -> Window:
    if min(kernel, stride) < 1:
        raise _WholeError("its options make no sense")
    if stride > _LONGEST_STEP:
        raise _WholeError(f"its windows are {stride} rows or columns apart")
    kind = Padding.NONE if padding == _VALID else Padding.SAME
    return Window(kernel, stride, max(dilation, 1), kind, zeros=zeros)


def _transpose(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    source, weights = _require(inputs, 2), inputs[1]
    padding, step_x, step_y = info.options
    _values(inputs, 0)
    if weights is None or not weights.data:
        raise _WholeError("its weights are not in the file")
    maps = []
    for axis, stride in ((1, step_y), (2, step_x)):
        kernel, size, made = weights.shape[axis], source.shape[axis], output.shape[axis]
        grows = padding == _VALID
        if made != size * stride + (max(kernel - stride, 0) if grows else 0):
            raise _WholeError("its result has an odd number of rows or columns")
        maps.append(Transposed(kernel, stride, 0 if grows else max(kernel - stride, 0) // 2, grows))
    return {2: (maps[0], maps[1])}


def _resize(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    source = _require(inputs, 0)
    _values(inputs, 1)
    align_corners, half_pixels = info.options
    linear = info.type == "RESIZE_BILINEAR"
    before, after = (int(half_pixels), 1) if linear else (0, 0)
    maps: list[Map] = []
    for axis in (1, 2):
        size, made = source.shape[axis], output.shape[axis]
        if size == made:
            maps.append(Each())
        elif align_corners:
            raise _WholeError("its corners are aligned, so its scale depends on all rows")
        elif made % size == 0 and (made // size).bit_count() == 1:
            maps.append(Resized(up=made // size, before=before, after=after))
        elif size % made == 0:
            maps.append(Resized(down=size // made))
        else:
            raise _WholeError(f"its scale of {made} to {size} is not exact in binary numbers")
    return {0: (maps[0], maps[1])}


def _pad(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    _require(inputs, 0)
    amounts = _values(inputs, 1)
    if len(amounts) != 2 * _RANK or any(amounts[:2]):
        raise _WholeError("it pads the batch")
    return {0: (Shifted(amounts[2]), Shifted(amounts[4]))}


def _join(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    axis = info.options[0] % _RANK
    maps: _Maps = {}
    offset = 0
    for at, tensor in enumerate(inputs):
        source = _require(inputs, at)
        assert tensor is not None
        rows, columns = (Joined(offset) if axis == along else Each() for along in (1, 2))
        maps[at] = (rows, columns)
        offset += source.shape[axis]
    if axis == 0:
        raise _WholeError("it joins a batch")
    return maps


def _to_depth(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    _require(inputs, 0)
    return {0: (Blocks(down=info.options[0]), Blocks(down=info.options[0]))}


def _to_space(info: OperatorInfo, inputs: _Tensors, output: TensorInfo) -> _Maps:
    _require(inputs, 0)
    return {0: (Blocks(up=info.options[0]), Blocks(up=info.options[0]))}


def _macs(info: OperatorInfo, inputs: _Tensors, output: TensorInfo | None = None) -> int:
    """Return the multiplications with addition of an operator with weights."""
    weights = inputs[1] if len(inputs) > 1 else None
    if weights is None or not weights.shape:
        return 0
    if info.type == "TRANSPOSE_CONV":
        source = inputs[2] if len(inputs) > 2 else None
        return 0 if source is None else prod(source.shape[:-1]) * prod(weights.shape)
    if info.type == "FULLY_CONNECTED":
        source = inputs[0]
        return 0 if source is None else source.elements * weights.shape[0]
    if output is None or len(output.shape) != _RANK:
        return 0
    points = prod(output.shape[:3])
    if info.type == "CONV_2D":
        return points * prod(weights.shape)
    if info.type == "DEPTHWISE_CONV_2D":
        return points * prod(weights.shape[1:])
    return 0


_ELEMENTS: Final = """
    DEQUANTIZE EQUAL GELU GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_NOT NOT_EQUAL POW
    RELU_N1_TO_1 RELU_0_TO_1
"""
_CHANNELS: Final = "L2_NORMALIZATION LOG_SOFTMAX SOFTMAX"
_MIXES: Final = frozenset(
    ["MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "RESHAPE", "SUM", "TRANSPOSE"]
)
_SKIPPED: Final = frozenset({"DYNAMIC_UPDATE_SLICE", "SOFTMAX"})
_EACH: Final = [name for name, rule in IN_PLACE.items() if not rule.moves and name not in _SKIPPED]
_POOLS: Final = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
_RESIZES: Final = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
_Rule = Callable[[OperatorInfo, _Tensors, TensorInfo], _Maps]
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
