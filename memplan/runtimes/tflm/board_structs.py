"""The structs that TFLM keeps in its arena, and how large a compiler makes them on a board.

The fields are those of TFLM's headers and kernels at revision 90b983c of 20 August 2026, each as a
letter: p a pointer or size, e an enumeration, i a number of 4 bytes, f a float, h a number of 2
bytes, b a bool or byte, d a number of 8 bytes; a struct in a struct is in parentheses.
"""

from __future__ import annotations

from typing import Final

from memplan.runtimes.tflm.read.boards import Board
from memplan.runtimes.tflm.read.windows import round_up

__all__ = [
    *("ALLOCATION", "ALLOCATOR", "KEPT_OF_INT8", "OPTIONS", "RESHAPED", "TENSOR"),
    *("find_kept", "measure_struct"),
]

# In the order in which they are placed: the buffer allocator, the planner and the allocator, of
# which SingleArenaBufferAllocator has two tables of functions.
ALLOCATOR: Final = ("pp" + "ppppp" + "pi", "piippppiipb", "pppppbppp")
TENSOR: Final = {
    "tensor": "(ep)(fi)pppeeb",  # TfLiteTensor
    "evaluated": "ppe",  # TfLiteEvalTensor
    "quantization": "ppi",  # TfLiteAffineQuantization
    "node": "(ppppppi)p",  # NodeAndRegistration
    "subgraph": "pp",  # SubgraphAllocations
    "builder": "pp",  # MicroBuiltinDataAllocator
    "variables": "pii",  # MicroResourceVariables
    "variable": "ppppb",  # one of them
}
ALLOCATION: Final = "ppiiib"  # AllocationInfo, only while the arena is planned

_POOL: Final = "eiiiie(iiii)"
_REDUCER: Final = "b"

# By operator: what its options become (TfLite...Params). Those that are not here have none.
OPTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(("ADD", "SUB"), "eb"),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "DIV", "L2_NORMALIZATION", "MIRROR_PAD"), "e"),
    **dict.fromkeys(("MUL", "SHAPE"), "e"),
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), _POOL),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN", "SUM"), _REDUCER),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "CUMSUM"), "bb"),
    **dict.fromkeys(("CALL_ONCE", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V"), "i"),
    **dict.fromkeys(("GATHER", "IF", "PACK", "UNPACK", "WHILE"), "ii"),
    **dict.fromkeys(("LEAKY_RELU", "SOFTMAX"), "f"),
    **dict.fromkeys(("RESHAPE", "SQUEEZE"), "i" * 9),
    "BATCH_MATMUL": "bbb",
    "CAST": "ee",
    "CONCATENATION": "ie",
    "CONV_2D": "eiieiie",
    "DEPTHWISE_CONV_2D": "eiiieii",
    "FULLY_CONNECTED": "eebbe",
    "STRIDED_SLICE": "iiiiib",
    "SVDF": "ieb",
    "TRANSPOSE_CONV": "eiiee",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "effbbb",
    "VAR_HANDLE": "pp",
}

_CONVOLUTION: Final = "iiii" + "iiiii" + "pp" + "iii"
_CONNECTED: Final = "i" * 9 + "pp" + "b"
_POOLED: Final = "(iiii)iiff"
_SUM: Final = "b" + "i" * 12 + "ff"
_SOFTMAX: Final = "d" + "i" * 6 + "f" + "p" * 5
_TRANSPOSED: Final = "(b(hhhh)hhhh" + "i" * 7 + "ff)"
_SCALED: Final = "i" * 4
_COUNTED: Final = "(" + "b" + "i" * 5 + ")"
_REDUCED: Final = "i" * 6 + "fifii"
_NOTHING: Final = """
    ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO CAST
    CEIL COS CUMSUM DEPTH_TO_SPACE EMBEDDING_LOOKUP EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV
    FLOOR_MOD GATHER GATHER_ND L2_POOL_2D LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOG_SOFTMAX MAXIMUM
    MINIMUM NEG PACK READ_VARIABLE RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2
    ROUND SHAPE SIN SLICE SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUEEZE TRANSPOSE UNPACK
    ZEROS_LIKE
"""

# By operator: what its reference kernel keeps. An operator that is not here is not known.
KEPT: Final[dict[str, str]] = {
    **dict.fromkeys(_NOTHING.split(), ""),
    **dict.fromkeys(("ABS", "RSQRT"), "iiiibee"),
    **dict.fromkeys(("ADD", "SUB"), _SUM),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _POOLED),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), _CONVOLUTION),
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), "iiiiiiib"),
    **dict.fromkeys(("IF", "WHILE"), "ii"),
    **dict.fromkeys(("LOGISTIC", "TANH"), _SCALED),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN", "SUM"), _REDUCED),
    **dict.fromkeys(("PAD", "PADV2"), "(" + _COUNTED[1:-1] * 2 + "b)i"),
    "CALL_ONCE": "ib",
    "CONCATENATION": "ippiif",
    "DEQUANTIZE": "(di)iii",
    "DIV": "i" * 7,
    "ELU": "b" * 256,
    "FULLY_CONNECTED": _CONNECTED,
    "HARD_SWISH": "hhhihi",
    "L2_NORMALIZATION": "i",
    "LEAKY_RELU": "i" * 6,
    "MIRROR_PAD": "i" * 5,
    "MUL": "i" * 7 + "ff",
    "NOT_EQUAL": "iiiiiiib",
    "PRELU": "i" * 7,
    "QUANTIZE": "(id)iii",
    "RELU": "(bii)iiii",
    "RELU6": "ii",
    "SELECT_V2": "b",
    "SOFTMAX": _SOFTMAX,
    "SPACE_TO_BATCH_ND": "i",
    "SQUARED_DIFFERENCE": "b(b" + "i" * 12 + "ffddhh" + "i" * 5 + ")",
    "STRIDED_SLICE": _COUNTED[1:-1] * 3 + "hhhhhb",
    "SVDF": "i" * 9,
    "TRANSPOSE_CONV": _TRANSPOSED + "iipp",
    "VAR_HANDLE": "i",
    "ethos-u": "iii",
}

