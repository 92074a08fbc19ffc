"""Random TFLite files: every operator that has a map of rows and columns, with any options."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from memplan.runtimes.tflm.read.model import IDENTIFIER

flatbuffers = pytest.importorskip("flatbuffers")
schema: Any = pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated")

ACTIVATIONS = (0, 0, 1, 2, 3)  # of the schema: none, RELU, RELU_N1_TO_1, RELU6
CODES = {name: code for name, code in vars(schema.BuiltinOperator).items() if name.isupper()}
TYPES = {
    name.lower(): code for name, code in vars(schema.TensorType).items() if not name.startswith("_")
}


class UnfitError(Exception):
    """An operator cannot be added to what a file has so far."""


class Value(NamedTuple):
    """A tensor of a file."""

    number: int
    shape: tuple[int, ...]
    dtype: str
    scale: float = 0.0
    zero: int = 0


class Call(NamedTuple):
    """An operator of a file."""

    kind: str
    inputs: tuple[Value | None, ...]
    result: Value
    options: dict[str, Any]


class File:
    """A TFLite file that grows by random operators."""

    def __init__(self, rng: random.Random, version: int = 3) -> None:
        self.rng = rng
        self._version = version  # of all operators
        self.draw = np.random.default_rng(rng.randrange(1 << 32))
        self.inputs: list[int] = []
        self.made: list[Value] = []
        self.values: dict[int, Any] = {}  # by constant
        self.calls: list[Call] = []
        self._tensors: list[Any] = []
        self._operators: list[Any] = []
        self._buffers: list[Any] = [schema.BufferT()]
        self._codes: dict[str, Any] = {}

    def image(self, shape: Sequence[int], dtype: str, like: Value | None = None) -> Value:
        """Return a new input of the model."""
        value = self.value(shape, dtype, like)
        self.inputs.append(value.number)
        return value

    def value(
        self,
        shape: Sequence[int],
        dtype: str,
        like: Value | None = None,
        scale: float | None = None,
        zero: int | None = None,
    ) -> Value:
        """Return a new tensor, which is quantized as another one if that is given."""
        if dtype != "int8":
            return Value(self._tensor(shape, dtype), tuple(shape), dtype)
        if like is not None and like.dtype == "int8":
            scale, zero = like.scale, like.zero
        scale = self.rng.uniform(0.01, 0.1) if scale is None else scale
        zero = self.rng.choice((-101, -17, -3, 4, 9, 60)) if zero is None else zero
        number = self._tensor(shape, dtype, scales=[scale], zero=zero)
        return Value(number, tuple(shape), dtype, scale, zero)

    def constant(
        self, values: Any, scales: Sequence[float] = (), axis: int = 0, zero: int = 0
    ) -> Value:
        """Return a new tensor with values in the file."""
        values = np.asarray(values)
        buffer = schema.BufferT()
        buffer.data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._buffers.append(buffer)
        number = self._tensor(
            values.shape, values.dtype.name, len(self._buffers) - 1, scales, axis, zero
        )
        self.values[number] = values
        scale = scales[0] if len(scales) else 0.0
        return Value(number, values.shape, values.dtype.name, scale, zero)

    def numbers(self, shape: Sequence[int], dtype: str, like: Value | None = None) -> Value:
        """Return a new constant of random values."""
        if dtype != "int8":
            values: Any = self.draw.standard_normal(shape) * (8 if dtype == "int32" else 1)
            values = values > 0 if dtype == "bool" else values
            values = values + (values == 0) if dtype == "int32" else values
            return self.constant(values.astype(dtype))
        values = self.draw.integers(-128, 128, shape).astype(np.int8)
        scale, zero = (0.03, 5) if like is None else (like.scale, like.zero)
        return self.constant(values, [scale], zero=zero)

    def _tensor(
        self,
        shape: Sequence[int],
        dtype: str,
        buffer: int = 0,
        scales: Sequence[float] = (),
        axis: int = 0,
        zero: int = 0,
    ) -> int:
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.buffer = list(shape), TYPES[dtype], buffer
        tensor.name = f"t{len(self._tensors)}"
        if len(scales):
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.asarray(scales, np.float32)
            tensor.quantization.zeroPoint = np.full(len(scales), zero, np.int64)
            tensor.quantization.quantizedDimension = axis
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def operator(
        self, kind: str, inputs: Sequence[Value | None], result: Value, table: str = "", **more: Any
    ) -> Value:
        """Add an operator; `more` are fields of its options."""
        code, made = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode, code.version = CODES[kind], self._version
        code.deprecatedBuiltinCode = min(CODES[kind], 127)
        self._codes.setdefault(kind, code)
        made.opcodeIndex = list(self._codes).index(kind)
        made.inputs = [-1 if value is None else value.number for value in inputs]
        made.outputs = [result.number]
        if table:
            made.builtinOptionsType = getattr(schema.BuiltinOptions, table)
            made.builtinOptions = getattr(schema, f"{table}T")()
            for name, value in more.items():
                assert hasattr(made.builtinOptions, name)
                setattr(made.builtinOptions, name, value)
        self._operators.append(made)
        self.calls.append(Call(kind, tuple(inputs), result, more))
        self.made.append(result)
        return result

    def undo(self, tensors: int, inputs: int) -> None:
        """Drop the tensors from this number on, and the inputs, that no operator reads."""
        assert all(call.result.number < tensors for call in self.calls)
        del self._tensors[tensors:]
        del self.inputs[inputs:]
        self.values = {number: one for number, one in self.values.items() if number < tensors}

    @property
    def count(self) -> int:
        """How many tensors there are."""
        return len(self._tensors)

    def pack(self, outputs: Sequence[Value]) -> bytes:
        """Return the bytes of the file."""
        graph, model = schema.SubGraphT(), schema.ModelT()
        graph.tensors, graph.operators, graph.name = self._tensors, self._operators, "main"
        graph.inputs, graph.outputs = self.inputs, [value.number for value in outputs]
        model.version, model.subgraphs, model.buffers = 3, [graph], self._buffers
        model.operatorCodes = list(self._codes.values())
        builder = flatbuffers.Builder(1 << 14)
        builder.Finish(model.Pack(builder), IDENTIFIER)
        return bytes(builder.Output())


Draw = Callable[[File, Value, str], Value]


def _require(fits: object) -> None:
    if not fits:
        raise UnfitError


def _slide(size: int, kernel: int, stride: int, dilation: int, *, same: bool) -> int:
    reach = (kernel - 1) * dilation + 1
    _require(same or reach <= size)
    return -(-size // stride) if same else (size - reach) // stride + 1


def _scales(file: File, count: int, taps: int) -> list[float]:
    return [file.rng.uniform(0.3, 2) / (60 * taps**0.5) for _ in range(count)]


def _weigh(file: File, x: Value, shape: Sequence[int], axis: int) -> tuple[Value, Value | None]:
    """Return random weights, with a scale for each channel of the result, and a bias or none."""
    count, taps = shape[axis], int(np.prod(shape)) // shape[axis]
    if x.dtype == "int8":
        scales = _scales(file, count, taps)
        weights = file.constant(
            file.draw.integers(-127, 128, shape).astype(np.int8), scales, axis=axis
        )
        bias = file.constant(
            file.draw.integers(-200, 200, count).astype(np.int32), [x.scale * s for s in scales]
        )
    else:
        weights = file.numbers(shape, "float32")
        bias = file.numbers((count,), "float32")
    return weights, file.rng.choice((bias, bias, None))


def convolve(file: File, x: Value, kind: str) -> Value:
    """Add CONV_2D or DEPTHWISE_CONV_2D: groups, holes, strides, oblong kernels."""
    rng, (_, rows, columns, channels) = file.rng, x.shape
    kernel = rng.choice(((1, 1), (3, 3), (5, 5), (rng.randint(1, 7), rng.randint(1, 7))))
    stride = (rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 3)))
    holes = (1, 1) if rng.random() < 0.7 else (rng.choice((1, 2)), rng.choice((1, 2)))
    same = rng.random() < 0.7
    made = [
        _slide(size, kernel[at], stride[at], holes[at], same=same)
        for at, size in enumerate((rows, columns))
    ]
    if kind == "CONV_2D":
        groups = 2 if channels % 2 == 0 and rng.random() < 0.2 else 1
        count = groups * rng.randint(1, 4)
        weights, bias = _weigh(file, x, (count, *kernel, channels // groups), 0)
        more, table = {}, "Conv2DOptions"
    else:
        more, table = {"depthMultiplier": rng.choice((1, 1, 2, 3))}, "DepthwiseConv2DOptions"
        count = channels * more["depthMultiplier"]
        weights, bias = _weigh(file, x, (1, *kernel, count), 3)
        _require(bias)  # TFLM crashes without it
    return file.operator(
        kind,
        (x, weights, bias),
        file.value((1, *made, count), x.dtype),
        table,
        padding=0 if same else 1,
        strideH=stride[0],
        strideW=stride[1],
        dilationHFactor=holes[0],
        dilationWFactor=holes[1],
        fusedActivationFunction=rng.choice(ACTIVATIONS),
        **more,
    )


def pool(file: File, x: Value, kind: str) -> Value:
    """Add a pool."""
    rng, (_, *sizes, channels) = file.rng, x.shape
    kernel, stride = ((rng.randint(1, most), rng.randint(1, most)) for most in (5, 3))
    same = rng.random() < 0.6
    made = [_slide(sizes[at], kernel[at], stride[at], 1, same=same) for at in (0, 1)]
    return file.operator(
        kind,
        (x,),
        file.value((1, *made, channels), x.dtype, x),
        "Pool2DOptions",
        padding=0 if same else 1,
        strideH=stride[0],
        strideW=stride[1],
        filterHeight=kernel[0],
        filterWidth=kernel[1],
        fusedActivationFunction=rng.choice(ACTIVATIONS),
    )


def transpose(file: File, x: Value, kind: str) -> Value:
    """Add TRANSPOSE_CONV."""
    rng, (_, *sizes, channels) = file.rng, x.shape
    kernel, stride = ((rng.randint(1, most), rng.randint(1, most)) for most in (5, 3))
    same, count = rng.random() < 0.5, rng.randint(1, 3)
    extra = [0 if same else max(kernel[at] - stride[at], 0) for at in (0, 1)]
    made = [sizes[at] * stride[at] + extra[at] for at in (0, 1)]
    if rng.random() < 0.1 and same and stride[0] > 1:
        made[0] -= 1
    _require(max(made) <= 48)
    weights, bias = _weigh(file, x, (count, *kernel, channels), 0)
    shape = file.constant(np.array([1, *made, count], np.int32))
    return file.operator(
        kind,
        (shape, weights, x, *((bias,) if bias else ())),
        file.value((1, *made, count), x.dtype),
        "TransposeConvOptions",
        padding=0 if same else 1,
        strideH=stride[0],
        strideW=stride[1],
    )


def resize(file: File, x: Value, kind: str) -> Value:
    """Add a resize, up or down, by whole factors and others."""
    rng, (_, *sizes, channels) = file.rng, x.shape
    made = []
    for size in sizes:
        up, down = rng.choice(((1, 1), (2, 1), (2, 1), (4, 1), (1, 2), (1, 2), (1, 4), (3, 2)))
        _require(size * up % down == 0 and size * up // down <= 48)
        made.append(size * up // down)
    align = rng.random() < 0.1
    return file.operator(
        kind,
        (x, file.constant(np.array(made, np.int32))),
        file.value((1, *made, channels), x.dtype, x),
        {"B": "ResizeBilinearOptions", "N": "ResizeNearestNeighborOptions"}[kind[7]],
        alignCorners=align,
        halfPixelCenters=not align and rng.random() < 0.5,
    )


def pad(file: File, x: Value, kind: str) -> Value:
    """Add PAD or PADV2."""
    rng = file.rng
    amounts = np.zeros((4, 2), np.int32)
    for axis in (1, 2, 3):
        most = 1 if axis == 3 else rng.choice((0, 1, 5))
        amounts[axis] = (rng.randint(0, most), rng.randint(0, most))
    made = [size + int(extra.sum()) for size, extra in zip(x.shape, amounts, strict=True)]
    value = (file.numbers((1,), x.dtype, x),) if kind == "PADV2" else ()
    return file.operator(
        kind,
        (x, file.constant(amounts), *value),
        file.value(made, x.dtype, x),
        {"PAD": "PadOptions", "PADV2": "PadV2Options"}[kind],
    )


def join(file: File, x: Value, kind: str) -> Value:
    """Add CONCATENATION of rows, columns or channels, of inputs, constants and earlier results."""
    rng, axis = file.rng, file.rng.randint(1, 3)
    shape, parts = list(x.shape), [x]
    for _ in range(rng.randint(1, 3)):
        part = list(shape)
        part[axis] = rng.randint(1, 6)
        what = rng.random()
        if what < 0.4:
            fit = (v for v in (x, *file.made) if v._replace(number=0) == x._replace(number=0))
            parts.append(rng.choice([*fit]))
        elif what < 0.8:
            parts.append(file.image(part, x.dtype, x))
        else:
            parts.append(file.numbers(part, x.dtype, x))
    rng.shuffle(parts)
    shape[axis] = sum(part.shape[axis] for part in parts)
    _require(max(shape) <= 48)
    result = file.value(shape, x.dtype, x)
    sign = rng.choice((axis, axis - 4))
    return file.operator(kind, parts, result, "ConcatenationOptions", axis=sign)


FUSED = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
SAME_SCALE = ("MAXIMUM", "MINIMUM")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def combine(file: File, x: Value, kind: str) -> Value:
    """Add an operator on elements of two tensors, of which one may be broadcast."""
    rng, (_, rows, columns, channels) = file.rng, x.shape
    like = x if kind in SAME_SCALE else None
    shapes: list[tuple[int, ...]] = [
        *((), (1,), (channels,), (1, 1, 1, channels), (1, 1, columns, channels), x.shape, x.shape),
        *((1, rows, 1, channels), (1, rows, columns, 1), (1, 1, 1, 1), (columns, channels)),
    ]
    shape = rng.choice(shapes)
    fits = [v for v in file.made[:-1] if (v.shape, v.dtype) == (x.shape, x.dtype)]
    if fits and like is None and rng.random() < 0.5:
        other = rng.choice(fits)
    elif len(shape) < 4 or rng.random() < 0.5:
        other = file.numbers(shape, x.dtype, like)
    else:
        other = file.image(shape, x.dtype, like)
    both = (x, other) if rng.random() < 0.7 else (other, x)
    compares = kind in COMPARISONS
    result = file.value(x.shape, "bool" if compares else x.dtype, like)
    table = FUSED.get(kind, "")
    more = {"fusedActivationFunction": rng.choice(ACTIVATIONS)} if table else {}
    return file.operator(kind, both, result, table, **more)


def add_all(file: File, x: Value, kind: str) -> Value:
    """Add ADD_N."""
    others = [file.image(x.shape, x.dtype, x) for _ in range(file.rng.randint(1, 2))]
    return file.operator(kind, (x, *others), file.value(x.shape, x.dtype, x), "AddNOptions")


def select(file: File, x: Value, kind: str) -> Value:
    """Add SELECT_V2."""
    condition, other = file.image(x.shape, "bool"), file.image(x.shape, x.dtype, x)
    result = file.value(x.shape, x.dtype, x)
    return file.operator(kind, (condition, x, other), result, "SelectV2Options")


SCALES = {  # of int8 results
    "LOGISTIC": (1 / 256, -128),
    "SOFTMAX": (1 / 256, -128),
    "TANH": (1 / 128, 0),
    "L2_NORMALIZATION": (1 / 128, 0),
    "LOG_SOFTMAX": (16 / 256, 127),
}
TABLES = {
    "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}),
    "LOG_SOFTMAX": ("LogSoftmaxOptions", {}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.2}),
    "L2_NORMALIZATION": ("L2NormOptions", {}),
    "HARD_SWISH": ("HardSwishOptions", {}),
    "QUANTIZE": ("QuantizeOptions", {}),
    "DEQUANTIZE": ("DequantizeOptions", {}),
    "ABS": ("AbsOptions", {}),
    "ZEROS_LIKE": ("ZerosLikeOptions", {}),
}


def change(file: File, x: Value, kind: str) -> Value:
    """Add an operator on the elements, or the channels, of one tensor."""
    scale, zero = SCALES.get(kind, (None, None))
    result = file.value(x.shape, x.dtype, scale=scale, zero=zero)
    table, more = TABLES.get(kind, ("", {}))
    return file.operator(kind, (x,), result, table, **more)


def cast(file: File, x: Value, kind: str) -> Value:
    """Add CAST, QUANTIZE or DEQUANTIZE: elements of another type."""
    types = {
        "QUANTIZE": ("int8",),
        "DEQUANTIZE": ("float32",),
        "CAST": tuple({"float32", "int8", "int32"} - {x.dtype}),
    }
    result = file.value(x.shape, file.rng.choice(sorted(types[kind])))
    if kind == "CAST":
        more = {"inDataType": TYPES[x.dtype], "outDataType": TYPES[result.dtype]}
        return file.operator(kind, (x,), result, "CastOptions", **more)
    return file.operator(kind, (x,), result, TABLES[kind][0])


def slope(file: File, x: Value, kind: str) -> Value:
    """Add PRELU, with slopes for channels, or for points."""
    shape = file.rng.choice(((1, 1, x.shape[3]), x.shape[1:], (1, 1, 1, x.shape[3])))
    slopes = file.numbers(shape, x.dtype)
    return file.operator(kind, (x, slopes), file.value(x.shape, x.dtype))


def fold(file: File, x: Value, kind: str) -> Value:
    """Add SPACE_TO_DEPTH."""
    block = file.rng.choice((2, 2, 3))
    _, rows, columns, channels = x.shape
    _require(rows % block == columns % block == 0)
    shape = (1, rows // block, columns // block, channels * block**2)
    result = file.value(shape, x.dtype, x)
    return file.operator(kind, (x,), result, "SpaceToDepthOptions", blockSize=block)


def unfold(file: File, x: Value, kind: str) -> Value:
    """Add DEPTH_TO_SPACE."""
    _, rows, columns, channels = x.shape
    _require(channels % 4 == 0 and max(rows, columns) <= 24)
    result = file.value((1, 2 * rows, 2 * columns, channels // 4), x.dtype, x)
    return file.operator(kind, (x,), result, "DepthToSpaceOptions", blockSize=2)


def connect(file: File, x: Value, kind: str) -> Value:
    """Add FULLY_CONNECTED on the channels of each point."""
    count = file.rng.randint(1, 5)
    if x.dtype == "int8":
        scale = _scales(file, 1, x.shape[3])
        values = file.draw.integers(-127, 128, (count, x.shape[3])).astype(np.int8)
        weights, bias = file.constant(values, scale), None
    else:
        weights, bias = _weigh(file, x, (count, x.shape[3]), 0)
    result = file.value((*x.shape[:3], count), x.dtype)
    more = {"keepNumDims": True, "fusedActivationFunction": file.rng.choice(ACTIVATIONS)}
    return file.operator(kind, (x, weights, bias), result, "FullyConnectedOptions", **more)


BOTH = ("float32", "int8")
FLOAT = ("float32",)
OPERATORS: dict[str, tuple[Draw, tuple[str, ...]]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), (convolve, BOTH)),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), (pool, BOTH)),
    "L2_POOL_2D": (pool, FLOAT),
    "TRANSPOSE_CONV": (transpose, BOTH),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), (resize, BOTH)),
    **dict.fromkeys(("PAD", "PADV2"), (pad, BOTH)),
    "CONCATENATION": (join, BOTH),
    **dict.fromkeys(("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", *SAME_SCALE), (combine, BOTH)),
    **dict.fromkeys(("DIV", "FLOOR_DIV", "FLOOR_MOD"), (combine, FLOAT)),
    **dict.fromkeys(COMPARISONS, (combine, BOTH)),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR"), (combine, ("bool",))),
    "LOGICAL_NOT": (change, ("bool",)),
    "ADD_N": (add_all, BOTH),
    "SELECT_V2": (select, BOTH),
    **dict.fromkeys(
        ("ABS", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "RELU", "RELU6", "RSQRT", "TANH", "ELU"),
        (change, BOTH),
    ),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), (change, BOTH)),
    **dict.fromkeys(
        (
            "CEIL",
            "COS",
            "EXP",
            "FLOOR",
            "LOG",
            "NEG",
            "ROUND",
            "SIN",
            "SQRT",
            "SQUARE",
            "ZEROS_LIKE",
        ),
        (change, FLOAT),
    ),
    "CAST": (cast, (*BOTH, "int32")),
    "QUANTIZE": (cast, BOTH),
    "DEQUANTIZE": (cast, ("int8",)),
    "PRELU": (slope, BOTH),
    "SPACE_TO_DEPTH": (fold, BOTH),
    "DEPTH_TO_SPACE": (unfold, BOTH),
    "FULLY_CONNECTED": (connect, BOTH),
}
# TFLM has no kernel for these, so nothing can be compared.
NOT_IN_TFLM = ("GELU", "POW", "RELU_0_TO_1", "RELU_N1_TO_1")
OFTEN = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "TRANSPOSE_CONV", "PAD"),
    *("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "CONCATENATION", "ADD", "MUL", "RELU6"),
    *("LEAKY_RELU", "CONV_2D", "DEPTHWISE_CONV_2D"),
)


def draw_file(rng: random.Random, kind: str, more: int) -> tuple[bytes, list[str]]:
    """Return a file of an operator, behind or before some more, and the types of all operators."""
    _, types = OPERATORS[kind]
    more = 0 if "bool" in types else more  # what is drawn often has no booleans
    while True:
        file = File(rng)
        before = rng.randint(0, more) if "bool" not in types and types != ("int32",) else 0
        dtype = rng.choice(types)
        channels = rng.choice((1, 2, 3, 4, 5, 8))
        x = file.image((1, rng.randint(5, 24), rng.randint(5, 24), channels), dtype)
        kinds = []
        try:
            for at in range(more + 1):
                name = kind
                if at != before:
                    fit = [k for k in OFTEN if x.dtype in OPERATORS[k][1]]
                    _require(fit)
                    name = rng.choice(fit)
                elif x.dtype not in types:
                    raise UnfitError
                earlier = [v for v in file.made[:-1] if (v.shape, v.dtype) == (x.shape, x.dtype)]
                x = OPERATORS[name][0](file, x, name)
                kinds.append(name)
                if earlier and rng.random() < 0.5:
                    both, result = (x, rng.choice(earlier)), file.value(x.shape, x.dtype)
                    if both[0][1:3] == both[1][1:3] and x.dtype in BOTH:  # shapes and types
                        x = file.operator("ADD", both, result, "AddOptions")
                        kinds.append("ADD")
        except UnfitError:
            continue
        outputs = [x]
        others = [value for value in file.made if value != x]
        if others and rng.random() < 0.1:
            outputs.append(rng.choice(others))  # a second one, that leaves from the middle
        return file.pack(outputs), kinds
