"""Random TFLite operators of every kind whose shapes memplan computes, with any attributes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tflite_networks import File, Value

__all__ = ["OPERATORS", "draw_operator"]

_TABLES = {
    "ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions",
    "SOFTMAX": "SoftmaxOptions", "LEAKY_RELU": "LeakyReluOptions", "CAST": "CastOptions",
    "L2_NORMALIZATION": "L2NormOptions", "GELU": "GeluOptions",
}  # fmt: skip


def _shape(rng: random.Random, rank: int | None = None) -> list[int]:
    rank = rng.randint(0, 5) if rank is None else rank
    least = 0 if rng.random() < 0.04 else 1
    return [rng.choice((1, rng.randint(least, 9))) for _ in range(rank)]


def _ints(file: File, values: Any) -> Value:
    return file.constant(np.array(values, np.int32))


def _add(
    file: File, kind: str, inputs: Sequence[Value | None], table: str = "", **more: Any
) -> Value:
    """Add an operator whose result is stored in a shape that the runtime replaces."""
    dtype = inputs[0].dtype if inputs[0] else "float32"
    dtype = {"SHAPE": "int32", "CAST": "int32"}.get(kind, "bool" if kind in _COMPARES else dtype)
    return file.operator(kind, inputs, file.value((1,), dtype), table, **more)


def change(file: File, kind: str) -> Value:
    """Add an operator on one tensor, which keeps its shape."""
    dtype = "bool" if kind == "LOGICAL_NOT" else "float32"
    if kind == "DEQUANTIZE":
        x = file.image(_shape(file.rng), "int8")
        return file.operator(kind, (x,), file.value((1,), "float32"), "DequantizeOptions")
    if kind == "QUANTIZE":
        x = file.image(_shape(file.rng), dtype)
        return file.operator(kind, (x,), file.value((1,), "int8"), "QuantizeOptions")
    least = 1 if kind in ("SOFTMAX", "LOG_SOFTMAX") else 0
    rank = 4 if kind == "L2_NORMALIZATION" else file.rng.randint(least, 5)
    x = file.image(_shape(file.rng, rank), dtype)
    more: dict[str, Any] = {"beta": 1.0} if kind == "SOFTMAX" else {}
    return _add(file, kind, (x,), _TABLES.get(kind, ""), **more)


def slope(file: File, kind: str) -> Value:
    """Add PRELU."""
    x = file.image(_shape(file.rng, 4), "float32")
    return _add(file, kind, (x, file.numbers(x.shape[1:], "float32")))


def combine(file: File, kind: str) -> Value:
    """Add an operator on two tensors, or three, that are broadcast."""
    rng = file.rng
    full = _shape(rng)
    count = 3 if kind == "SELECT_V2" else 2
    shapes = []
    for _ in range(count):
        shape = [1 if rng.random() < 0.3 else size for size in full]
        shape = shape[rng.randint(0, len(shape)) :] if rng.random() < 0.3 else shape
        if rng.random() < 0.05 and shape:
            shape[rng.randrange(len(shape))] += 1  # which may not fit
        shapes.append(shape)
    dtype = "bool" if kind.startswith("LOGICAL") else "float32"
    inputs = [file.image(shape, dtype) for shape in shapes]
    if kind == "SELECT_V2":
        inputs[0] = file.image(shapes[0], "bool")
        return file.operator(kind, inputs, file.value((1,), "float32"), "SelectV2Options")
    return _add(file, kind, inputs, _TABLES.get(kind, ""))


def reduce(file: File, kind: str) -> Value:
    """Add a reduction over any axes: negative ones, several, the same twice, none."""
    rng = file.rng
    shape = _shape(rng, rng.randint(1, 4))
    axes = [rng.randint(-len(shape), len(shape) - 1) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.03:
        axes.append(len(shape))
    values: Any = axes[0] if len(axes) == 1 and rng.random() < 0.3 else axes
    x = file.image(shape, "float32")
    inputs = (x, _ints(file, values))
    return _add(file, kind, inputs, "ReducerOptions", keepDims=rng.random() < 0.5)


def _window(rng: random.Random) -> dict[str, int]:
    return {
        "padding": rng.randint(0, 1),
        "strideH": rng.randint(1, 4),
        "strideW": rng.randint(1, 4),
    }


def pool(file: File, kind: str) -> Value:
    """Add a pool."""
    rng = file.rng
    x = file.image(_shape(rng, 4), "float32")
    more = {"filterHeight": rng.randint(1, 6), "filterWidth": rng.randint(1, 6)}
    return _add(file, kind, (x,), "Pool2DOptions", **_window(rng), **more)


def convolve(file: File, kind: str) -> Value:
    """Add a convolution."""
    rng = file.rng
    x = file.image(_shape(rng, 4), "float32")
    kernel, count = (rng.randint(1, 5), rng.randint(1, 5)), rng.randint(1, 4)
    more = {"dilationHFactor": rng.randint(1, 3), "dilationWFactor": rng.randint(1, 3)}
    if kind == "CONV_2D":
        groups = rng.choice([g for g in (1, 2) if x.shape[3] % g == 0])
        weights = file.numbers((count * groups, *kernel, x.shape[3] // groups), "float32")
        bias = file.numbers((count * groups,), "float32")
        inputs = (x, weights, rng.choice((bias, None)))
        return _add(file, kind, inputs, "Conv2DOptions", **_window(rng), **more)
    weights = file.numbers((1, *kernel, x.shape[3] * count), "float32")
    bias = file.numbers((x.shape[3] * count,), "float32")
    more["depthMultiplier"] = count
    inputs = (x, weights, rng.choice((bias, None)))
    return _add(file, kind, inputs, "DepthwiseConv2DOptions", **_window(rng), **more)


def connect(file: File, kind: str) -> Value:
    """Add FULLY_CONNECTED, of rows that are those of the input or others."""
    rng = file.rng
    shape = _shape(rng, rng.randint(1, 4))
    count = int(np.prod(shape))
    widths = [one for one in range(1, count + 1) if count % one == 0] or [1]
    width = shape[-1] if rng.random() < 0.7 and shape[-1] else rng.choice(widths)
    units = rng.randint(1, 5)
    weights = file.numbers((units, width), "float32")
    bias = rng.choice((file.numbers((units,), "float32"), None))
    keep = rng.random() < 0.5
    inputs = (file.image(shape, "float32"), weights, bias)
    return _add(file, kind, inputs, "FullyConnectedOptions", keepNumDims=keep)


def join(file: File, kind: str) -> Value:
    """Add CONCATENATION or PACK."""
    rng = file.rng
    rank = rng.randint(1, 4)
    shape, parts = _shape(rng, rank), []
    axis = rng.randint(-rank - (kind == "PACK"), rank - (kind != "PACK"))
    for _ in range(rng.randint(1, 4)):
        one = list(shape)
        if kind == "CONCATENATION":
            one[axis] = rng.randint(1, 5)
        if rng.random() < 0.03:
            one[rng.randrange(rank)] += 1
        parts.append(file.image(one, "float32"))
    if kind == "PACK":
        return _add(file, kind, parts, "PackOptions", valuesCount=len(parts), axis=axis)
    return _add(file, kind, parts, "ConcatenationOptions", axis=axis)


def transpose(file: File, kind: str) -> Value:
    """Add TRANSPOSE, whose axes may be negative."""
    rng = file.rng
    shape = _shape(rng, rng.randint(1, 5))
    order = list(range(len(shape)))
    rng.shuffle(order)
    order = [axis - len(shape) if rng.random() < 0.1 else axis for axis in order]
    inputs = (file.image(shape, "float32"), _ints(file, order))
    return _add(file, kind, inputs, "TransposeOptions")


def pad(file: File, kind: str) -> Value:
    """Add PAD or PADV2."""
    rng = file.rng
    shape = _shape(rng, rng.randint(1, 4))
    amounts = [[rng.randint(0, 3), rng.randint(0, 3)] for _ in shape]
    value = (file.numbers((1,), "float32"),) if kind == "PADV2" else ()
    inputs = (file.image(shape, "float32"), _ints(file, amounts), *value)
    return _add(file, kind, inputs, {"PAD": "PadOptions", "PADV2": "PadV2Options"}[kind])


def mirror(file: File, kind: str) -> Value:
    """Add a MIRROR_PAD, which reflects or repeats the border; some ask for too much."""
    rng = file.rng
    shape = _shape(rng, rng.randint(1, 3))
    most = [max(0, size - (rng.random() < 0.8)) for size in shape]
    amounts = [[rng.randint(0, each), rng.randint(0, each)] for each in most]
    inputs = (file.image(shape, "float32"), _ints(file, amounts))
    return _add(file, kind, inputs, "MirrorPadOptions", mode=rng.randint(0, 1))


def expand(file: File, kind: str) -> Value:
    """Add EXPAND_DIMS."""
    rng = file.rng
    shape = _shape(rng, rng.randint(0, 4))
    axis = rng.randint(-len(shape) - 1, len(shape))
    values: Any = axis if rng.random() < 0.5 else [axis]
    inputs = (file.image(shape, "float32"), _ints(file, values))
    return _add(file, kind, inputs, "ExpandDimsOptions")


def resize(file: File, kind: str) -> Value:
    """Add a resize."""
    rng = file.rng
    inputs = (file.image(_shape(rng, 4), "float32"), _ints(file, [rng.randint(1, 9) for _ in "hw"]))
    table = {"B": "ResizeBilinearOptions", "N": "ResizeNearestNeighborOptions"}[kind[7]]
    align = rng.random() < 0.3
    more = {"alignCorners": align, "halfPixelCenters": not align and rng.random() < 0.5}
    return _add(file, kind, inputs, table, **more)


def reshape(file: File, kind: str) -> Value:
    """Add RESHAPE: by an input or an option, with an axis that is computed, or one that is 0."""
    rng = file.rng
    shape = _shape(rng)
    made, left = [], int(np.prod(shape))
    for _ in range(rng.randint(0, 3)):
        made.append(rng.choice([one for one in range(1, left + 1) if left % one == 0] or [0]))
        left //= max(made[-1], 1)
    made.append(left)
    rng.shuffle(made)
    if made and rng.random() < 0.4:
        made[rng.randrange(len(made))] = -1
    if made and rng.random() < 0.05:
        made[rng.randrange(len(made))] = rng.choice((0, 2, -1))
    x = file.image(shape, "float32")
    if rng.random() < 0.3:
        return _add(file, kind, (x,), "ReshapeOptions", newShape=made)
    if rng.random() < 0.3:
        return _add(file, kind, (x, _ints(file, made)), "ReshapeOptions", newShape=[1, 7])
    return _add(file, kind, (x, _ints(file, made)))


def measure(file: File, kind: str) -> Value:
    """Add SHAPE."""
    return _add(file, kind, (file.image(_shape(file.rng), "float32"),), "ShapeOptions", outType=2)


def update(file: File, kind: str) -> Value:
    """Add DYNAMIC_UPDATE_SLICE."""
    shape = _shape(file.rng, file.rng.randint(1, 4))
    part = [file.rng.randint(min(size, 1), size) for size in shape]
    begin = file.image((len(shape),), "int32")
    return _add(file, kind, (file.image(shape, "float32"), file.image(part, "float32"), begin))


_COMPARES = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_SAME = """
    ABS CAST CEIL COS DEQUANTIZE ELU EXP FLOOR GELU HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOG
    LOGICAL_NOT LOGISTIC LOG_SOFTMAX NEG QUANTIZE RELU RELU6 ROUND RSQRT SIN SOFTMAX SQRT SQUARE
    TANH ZEROS_LIKE
"""
_BINARY = """
    ADD DIV FLOOR_DIV FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM MUL POW SELECT_V2
    SQUARED_DIFFERENCE SUB
"""
OPERATORS: dict[str, Callable[[File, str], Value]] = {
    **dict.fromkeys(_SAME.split(), change),
    **dict.fromkeys((*_BINARY.split(), *_COMPARES), combine),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), reduce),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), pool),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), convolve),
    **dict.fromkeys(("CONCATENATION", "PACK"), join),
    **dict.fromkeys(("PAD", "PADV2"), pad),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), resize),
    "DYNAMIC_UPDATE_SLICE": update,
    "EXPAND_DIMS": expand,
    "FULLY_CONNECTED": connect,
    "MIRROR_PAD": mirror,
    "PRELU": slope,
    "RESHAPE": reshape,
    "SHAPE": measure,
    "TRANSPOSE": transpose,
}


def draw_operator(rng: random.Random, kind: str) -> bytes:
    """Return a file of one operator, whose result is stored in another shape than it makes."""
    file = File(rng, version=1)
    return file.pack([OPERATORS[kind](file, kind)])
