"""Models of one operator, of every type, for TensorFlow Lite Micro to prepare and run once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from memplan.runtimes.tflm.names import ELEMENT_TYPES, OPERATORS
from memplan.runtimes.tflm.read.refusals import KERNELS

NAMES: Final = tuple(name for name, _ in ELEMENT_TYPES)
WIDTH: Final = dict(ELEMENT_TYPES)
TYPES: Final = (
    *("float32", "int8", "int16", "int32", "int64", "uint8", "bool", "float16", "uint16", "uint32"),
    *("int4", "float64", "complex64", "uint64"),
)
WEIGHTED: Final = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
_SCALE: Final = 2.0**-7


class Given(NamedTuple):
    """A tensor of such a model; `value` is there for constants."""

    dtype: str
    shape: tuple[int, ...] = (1, 4, 4, 2)
    value: bytes | None = None
    scale: float = _SCALE
    zero: int = 0
    variable: bool = False


class Case(NamedTuple):
    """An operator with its tensors and options."""

    operator: str
    inputs: Sequence[Given | None]
    outputs: Sequence[Given]
    options: str = ""
    fields: dict[str, Any] = {}  # noqa: RUF012 - no case changes it


def zeros(dtype: str, *shape: int) -> Given:
    """Return a constant of zeros."""
    width = 0.5 if dtype == "int4" else WIDTH[dtype] or 1
    return Given(dtype, shape, bytes(int(prod(shape) * width + 0.5)))


def whole(*values: int, shape: tuple[int, ...] | None = None) -> Given:
    """Return a constant of whole numbers: a shape, axes or amounts."""
    return Given("int32", (len(values),) if shape is None else shape, np.int32(values).tobytes())


_UNARY: Final = """
    ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOG LOGICAL_NOT NEG RELU RELU6 ROUND SIN SQRT SQUARE
    ZEROS_LIKE
"""
_BINARY: Final = """
    ADD_N FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM MUL SQUARED_DIFFERENCE
