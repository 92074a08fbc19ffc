"""Random ONNX networks, with what each operator computes as a plain kernel of `kernels.c`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytest
from steps_in_c import Network, Op, Part
from tflite_networks import UnfitError, _require

pytest.importorskip("onnx")
import onnx
from onnx import helper

__all__ = ["OPERATORS", "draw_network"]

_UNARY = {
    "Abs": "abs", "Ceil": "ceil", "Cos": "cos", "Elu": "elu", "Erf": "erf", "Exp": "exp",
    "Floor": "floor", "HardSwish": "hardswish", "Neg": "neg", "Relu": "relu", "Round": "round",
    "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Softplus": "softplus", "Tanh": "tanh",
}  # fmt: skip
_BINARY = {
    "Add": "add", "Div": "div", "Max": "max", "Min": "min", "Mul": "mul", "PRelu": "prelu",
    "Sub": "sub",
}  # fmt: skip


class Model:
    """An ONNX model that grows by random operators, of the newest opset here or an older one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.draw = np.random.default_rng(rng.randrange(1 << 32))
        self.opset = rng.choice((13, 15, 18, 22))
        self.parts: list[Part] = []
        self.ops: list[Op] = []
        self.nodes: list[Any] = []
        self.inputs: list[int] = []
        self.made: list[int] = []

    def add(self, shape: Sequence[int], values: Any = None, dtype: str = "float32") -> int:
        """Add a tensor; with values, it is a constant."""
        name, is_held = f"t{len(self.parts)}", values is not None
        self.parts.append(Part(name, dtype, tuple(shape), values, is_held))
        return len(self.parts) - 1

    def image(self, shape: Sequence[int]) -> int:
        """Add an input, which the caller keeps."""
        self.inputs.append(self.add(shape, self.draw.standard_normal(shape)))
        return self.inputs[-1]

    def noise(self, *shape: int, scale: float = 1.0) -> int:
        """Add a constant of random numbers."""
        return self.add(shape, self.draw.standard_normal(shape) * scale)

    def whole(self, *values: int) -> int:
        """Add a constant list of whole numbers."""
        return self.add((len(values),), np.array(values), "int64")

    def shape(self, at: int) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.parts[at].shape

    @property
    def pictures(self) -> list[int]:
        """The results of operators that are no whole numbers."""
        return [at for at in self.made if self.parts[at].dtype == "float32"]

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        kernel: tuple[Any, ...],
        dtype: str = "float32",
        **attributes: Any,
    ) -> int:
        """Add an operator; its kernel has a name, parameters, and that of an element if it is one.

        Returns
        -------
        int
            Its result.
        """
        _require(min(shape) > 0 and int(np.prod(shape)) <= 12_000)
        name, parameters, *element = kernel
        result = self.add(shape, dtype=dtype)
        names = [self.parts[at].name if at >= 0 else "" for at in inputs]
        self.nodes.append(helper.make_node(kind, names, [self.parts[result].name], **attributes))
        self.ops.append(Op(name, tuple(inputs), result, tuple(parameters), *element))
        self.made.append(result)
        return result

    def network(self) -> Network:
        """Return the model; what no operator reads is a result."""
        read = {at for op in self.ops for at in op.inputs}
        outputs = [at for at in self.made if at not in read][-4:]
        outputs += {*self.rng.sample(self.made, self.rng.choice((0, 0, 1)))} - {*outputs}
        self.inputs = [at for at in self.inputs if at in read]
        weights = [
            onnx.numpy_helper.from_array(np.asarray(part.values).astype(part.dtype), part.name)
            for at, part in enumerate(self.parts)
            if part.is_held and at in read and at not in self.inputs
        ]
        graph = helper.make_graph(
            self.nodes, "net", self._list(self.inputs), self._list(outputs), weights
        )
        opsets = [helper.make_opsetid("", self.opset)]
        data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        kinds = [node.op_type for node in self.nodes]
        return Network(data, "onnx", self.parts, self.ops, self.inputs, outputs, True, kinds)

    def _list(self, numbers: Sequence[int]) -> list[Any]:
        types = {"float32": onnx.TensorProto.FLOAT, "uint8": onnx.TensorProto.UINT8}
        parts = [self.parts[at] for at in numbers]
        return [
            helper.make_tensor_value_info(part.name, types[part.dtype], part.shape)
            for part in parts
        ]