# By operator: what its kernel keeps once it knows that its tensors are of int8.
KEPT_OF_INT8: Final = {"ADD_N": "i" * 10, "CUMSUM": "i" * 9, "LOG_SOFTMAX": "iiiiipp"}

# Operators whose result has its shape kept in the arena, as they change it.
RESHAPED: Final = frozenset(
    {"DEPTH_TO_SPACE", "EMBEDDING_LOOKUP", "GATHER", "GATHER_ND", "L2_POOL_2D", "SPACE_TO_DEPTH"}
)

# By library and operator: what its kernel keeps, where that is not what the reference kernel does.
_OTHERS: Final[dict[str, dict[str, str]]] = {
    "reference": {},
    "cmsis-nn": {
        **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), f"({_POOLED})i"),
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), f"({_CONVOLUTION})i"),
        "FULLY_CONNECTED": f"({_CONNECTED})iipiii",
        "SOFTMAX": f"({_SOFTMAX})ii",
        "SVDF": "i" * 9 + "p",
        "TRANSPOSE_CONV": _TRANSPOSED + "iiipp",
    },
    "esp-nn": {
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), f"({_CONVOLUTION})i"),
        "SOFTMAX": f"({_SOFTMAX})i",
    },
}


def find_kept(board: Board, type_: str) -> str | None:
    """Return the fields of what the kernel of an operator keeps; `None` if they are not known."""
    return _OTHERS[board.kernels].get(type_, KEPT.get(type_))


def measure_struct(board: Board, fields: str) -> tuple[int, int]:
    """Return the size and the alignment of a struct on a board, in bytes."""
    size, unit, _ = _measure(board, fields, 0)
    return size, unit


def _measure(board: Board, fields: str, at: int) -> tuple[int, int, int]:
    """Measure the fields from a position up to a closing bracket, and return where that is."""
    widths = {
        "p": board.pointer,
        "e": board.enumeration,
        "i": 4,
        "f": 4,
        "h": 2,
        "b": 1,
        "d": 8,
    }
    end, most = 0, 1
    while at < len(fields) and fields[at] != ")":
        if fields[at] == "(":
            size, unit, at = _measure(board, fields, at + 1)
        else:
            size = unit = widths[fields[at]]
        end = round_up(end, unit) + size
        most = max(most, unit)
        at += 1
    return round_up(end, most), most, at
