"""What TensorFlow Lite Micro has no kernel for: operators, and the types of their tensors.

This is what its reference kernels take when they prepare and run a model, tried operator by
operator and type by type (tests/runtimes/tflm/test_refusals.py tries them again). It stands in
where the package `tflite-micro` is not installed; where it is, the runtime itself is asked.
"""

from __future__ import annotations

from typing import Final

from memplan.base.errors import listed
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, TensorInfo
from memplan.runtimes.tflm.read.names import ELEMENT_TYPES, format_place, is_custom

__all__ = ["CUSTOM", "KERNELS", "find_typed", "list_refusals"]

_BY_TYPES: Final = {
    "": "ASSIGN_VARIABLE BROADCAST_TO CALL_ONCE IF LOGICAL_AND LOGICAL_OR READ_VARIABLE RESHAPE "
    "SHAPE SQUEEZE VAR_HANDLE WHILE",
    "bool": "LOGICAL_NOT REDUCE_ALL",
    "float32": "CEIL COS EXP FLOOR FLOOR_DIV FLOOR_MOD L2_POOL_2D LOG NEG ROUND SIN SQRT SQUARE",
    "float32 int8": "ADD_N ARG_MAX ARG_MIN BATCH_TO_SPACE_ND CUMSUM DEPTH_TO_SPACE ELU "
    "EMBEDDING_LOOKUP GATHER GATHER_ND HARD_SWISH L2_NORMALIZATION LOG_SOFTMAX MIRROR_PAD PRELU "
    "REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR SPACE_TO_BATCH_ND SPACE_TO_DEPTH",
    "float32 int8 int16": "ABS AVERAGE_POOL_2D EXPAND_DIMS LEAKY_RELU LOGISTIC MAX_POOL_2D MEAN "
    "RELU RELU6 RESIZE_NEAREST_NEIGHBOR RSQRT SELECT_V2 SOFTMAX SUM TANH TRANSPOSE",
    "float32 int8 int16 int32": "ADD DYNAMIC_UPDATE_SLICE MUL PAD PADV2 SPLIT SPLIT_V "
    "SQUARED_DIFFERENCE SUB UNPACK",
    "float32 int8 int16 int32 bool": "SLICE STRIDED_SLICE",
    "float32 int8 int16 int32 int64": "GREATER MAXIMUM MINIMUM PACK",
    "float32 int8 int16 int32 int64 bool": "CONCATENATION",
    "float32 int8 int16 int32 int64 uint8 bool": "REVERSE_V2",
    "float32 int8 int32": "DIV FILL",
    "float32 int8 int32 int64": "GREATER_EQUAL LESS LESS_EQUAL ZEROS_LIKE",
    "float32 int8 int32 int64 bool": "EQUAL NOT_EQUAL",
    "int32 int64": "BROADCAST_ARGS",
    "int8 int16 uint8": "DEQUANTIZE",
}
_CAST: Final = ("float32", "int8", "int16", "int32", "bool", "uint32")
# By operator: the types of several tensors that are taken together.
_TOGETHER: Final[dict[str, frozenset[tuple[str, ...]]]] = {
    **dict.fromkeys(
        ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
        frozenset({("float32", "float32"), ("int8", "int8"), ("int8", "int4"), ("int16", "int8")}),
    ),
    "TRANSPOSE_CONV": frozenset(
        {("float32", "float32"), ("int8", "int8"), ("int16", "int8"), ("int16", "int16")}
    ),
    "SVDF": frozenset({("float32",) * 3, *(("int8", "int8", time) for time in ("int8", "int16"))}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": frozenset(
        {
            *(("float32", weights) for weights, _ in ELEMENT_TYPES),
            *((given, "int8") for given in ("int8", "int16")),
        }
    ),
    "BATCH_MATMUL": frozenset({("float32", "float32"), ("int8", "int8"), ("int16", "int16")}),
    "CAST": frozenset((one, other) for one in _CAST for other in _CAST),
    "QUANTIZE": frozenset(
        {
            *(("float32", made) for made in ("int8", "int16")),
            *(("int8", made) for made in ("int8", "int16", "int32", "uint8")),
            *(("int16", made) for made in ("int8", "int16", "int32")),
            *(("int32", made) for made in ("int8", "int16")),
            ("uint8", "int8"),
        }
    ),
}
KERNELS: Final[dict[str, frozenset[str] | frozenset[tuple[str, ...]]]] = {
    **{
        name: frozenset(types.split())
        for types, names in _BY_TYPES.items()
        for name in names.split()
    },
    **_TOGETHER,
}
"""By operator: the types that its kernel takes, or several together; empty where it takes any."""

_CUSTOM: Final = """
    CIRCULAR_BUFFER SignalDelay SignalEnergy SignalFftAutoScale SignalFilterBank SignalFilterBankLog
    SignalFilterBankSpectralSubtraction SignalFilterBankSquareRoot SignalFramer SignalIrfft
    SignalOverlapAdd SignalPCAN SignalRfft SignalStacker SignalWindow TFLM_DECODE
    TFLite_Detection_PostProcess
"""
CUSTOM: Final = frozenset(_CUSTOM.split())
"""The custom operators that TFLM has kernels for."""

# Which inputs have these types, if not the first (and the second of a pair); -1 is a result.
_TYPED: Final = {
    "CAST": (0, -1),
    "EMBEDDING_LOOKUP": (1,),
    "FILL": (1,),
    "QUANTIZE": (0, -1),
    "SELECT_V2": (1,),
    "SPLIT": (1,),
    "SVDF": (0, 1, 2),
    "TRANSPOSE_CONV": (2, 1),
}


def list_refusals(model: Model) -> tuple[list[str], list[str]]:
    """Return what TFLM has no kernel for, a part of a sentence each, and the results concerned.

    Operators that only unpack weights are left out, because they are not in a file for TFLM.
    """
    folded = find_folded(model)
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for number, subgraph in enumerate(model.subgraphs):
        for index, operator in enumerate(subgraph.operators):
            what = None if index in folded[number] else _refuse(operator, subgraph.tensors)
            if what is not None:
                found.setdefault(what, []).append(format_place(number, index))
                names += [subgraph.tensors[i].name for i in operator.outputs if i >= 0]
    return [f"{what} ({listed(at, quote=False)})" for what, at in found.items()], names


def _refuse(operator: OperatorInfo, tensors: tuple[TensorInfo, ...]) -> str | None:
    """Return what its kernels lack for an operator, or `None`."""
    if operator.type not in KERNELS:
        if operator.type in CUSTOM:
            return None
        custom = "the custom operator " if is_custom(operator.type) else ""
        return f"no kernel for {custom}{operator.type}"
    taken, types = KERNELS[operator.type], find_typed(operator, tensors)
    if not taken or types is None or (types[0] if len(types) == 1 else types) in taken:
        return None
    return f"no kernel for {operator.type} of {' with '.join(types)}"


def find_typed(operator: OperatorInfo, tensors: tuple[TensorInfo, ...]) -> tuple[str, ...] | None:
    """Return the types that decide whether a kernel takes an operator; `None` if one is missing."""
    default = (0, 1) if operator.type in _TOGETHER else (0,)
    found = []
    for at in _TYPED.get(operator.type, default):
        ends = operator.outputs[:1] if at < 0 else operator.inputs[at : at + 1]
        if not ends or ends[0] < 0:
            return None
        found.append(tensors[ends[0]].dtype)
    return tuple(found)