Draw = Callable[[Model, int, str], int]


def _slide(
    model: Model, size: int, kernel: int, stride: int, hole: int, kind: str
) -> tuple[int, int, int]:
    """Return the padding of an axis at both ends, and the rows of the result."""
    reach = (kernel - 1) * hole + 1
    if kind.startswith("SAME"):
        made = -(-size // stride)
        total = max((made - 1) * stride + reach - size, 0)
        before = total // 2 if kind == "SAME_UPPER" else total - total // 2
        return before, total - before, made
    before, after = (model.rng.randrange(reach) if kind == "pads" else 0 for _ in "ab")
    _require(size + before + after >= reach)
    return before, after, (size + before + after - reach) // stride + 1


def _draw_window(model: Model, x: int, holes: bool) -> tuple[dict[str, Any], list[int], list[int]]:
    """Return attributes of a window, its kernel's parameters, and the rows and columns made."""
    rng, (_, _, *sizes) = model.rng, model.shape(x)
    kernel = rng.choice(([1, 1], [2, 2], [3, 3], [3, 3], [rng.randint(1, 5), rng.randint(1, 5)]))
    stride = [rng.choice((1, 1, 2, 3)) for _ in "hw"]
    kind = rng.choice(("pads", "pads", "pads", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    hole = [rng.choice((1, 1, 2)) for _ in "hw"]
    if not holes or kind in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        hole = [1, 1]
    found = [_slide(model, sizes[at], kernel[at], stride[at], hole[at], kind) for at in (0, 1)]
    options: dict[str, Any] = {"kernel_shape": kernel, "strides": stride}
    if hole != [1, 1]:
        options["dilations"] = hole
    if kind == "pads":
        options["pads"] = [found[axis][end] for end in (0, 1) for axis in (0, 1)]
    elif kind != "NOTSET":
        options["auto_pad"] = kind
    parameters = [*stride, *hole, *(one[0] for one in found)]
    return options, parameters, [one[2] for one in found]


def convolve(model: Model, x: int, kind: str) -> int:
    """Add Conv: groups, dilations, all ways to pad."""
    rng, channels = model.rng, model.shape(x)[1]
    options, window, made = _draw_window(model, x, holes=True)
    groups = rng.choice([one for one in (1, 1, 2, channels) if channels % one == 0])
    count = groups * rng.randint(1, 3)
    kernel = options["kernel_shape"]
    taps = channels // groups * kernel[0] * kernel[1]
    weights = model.noise(count, channels // groups, *kernel, scale=1 / sqrt(taps))
    bias = [model.noise(count)] * rng.randint(0, 1)
    return model.operator(
        kind, [x, weights, *bias], (1, count, *made),
        ("conv", (1, 2, 1, 0, *window, groups)), group=groups, **options,
    )  # fmt: skip


def pool(model: Model, x: int, kind: str) -> int:
    """Add a pool."""
    holes = kind == "MaxPool"
    options, window, made = _draw_window(model, x, holes)
    kernel = options["kernel_shape"]
    for at in (0, 1):  # each window has a row of the input
        reach = (kernel[at] - 1) * window[2 + at] + 1
        last = (made[at] - 1) * window[at] - window[4 + at]
        _require(window[4 + at] < reach and last < model.shape(x)[2 + at])
        _require(holes is False or window[2 + at] == 1 or window[4 + at] == 0)
        # Where rows lie between windows, SAME is padding below zero in onnxruntime.
        _require(not options.get("auto_pad", "").startswith("SAME") or reach >= window[at])
    counts = 0
    if kind == "AveragePool":
        counts = options["count_include_pad"] = model.rng.randint(0, 1)
    power = {"MaxPool": 0, "AveragePool": 1}.get(kind, 2)
    if power == 2:
        options["p"] = power = model.rng.choice((2, 3))
    parameters = (-1, -1, 1, 0, *window, 1, *kernel, counts, power)
    return model.operator(kind, [x], (1, model.shape(x)[1], *made), ("pool", parameters), **options)


def transpose(model: Model, x: int, kind: str) -> int:
    """Add ConvTranspose, with padding that is free at both ends."""
    rng, (_, channels, *sizes) = model.rng, model.shape(x)
    stride = [rng.randint(1, 3) for _ in "hw"]
    kernel = [one + rng.randint(0, 2) for one in stride]
    pads = [rng.randrange(kernel[axis]) for axis in (0, 1, 0, 1)]
    extra = [rng.randrange(one) for one in stride]
    groups = rng.choice([one for one in (1, 1, channels) if channels % one == 0])
    count = rng.randint(1, 3)
    made = [
        (sizes[at] - 1) * stride[at] + kernel[at] + extra[at] - pads[at] - pads[2 + at]
        for at in (0, 1)
    ]
    _require(min(made) > 0 and max(made) <= 64)
    weights = model.noise(channels, count, *kernel, scale=0.5)
    bias = [model.noise(count * groups)] * rng.randint(0, 1)
    return model.operator(
        kind, [x, weights, *bias], (1, count * groups, *made),
        ("tconv", (1, 2, 1, 0, *stride, 1, 1, *pads[:2], groups)),
        strides=stride, pads=pads, output_padding=extra, group=groups,
    )  # fmt: skip


def resize(model: Model, x: int, kind: str) -> int:
    """Add Resize, by powers of two, or by others that end a region."""
    rng, (_, channels, *sizes) = model.rng, model.shape(x)
    scale = [rng.choice((1, 2, 2, 4, 0.5, 0.5, 1.5)) for _ in "hw"]
    made = [int(size * one) for size, one in zip(sizes, scale, strict=True)]
    _require(all(size * one == new for size, one, new in zip(sizes, scale, made, strict=True)))
    _require(max(made) <= 64 and min(made) > 1)
    where = rng.choice(("asymmetric", "half_pixel", "half_pixel", "pytorch_half_pixel"))
    linear = rng.random() < 0.5
    rounding = rng.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    codes = {"floor": 0, "ceil": 1, "round_prefer_floor": 2, "round_prefer_ceil": 3}
    if rng.random() < 0.5:
        scales = np.array([1, 1, *scale])
        inputs = [x, -1, model.add((4,), scales)]
    else:
        inputs = [x, -1, -1, model.whole(1, channels, *made)]
    return model.operator(
        kind, inputs, (1, channels, *made),
        ("resize", (linear, where != "asymmetric", codes[rounding])),
        coordinate_transformation_mode=where, nearest_mode=rounding,
        mode="linear" if linear else "nearest",
    )  # fmt: skip


def element(model: Model, x: int, kind: str) -> int:
    """Add an operator on the elements of one tensor."""
    return model.operator(kind, [x], model.shape(x), ("each", (0, 0, 1, 0), _UNARY[kind]))


def leak(model: Model, x: int, kind: str) -> int:
    """Add LeakyRelu."""
    kernel = ("each", (0, 0.125, 1, 0), "leaky")
    return model.operator(kind, [x], model.shape(x), kernel, alpha=0.125)


def clip(model: Model, x: int, kind: str) -> int:
    """Add Clip, with a lower end alone."""
    low = model.add((), np.float32(-0.5))
    return model.operator(kind, [x, low], model.shape(x), ("each", (0, 0, 1, 0), "clip"))


def combine(model: Model, x: int, kind: str) -> int:
    """Add an operator on elements of two tensors, of which one may be broadcast."""
    rng, shape = model.rng, model.shape(x)
    _, channels, rows, columns = shape
    shapes: list[tuple[int, ...]] = [
        *(shape, shape, (channels, 1, 1), (1, channels, 1, 1), (1,), (), (1, 1, rows, columns)),
        *((1, channels, rows, 1), (1, channels, 1, columns), (1, 1, 1, 1)),
    ]
    other = rng.choice(shapes)
    fits = [at for at in model.pictures if model.shape(at) == shape and at != x]
    if kind != "PRelu" and fits and rng.random() < 0.5:
        second = rng.choice(fits)
    elif len(other) == 4 and kind != "PRelu" and rng.random() < 0.4:
        second = model.image(other)
    else:
        second = model.noise(*other)
    both = [second, x] if kind != "PRelu" and rng.random() < 0.3 else [x, second]
    return model.operator(kind, both, shape, ("each", (0, 0, 1, 0), _BINARY[kind]))


def pad(model: Model, x: int, kind: str) -> int:
    """Add Pad with a constant."""
    rng, shape = model.rng, model.shape(x)
    most = (1, rng.choice((0, 3, 6)), rng.choice((0, 3)))
    before, after = ([rng.randint(0, one) for one in most] for _ in "ab")
    made = [size + a + b for size, a, b in zip(shape[1:], before, after, strict=True)]
    amounts = model.whole(0, *before, 0, *after)
    inputs = [x, amounts, model.add((), np.float32(0.75))][: rng.choice((2, 3))]
    parameters = (before[1], before[2], before[0], 2 if len(inputs) == 3 else -1, 0)
    return model.operator(kind, inputs, (1, *made), ("pad", parameters))


def join(model: Model, x: int, kind: str) -> int:
    """Add Concat of rows, columns or channels, of inputs, constants and earlier results."""
    rng, axis = model.rng, model.rng.randint(1, 3)
    parts = [x]
    for _ in range(rng.randint(1, 3)):
        shape = list(model.shape(x))
        fits = [at for at in model.pictures if model.shape(at) == tuple(shape)]
        shape[axis] = rng.randint(1, 6)
        what = rng.random()
        if fits and what < 0.4:
            parts.append(rng.choice(fits))
        else:
            parts.append(model.image(shape) if what < 0.7 else model.noise(*shape))
    rng.shuffle(parts)
    made = list(model.shape(x))
    made[axis] = sum(model.shape(at)[axis] for at in parts)
    _require(max(made[2:]) <= 64)
    sign = rng.choice((axis, axis - 4))
    return model.operator(kind, parts, made, ("join", ((2, 0, 1)[axis - 1],)), axis=sign)


def normalize(model: Model, x: int, kind: str) -> int:
    """Add an operator on the channels of each point."""
    shape = model.shape(x)
    if kind == "Softmax":
        return model.operator(kind, [x], shape, ("softmax", (0, 1)), axis=1)
    if kind == "LogSoftmax":
        return model.operator(kind, [x], shape, ("softmax", (1, 1)), axis=1)
    if kind == "LRN":
        kernel = ("lrn", (3, 0.5, 0.75, 1))
        return model.operator(kind, [x], shape, kernel, size=3, alpha=0.5, beta=0.75, bias=1.0)
    rest = [model.noise(shape[1]) for _ in "sbm"]
    variance = model.add((shape[1],), np.abs(model.draw.standard_normal(shape[1])) + 0.5)
    kernel = ("batchnorm", (1e-5,))
    return model.operator(kind, [x, *rest, variance], shape, kernel, epsilon=1e-5)


def quantize(model: Model, x: int, kind: str) -> int:
    """Add QuantizeLinear, a convolution of whole numbers, and DequantizeLinear."""
    rng, shape = model.rng, model.shape(x)
    _require(max(shape[2:]) <= 32)
    scale, zero = model.add((), np.float32(0.05)), model.add((), np.uint8(0), "uint8")
    whole = model.operator("QuantizeLinear", [x, scale, zero], shape, ("quantize", (0,)), "uint8")
    if rng.random() < 0.7:
        options, window, made = _draw_window(model, whole, holes=True)
        count, kernel = rng.randint(1, 4), options["kernel_shape"]
        values = model.draw.integers(-9, 9, (count, shape[1], *kernel))
        weights = model.add(values.shape, values, "int8")
        none = model.add((), np.int8(0), "int8")
        inputs = [whole, scale, zero, weights, scale, none, scale, zero]
        parameters = (3, -1, 0.05, 0, *window, 1)
        made = (1, count, *made)
        whole = model.operator(
            "QLinearConv", inputs, made, ("conv", parameters), "uint8", **options
        )
    made = model.shape(whole)
    return model.operator(kind, [whole, scale, zero], made, ("quantize", (1,)))


def fold(model: Model, x: int, kind: str) -> int:
    """Add SpaceToDepth or DepthToSpace, with channels or blocks first."""
    _, channels, rows, columns = model.shape(x)
    if kind == "SpaceToDepth":
        _require(rows % 2 == columns % 2 == 0)
        shape = (1, channels * 4, rows // 2, columns // 2)
        return model.operator(kind, [x], shape, ("depth", (2,)), blocksize=2)
    _require(channels % 4 == 0 and max(rows, columns) <= 32)
    mode = model.rng.choice(("DCR", "CRD"))
    shape = (1, channels // 4, rows * 2, columns * 2)
    return model.operator(kind, [x], shape, ("space", (2, mode == "CRD")), blocksize=2, mode=mode)


def cut(model: Model, x: int, kind: str) -> int:
    """Add Slice of channels."""
    _, channels, *sizes = model.shape(x)
    _require(channels > 2)
    step = model.rng.randint(1, 2)
    first = model.rng.randint(0, 1)
    ends = [model.whole(one) for one in (first, channels, 1, step)]
    made = len(range(first, channels, step))
    return model.operator(kind, [x, *ends], (1, made, *sizes), ("slice", (first, step)))


def average(model: Model, x: int, kind: str) -> int:
    """Add GlobalAveragePool, and scale the channels with it."""
    shape = model.shape(x)
    mean = model.operator(kind, [x], (1, shape[1], 1, 1), ("average", ()))
    return model.operator("Mul", [x, mean], shape, ("each", (0, 0, 1, 0), "mul"))


def turn(model: Model, x: int, kind: str) -> int:
    """Add Reshape, to as many rows as there were columns."""
    _, channels, rows, columns = model.shape(x)
    shape = (1, channels, columns, rows)
    return model.operator(kind, [x, model.whole(*shape)], shape, ("keep", ()))


OPERATORS: dict[str, Draw] = {
    **dict.fromkeys(_UNARY, element),
    **dict.fromkeys(_BINARY, combine),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pool),
    **dict.fromkeys(("BatchNormalization", "LRN", "LogSoftmax", "Softmax"), normalize),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), fold),
    "Clip": clip,
    "Concat": join,
    "Conv": convolve,
    "ConvTranspose": transpose,
    "DequantizeLinear": quantize,
    "GlobalAveragePool": average,
    "LeakyRelu": leak,
    "Pad": pad,
    "Reshape": turn,
    "Resize": resize,
    "Slice": cut,
}
_OFTEN = (
    *("Conv", "Conv", "Conv", "MaxPool", "AveragePool", "Resize", "Pad", "Concat", "Add", "Relu"),
    *("ConvTranspose", "DepthToSpace"),
)


def draw_network(rng: random.Random) -> Network:
    """Return a network of two to ten operators, of which some begin at an earlier result."""
    while True:
        model = Model(rng)
        shape = (1, rng.choice((1, 2, 3, 4, 8)), rng.randint(4, 26), rng.randint(4, 18))
        x = model.image(shape)
        wanted = rng.randint(2, 10)
        for _ in range(4 * wanted):
            if len(model.ops) >= wanted:
                break
            kind = rng.choice(_OFTEN if rng.random() < 0.6 else [*OPERATORS])
            if kind == "HardSwish" and model.opset < 14:
                continue
            try:
                x = OPERATORS[kind](model, x, kind)
            except UnfitError:
                continue
            if rng.random() < 0.2:
                x = rng.choice(model.pictures)
        if len(model.ops) > 1:
            return model.network()