"""
_COMPARE: Final = "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL"
_WINDOW: Final = {"strideW": 1, "strideH": 1, "filterWidth": 1, "filterHeight": 1}
_CONV: Final = {"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}


def cases_of(dtype: str) -> Iterator[Case]:
    """Yield models of all operators whose input, results and constants have one type."""
    t, flat, one = Given(dtype), Given(dtype, (4, 4)), whole(0, shape=())
    half, low = Given(dtype, (2, 4)), -128 if dtype == "int8" else 0
    share = Given(dtype, scale=1 / 256 if dtype == "int8" else 1 / 32768, zero=low)
    pads, crops = whole(0, 0, 1, 1, 1, 1, 0, 0, shape=(4, 2)), whole(0, 0, 0, 0, shape=(2, 2))
    wide = Given(dtype, (1, 6, 6, 2))
    yield from (Case(name, [t], [t]) for name in _UNARY.split())
    yield from (Case(name, [t, t], [t]) for name in _BINARY.split())
    yield from (Case(name, [t, t], [Given("bool")]) for name in _COMPARE.split())
    yield Case("SOFTMAX", [t], [share], "SoftmaxOptionsT", {"beta": 1.0})
    yield Case("LOGISTIC", [t], [share])
    yield Case("LOG_SOFTMAX", [t], [share._replace(scale=1 / 16, zero=127 if low else 0)])
    yield Case("TANH", [t], [share._replace(scale=1 / 128 if low else 1 / 32768, zero=0)])
    yield Case("L2_NORMALIZATION", [t], [t], "L2NormOptionsT")
    yield Case("LEAKY_RELU", [t], [t], "LeakyReluOptionsT", {"alpha": 0.5})
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        yield Case(name, [t], [t], "Pool2DOptionsT", _WINDOW)
    joined = Given(dtype, (1, 4, 4, 4))
    yield Case("CONCATENATION", [t, t], [joined], "ConcatenationOptionsT", {"axis": 3})
    stacked = Given(dtype, (2, 1, 4, 4, 2))
    yield Case("PACK", [t, t], [stacked], "PackOptionsT", {"axis": 0, "valuesCount": 2})
    layer = Given(dtype, (1, 4, 4))
    yield Case("UNPACK", [t], [layer, layer], "UnpackOptionsT", {"axis": 3, "num": 2})
    deep, plain = Given(dtype, (1, 2, 2, 4)), Given(dtype, (1, 4, 4, 1))
    yield Case("DEPTH_TO_SPACE", [deep], [plain], "DepthToSpaceOptionsT", {"blockSize": 2})
    yield Case("SPACE_TO_DEPTH", [plain], [deep], "SpaceToDepthOptionsT", {"blockSize": 2})
    tiles = Given(dtype, (4, 2, 2, 1))
    yield Case("BATCH_TO_SPACE_ND", [tiles, whole(2, 2), crops], [plain])
    yield Case("SPACE_TO_BATCH_ND", [plain, whole(2, 2), crops], [tiles])
    yield Case("DEQUANTIZE", [t], [Given("float32")])
    yield Case("EMBEDDING_LOOKUP", [whole(0, 1), zeros(dtype, 4, 4)], [half])
    yield Case("RESHAPE", [t, whole(1, 32)], [Given(dtype, (1, 32))])
    yield Case("SQUEEZE", [t], [Given(dtype, (4, 4, 2))], "SqueezeOptionsT", {"squeezeDims": [0]})
    yield Case("EXPAND_DIMS", [t, whole(0)], [Given(dtype, (1, 1, 4, 4, 2))])
    large = Given(dtype, (1, 8, 8, 2))
    yield Case("RESIZE_BILINEAR", [t, whole(8, 8)], [large], "ResizeBilinearOptionsT")
    nearest = "ResizeNearestNeighborOptionsT"
    yield Case("RESIZE_NEAREST_NEIGHBOR", [t, whole(8, 8)], [large], nearest)
    yield Case("PAD", [t, pads], [wide])
    yield Case("PADV2", [t, pads, zeros(dtype, 1)], [wide])
    yield Case("MIRROR_PAD", [t, pads], [wide], "MirrorPadOptionsT", {"mode": 0})
    yield Case("GATHER", [flat, whole(0, 1)], [half], "GatherOptionsT", {"axis": 0})
    yield Case("GATHER_ND", [flat, whole(0, 1, shape=(2, 1))], [half])
    yield Case("TRANSPOSE", [half, whole(1, 0)], [Given(dtype, (4, 2))])
    for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL"):
        kept = Given(dtype, (1, 1, 1, 2))
        yield Case(name, [t, whole(1, 2)], [kept], "ReducerOptionsT", {"keepDims": True})
    for name, options in (("ARG_MAX", "ArgMaxOptionsT"), ("ARG_MIN", "ArgMinOptionsT")):
        yield Case(name, [flat, whole(1, shape=())], [Given("int32", (4,))], options, _INT32)
    slices, corner = [flat, whole(0, 0), whole(2, 2)], Given(dtype, (2, 2))
    yield Case("SLICE", slices, [corner])
    yield Case("STRIDED_SLICE", [*slices, whole(1, 1)], [corner], "StridedSliceOptionsT")
    yield Case("SPLIT", [one, flat], [half, half], "SplitOptionsT", {"numSplits": 2})
    split = [flat, whole(2, 2), one]
    yield Case("SPLIT_V", split, [half, half], "SplitVOptionsT", {"numSplits": 2})
    yield Case("PRELU", [t, zeros(dtype, 1, 1, 2)], [t])
    yield Case("SHAPE", [t], [Given("int32", (4,))], "ShapeOptionsT", {"outType": 2})
    yield Case("FILL", [whole(2, 2), zeros(dtype)], [corner])
    yield Case("REVERSE_V2", [flat, whole(0)], [flat])
    yield Case("SELECT_V2", [Given("bool"), t, t], [t])
    yield Case("CUMSUM", [flat, one], [flat], "CumsumOptionsT")
    yield Case("BROADCAST_TO", [Given(dtype, (1, 4)), whole(4, 4)], [flat])
    yield Case("DYNAMIC_UPDATE_SLICE", [flat, corner, whole(0, 0)], [flat])
    lacking = set(OPERATORS) - _KNOWN - {"CUSTOM", "DELEGATE"}
    yield from (Case(name, [t], [t]) for name in sorted(lacking))


def pairs_of(dtype: str, other: str) -> Iterator[Case]:
    """Yield models of the operators that take two types together."""
    t, flat = Given(dtype), Given(dtype, (1, 8))
    yield Case("CONV_2D", [t, zeros(other, 2, 1, 1, 2)], [t], "Conv2DOptionsT", _CONV)
    depth = _CONV | {"depthMultiplier": 1}
    given = [t, zeros(other, 1, 1, 1, 2)]
    yield Case("DEPTHWISE_CONV_2D", given, [t], "DepthwiseConv2DOptionsT", depth)
    made = Given(dtype, (1, 4))
    yield Case("FULLY_CONNECTED", [flat, zeros(other, 4, 8)], [made], "FullyConnectedOptionsT")
    transposed = [whole(1, 4, 4, 2), zeros(other, 2, 1, 1, 2), t]
    strides = {"strideW": 1, "strideH": 1}
    yield Case("TRANSPOSE_CONV", transposed, [t], "TransposeConvOptionsT", strides)
    left, right = Given(dtype, (1, 4, 3)), Given(other, (1, 3, 2))
    yield Case("BATCH_MATMUL", [left, right], [Given(dtype, (1, 4, 2))], "BatchMatMulOptionsT")
    types = {"inDataType": NAMES.index(dtype), "outDataType": NAMES.index(other)}
    yield Case("CAST", [t], [Given(other)], "CastOptionsT", types)
    yield Case("QUANTIZE", [t], [Given(other)])


_INT32: Final = {"outputType": 2}
# These have kernels, and inputs of their own where they are tried.
_KNOWN: Final = frozenset(KERNELS) | {"CALL", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE"}


def build(case: Case) -> bytes:
    """Return the file of a model with one operator."""
    flatbuffers = pytest.importorskip("flatbuffers")
    schema = pytest.importorskip("tflite_micro.tensorflow.lite.micro.python.schema_py_generated")
    model, graph, operator = schema.ModelT(), schema.SubGraphT(), schema.OperatorT()
    model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []
    graph.inputs, graph.outputs, operator.inputs, operator.outputs = [], [], [], []
    for places, given in ((operator.inputs, case.inputs), (operator.outputs, case.outputs)):
        for each in given:
            places.append(-1 if each is None else len(graph.tensors))
            if each is None:
                continue
            tensor, scales = schema.TensorT(), schema.QuantizationParametersT()
            tensor.name, tensor.type = f"t{len(graph.tensors)}", NAMES.index(each.dtype)
            tensor.shape, tensor.isVariable = list(each.shape), each.variable
            scales.scale, scales.zeroPoint = [each.scale], [each.zero]
            tensor.quantization, tensor.buffer = scales, 0
            if each.value is not None:
                buffer = schema.BufferT()
                buffer.data = np.frombuffer(each.value, np.uint8)
                tensor.buffer = len(model.buffers)
                model.buffers.append(buffer)
            elif given is case.inputs and not each.variable:
                graph.inputs.append(len(graph.tensors))
            graph.tensors.append(tensor)
    graph.outputs = list(operator.outputs)
    if case.options:
        operator.builtinOptions = getattr(schema, case.options)()
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, case.options[:-1])
        for name, value in case.fields.items():
            setattr(operator.builtinOptions, name, value)
    code, operator.opcodeIndex = schema.OperatorCodeT(), 0
    code.builtinCode = OPERATORS.index(case.operator)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    graph.operators, model.subgraphs, model.operatorCodes = [operator], [graph], [code]
    builder = flatbuffers.Builder(1 << 10)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


_TRY: Final = """
import json, os, sys
from tflite_micro import runtime

found = []
for data in map(bytes.fromhex, json.load(sys.stdin)):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        code = 1
        try:
            runtime.Interpreter.from_bytes(data, arena_size=1 << 20).invoke()
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, errors="replace") as pipe:
        words = pipe.read()
    found.append([os.waitpid(child, 0)[1] == 0, words.strip()])
print(json.dumps(found))
"""


def try_all(files: Sequence[bytes]) -> list[tuple[bool, str]]:
    """Return for each of many files whether TFLM prepares and runs it, and what it says."""
    run = subprocess.run(
        [sys.executable, "-c", _TRY],
        input=json.dumps([data.hex() for data in files]).encode(),
        capture_output=True,
        check=True,
    )
    return [(ok, words) for ok, words in json.loads(run.stdout)]
