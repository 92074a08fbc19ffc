"""Random TFLite networks, with what each operator computes as a plain kernel of `kernels.c`."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from steps_in_c import Network, Op, Part
from tflite_networks import OFTEN, OPERATORS, Call, Draw, File, UnfitError, Value

__all__ = ["WHOLE", "add_conv", "draw_network", "network_of"]

_KINDS = {
    "LOGISTIC": "sigmoid", "LEAKY_RELU": "leaky", "CAST": "same", "QUANTIZE": "same",
    "DEQUANTIZE": "same", "MAXIMUM": "max", "MINIMUM": "min", "ADD_N": "add",
    "LOGICAL_AND": "and", "LOGICAL_OR": "or", "LOGICAL_NOT": "not",
}  # fmt: skip
_POWERS = {"MAX_POOL_2D": 0, "AVERAGE_POOL_2D": 1, "L2_POOL_2D": -2}


def average(file: File, x: Value, kind: str) -> Value:
    """Add MEAN over rows and columns, and scale the channels with it, as squeeze-and-excitation."""
    axes, size = file.constant(np.array([1, 2], np.int32)), (1, 1, 1, x.shape[3])
    mean = file.operator(
        "MEAN", (x, axes), file.value(size, x.dtype, x), "ReducerOptions", keepDims=True
    )
    return file.operator("MUL", (x, mean), file.value(x.shape, x.dtype), "MulOptions")


def turn(file: File, x: Value, kind: str) -> Value:
    """Add RESHAPE, to as many rows as there were columns."""
    _, rows, columns, channels = x.shape
    shape = (1, columns, rows, channels)
    sizes = file.constant(np.array(shape, np.int32))
    result = file.value(shape, x.dtype, x)
    return file.operator("RESHAPE", (x, sizes), result, "ReshapeOptions", newShape=list(shape))


def add_conv(file: File, x: Value, count: int, stride: int = 1) -> Value:
    """Add a CONV_2D of 3 x 3 in int8, with SAME padding."""
    _, rows, columns, channels = x.shape
    draw = file.draw.integers(-127, 128, (count, 3, 3, channels)).astype(np.int8)
    made = (1, -(-rows // stride), -(-columns // stride), count)
    return file.operator(
        "CONV_2D", (x, file.constant(draw, [0.01] * count), None), file.value(made, "int8"),
        "Conv2DOptions", padding=0, strideH=stride, strideW=stride, dilationHFactor=1,
        dilationWFactor=1, fusedActivationFunction=0,
    )  # fmt: skip


WHOLE: dict[str, tuple[Draw, tuple[str, ...]]] = {
    "MEAN": (average, ("float32", "int8")),
    "RESHAPE": (turn, ("float32", "int8")),
}


def draw_network(rng: random.Random) -> Network:
    """Return a network of two to ten operators, of which some begin at an earlier result."""
    table = OPERATORS | WHOLE
    while True:
        file = File(rng)
        dtype = rng.choice(("float32", "float32", "float32", "int8", "int8", "bool"))
        shape = (1, rng.randint(4, 26), rng.randint(4, 18), rng.choice((1, 2, 3, 4, 5, 8)))
        x = file.image(shape, dtype)
        wanted = rng.randint(2, 10)
        for _ in range(4 * wanted):
            if len(file.calls) >= wanted:
                break
            fits = [kind for kind, (_, types) in table.items() if x.dtype in types]
            often = [kind for kind in OFTEN if kind in fits]
            kind = rng.choice(often if often and rng.random() < 0.6 else fits)
            before = file.count, len(file.inputs)
            try:
                x = table[kind][0](file, x, kind)
            except UnfitError:
                file.undo(*before)
            earlier = [value for value in file.made if len(value.shape) == 4]
            if earlier and rng.random() < 0.2:
                x = rng.choice(earlier)
        if len(file.calls) > 1:
            read = {one.number for call in file.calls for one in call.inputs if one}
            ends = [value for value in file.made if value.number not in read]
            more = rng.sample(file.made, rng.choice((0, 1, 1)))  # leaves from the middle
            return network_of(file, ends[-3:] + more)


def network_of(file: File, outputs: list[Value]) -> Network:
    """Return a file as a network."""
    unique = list({value.number: value for value in outputs}.values())
    given = {value.number: value for call in file.calls for value in (*call.inputs, call.result)
             if value is not None}  # fmt: skip
    file.inputs = [number for number in file.inputs if number in given]
    parts = []
    for number in range(file.count):
        value = given.get(number)
        if value is None:
            parts.append(Part(f"t{number}", "bool", (1,), np.zeros(1), True))
            continue
        values, is_held = file.values.get(number), number in file.values
        if number in file.inputs:
            values = _draw_values(file, value)
        parts.append(Part(f"t{number}", value.dtype, value.shape, values, is_held))
    ops = [_describe(file, call) for call in file.calls]
    kinds = [call.kind for call in file.calls]
    data, numbers = file.pack(unique), [value.number for value in unique]
    return Network(data, "tflite", parts, ops, file.inputs, numbers, False, kinds)


def _draw_values(file: File, value: Value) -> Any:
    values = file.draw.standard_normal(value.shape) * (40 if "int" in value.dtype else 1)
    values = np.clip(values, -127, 127) if value.dtype == "int8" else values
    return values > 0 if value.dtype == "bool" else values.astype(value.dtype)


def _describe(file: File, call: Call) -> Op:
    inputs = tuple(-1 if one is None else one.number for one in call.inputs)
    made = _KERNELS.get(call.kind, _each)(file, call)
    kernel, parameters, *element = made
    return Op(kernel, inputs, call.result.number, tuple(parameters), *element)


def _pad(size: int, kernel: int, stride: int, dilation: int, same: bool) -> int:
    if not same:
        return 0
    reach = (kernel - 1) * dilation + 1
    return max((-(-size // stride) - 1) * stride + reach - size, 0) // 2


def _window(
    call: Call, sizes: tuple[int, ...], kernel: tuple[int, ...], holes: tuple[int, int] = (1, 1)
) -> tuple[float, ...]:
    options = call.options
    stride = options["strideH"], options["strideW"]
    same = options["padding"] == 0
    pads = [_pad(sizes[at], kernel[at], stride[at], holes[at], same) for at in (0, 1)]
    return (*stride, *holes, *pads)


def _factor(value: Value, taps: int) -> float:
    """Return a factor that keeps sums of products of int8 in the range of int8."""
    return 1.0 if value.dtype == "float32" else 1 / (90 * sqrt(taps))


def _convolve(file: File, call: Call) -> tuple[Any, ...]:
    x, weights = call.inputs[0], call.inputs[1]
    assert x
    assert weights
    options = call.options
    depthwise = call.kind != "CONV_2D"
    holes = options["dilationHFactor"], options["dilationWFactor"]
    window = _window(call, x.shape[1:3], weights.shape[1:3], holes)
    groups = x.shape[3] if depthwise else x.shape[3] // weights.shape[3]
    taps = int(np.prod(weights.shape[1:3])) * (1 if depthwise else weights.shape[3])
    activation = options["fusedActivationFunction"]
    return "conv", (1, 2, _factor(x, taps), activation, *window, groups, 0, 0, depthwise)


def _transpose(file: File, call: Call) -> tuple[Any, ...]:
    weights, x = call.inputs[1], call.inputs[2]
    assert x
    assert weights
    window = _window(call, call.result.shape[1:3], weights.shape[1:3])
    taps = int(np.prod(weights.shape[1:]))
    return "tconv", (1, 3, _factor(x, taps), 0, *window, 1)


def _pool(file: File, call: Call) -> tuple[Any, ...]:
    (x,), options = call.inputs, call.options
    assert x
    kernel = options["filterHeight"], options["filterWidth"]
    window = _window(call, x.shape[1:3], kernel)
    activation = options["fusedActivationFunction"]
    return "pool", (-1, -1, 1, activation, *window, 1, *kernel, 0, _POWERS[call.kind])


def _resize(file: File, call: Call) -> tuple[Any, ...]:
    align, half = call.options["alignCorners"], call.options["halfPixelCenters"]
    rounding = 3 if align else 4 if half else 0
    return "resize", (call.kind == "RESIZE_BILINEAR", 2 if align else int(half), rounding)


def _add_padding(file: File, call: Call) -> tuple[Any, ...]:
    assert call.inputs[1]
    amounts = file.values[call.inputs[1].number]
    return "pad", (*amounts[1:, 0].tolist(), 2 if call.kind == "PADV2" else -1, 0)


def _each(file: File, call: Call) -> tuple[Any, ...]:
    name = _KINDS.get(call.kind, call.kind.replace("_", "").lower())
    slope = call.options.get("alpha", 0.0)
    return "each", (0, slope, 1, call.options.get("fusedActivationFunction", 0)), name


def _connect(file: File, call: Call) -> tuple[Any, ...]:
    x = call.inputs[0]
    assert x
    activation = call.options["fusedActivationFunction"]
    return "connect", (1, 2, _factor(x, x.shape[3]), activation)


def _unit(call: Call) -> float:
    return 1.0 if call.result.dtype == "float32" else 1 / 32


_KERNELS: dict[str, Callable[[File, Call], tuple[Any, ...]]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _convolve),
    **dict.fromkeys(_POWERS, _pool),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    **dict.fromkeys(("PAD", "PADV2"), _add_padding),
    "TRANSPOSE_CONV": _transpose,
    "FULLY_CONNECTED": _connect,
    "CONCATENATION": lambda _, call: ("join", (call.options["axis"] % 4 - 1,)),
    "SELECT_V2": lambda *_: ("choose", ()),
    "SOFTMAX": lambda _, call: ("softmax", (0, _unit(call))),
    "LOG_SOFTMAX": lambda _, call: ("softmax", (1, _unit(call))),
    "L2_NORMALIZATION": lambda _, call: ("l2norm", (0, _unit(call))),
    "SPACE_TO_DEPTH": lambda _, call: ("depth", (call.options["blockSize"],)),
    "DEPTH_TO_SPACE": lambda _, call: ("space", (call.options["blockSize"], 0)),
    "MEAN": lambda *_: ("average", ()),
    "RESHAPE": lambda *_: ("keep", ()),
}
