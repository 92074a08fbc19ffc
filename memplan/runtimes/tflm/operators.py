"""The operators of TFLite: all that memplan knows of each, in one row.

A row says what TFLM's reference kernel (tensorflow/lite/micro/kernels/*.cc, as in its Python
package) takes, keeps and asks for, and names the rules that are functions: `shapes` has those of
results, `pictures` those of rows, `kernels` those of scratch. Kernels for one chip ask for other
scratch: `cmsis_nn` and `esp_nn`.

Fields of structs are those of TFLM's headers at revision 90b983c of 20 August 2026, each as a
letter (`board_structs`). TFLM's own planner makes no in-place choice, as it always places input and
output apart; a plan in the file's metadata can make them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from memplan.programs.sources.dialects import Shared
from memplan.runtimes.tflm.names import ELEMENT_TYPES

__all__ = ["TABLE", "InPlace", "Options", "Row", "find_row"]


class InPlace(NamedTuple):
    """Which inputs of an operator its first output may be written over.

    Attributes
    ----------
    inputs
        Positions among the operator's inputs; the planner takes one of them at most.
    moves
        Whether the kernel only moves bytes: then the size must be equal, and the shape may differ.
    why
        Why the kernel computes the same result when input and output share their memory.
    """

    inputs: tuple[int, ...]
    moves: bool
    why: str


class Options:
    """Where the options of an operator that describe shapes are in a file.

    Attributes
    ----------
    number
        Of the schema's BuiltinOptions.
    fields
        By name: the slot of a scalar, and its kind as `struct` writes it.
    """

    def __init__(self, number: int, **fields: tuple[int, str]) -> None:
        self.number = number
        self.fields: Mapping[str, tuple[int, str]] = fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of an operator.

    Attributes
    ----------
    types
        The types of elements that the kernel takes, of several tensors together with a plus; empty
        where it takes any. `None` where TFLM has no kernel.
    typed
        Which inputs have these types; -1 is the result.
    options
        Its options that describe shapes.
    enters
        The number of the options that name the sub-graphs which it enters, and their slots.
    shape, rows, scratch
        The rule for the shape of its result, for the rows that a part of it needs ("mixes" if all),
        and for its scratch; empty where there is none.
    in_place
        Which inputs its result may be written over.
    parts
        Whether inputs may lie in the result ("of_result"), or the result in an input ("of_input"),
        as the kernel copies the bytes.
    parameters
        The fields of the struct that its options become (TfLite...Params).
    keeps, keeps_of_int8
        The fields of what the kernel keeps, and of what it keeps beyond that for tensors of int8;
        `None` where this is not known.
    is_reshaped
        Whether the shape of its result is kept in the arena, as the kernel changes it.
    shared
        What it shares with other operators, beside tensors.
    """

    types: str | None = None
    typed: tuple[int, ...] = ()
    options: Options | None = None
    enters: tuple[int, tuple[int, ...]] | None = None
    shape: str = ""
    rows: str = ""
    in_place: InPlace | None = None
    parts: str = ""
    scratch: str = ""
    parameters: str | None = None
    keeps: str | None = None
    keeps_of_int8: str = ""
    is_reshaped: bool = False
    shared: Shared | None = None

    @property
    def taken(self) -> frozenset[tuple[str, ...]]:
        """The types of tensors that its kernel takes together."""
        return frozenset(tuple(each.split("+")) for each in (self.types or "").split())


def _alike(names: str, row: Row) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


_EACH = "writes element i once it has read element i of its inputs, and never reads that again"
_ROWS = "writes element i of a row in the last pass that reads it, and rows are apart"
_COPY = "copies, element i to element i"
_NOTHING = "returns at once where output and input are the same memory"
_BASE = "copies its operand only where the output is other memory, then writes the update into it"

_FLOATS_OR_BYTES: Final = "float32+float32 int16+int8 int8+int4 int8+int8"
_CASTS: Final = ("float32", "int8", "int16", "int32", "bool", "uint32")
_CAST: Final = " ".join(f"{one}+{other}" for one in _CASTS for other in _CASTS)
_QUANTIZE: Final = (
    "float32+int16 float32+int8 int16+int16 int16+int32 int16+int8 "
    "int32+int16 int32+int8 int8+int16 int8+int32 int8+int8 int8+uint8 uint8+int8"
)
_LSTM: Final = " ".join(
    [*(f"float32+{weights}" for weights, _ in ELEMENT_TYPES), "int8+int8", "int16+int8"]
)

_POOL: Final = "eiiiie(iiii)"
_CONVOLUTION: Final = "iiii" + "iiiii" + "pp" + "iii"
_CONNECTED: Final = "i" * 9 + "pp" + "b"
_POOLED: Final = "(iiii)iiff"
_SUM: Final = "b" + "i" * 12 + "ff"
_SOFTMAX: Final = "d" + "i" * 6 + "f" + "p" * 5
_TRANSPOSED: Final = "(b(hhhh)hhhh" + "i" * 7 + "ff)"
_SCALED: Final = "i" * 4
_COUNTED: Final = "b" + "i" * 5
_PADDED: Final = f"({_COUNTED * 2}b)i"
_STRIDED: Final = _COUNTED * 3 + "hhhhhb"
_DIFFERENCE: Final = "b(b" + "i" * 12 + "ffddhh" + "i" * 5 + ")"
_REDUCED: Final = "i" * 6 + "fifii"

TABLE: Final[dict[str, Row]] = {
    **_alike(
        "ABS RSQRT",
        Row(
            types="float32 int8 int16",
            shape="same",
            rows="each",
            in_place=InPlace((0,), False, _EACH),
            keeps="iiiibee",
        ),
    ),
    **_alike(
        "ADD SUB",
        Row(
            types="float32 int8 int16 int32",
            shape="broadcast",
            rows="each",
            in_place=InPlace((0, 1), False, _EACH),
            parameters="eb",
            keeps=_SUM,
        ),
    ),
    "ADD_N": Row(
        types="float32 int8",
        rows="each",
        in_place=InPlace((0, 1, 2, 3), False, _EACH),
        scratch="pointers",
        keeps="",
        keeps_of_int8="iiiiiiiiii",
    ),
    **_alike("ARG_MAX ARG_MIN", Row(types="float32 int8", parameters="e", keeps="")),
    **_alike("ASSIGN_VARIABLE READ_VARIABLE", Row(types="", keeps="", shared=Shared.WORLD)),
    **_alike(
        "AVERAGE_POOL_2D MAX_POOL_2D",
        Row(
            types="float32 int8 int16",
            options=Options(
                5,
                padding=(0, "b"),
                step_x=(1, "i"),
                step_y=(2, "i"),
                width=(3, "i"),
                height=(4, "i"),
            ),
            shape="pool",
            rows="pool",
            parameters=_POOL,
            keeps=_POOLED,
        ),
    ),
    "BATCH_MATMUL": Row(types="float32+float32 int16+int16 int8+int8", parameters="bbb"),
    "BATCH_TO_SPACE_ND": Row(types="float32 int8", keeps=""),
    "BROADCAST_ARGS": Row(types="int32 int64", keeps=""),
    "BROADCAST_TO": Row(types="", keeps=""),
    "CALL_ONCE": Row(types="", parameters="i", keeps="ib", enters=(103, (0,)), shared=Shared.WORLD),
    "CAST": Row(
        types=_CAST,
        typed=(0, -1),
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        parameters="ee",
        keeps="",
    ),
    **_alike(
        "CEIL COS EXP FLOOR LOG NEG ROUND SIN SQRT SQUARE",
        Row(
            types="float32",
            shape="same",
            rows="each",
            in_place=InPlace((0,), False, _EACH),
            keeps="",
        ),
    ),
    "CONCATENATION": Row(
        types="float32 int8 int16 int32 int64 bool",
        options=Options(10, axis=(0, "i")),
        shape="concatenate",
        rows="join",
        parts="of_result",
        parameters="ie",
        keeps="ippiif",
    ),
    "CONV_2D": Row(
        types=_FLOATS_OR_BYTES,
        options=Options(
            1,
            padding=(0, "b"),
            step_x=(1, "i"),
            step_y=(2, "i"),
            dilation_x=(4, "i"),
            dilation_y=(5, "i"),
        ),
        shape="convolve",
        rows="convolve",
        scratch="unpacked_filter",
        parameters="eiieiie",
        keeps=_CONVOLUTION,
    ),
    "CUMSUM": Row(types="float32 int8", parameters="bb", keeps="", keeps_of_int8="iiiiiiiii"),
    "DEPTHWISE_CONV_2D": Row(
        types=_FLOATS_OR_BYTES,
        options=Options(
            2,
            padding=(0, "b"),
            step_x=(1, "i"),
            step_y=(2, "i"),
            dilation_x=(5, "i"),
            dilation_y=(6, "i"),
        ),
        shape="convolve",
        rows="convolve",
        scratch="unpacked_filter",
        parameters="eiiieii",
        keeps=_CONVOLUTION,
    ),
    "DEPTH_TO_SPACE": Row(
        types="float32 int8",
        options=Options(94, block=(0, "i")),
        rows="to_space",
        parameters="i",
        keeps="",
        is_reshaped=True,
    ),
    "DEQUANTIZE": Row(types="int8 int16 uint8", shape="same", rows="each", keeps="(di)iii"),
    "DIV": Row(
        types="float32 int8 int32",
        shape="broadcast",
        rows="each",
        in_place=InPlace((0, 1), False, _EACH),
        parameters="e",
        keeps="iiiiiii",
    ),
    "DYNAMIC_UPDATE_SLICE": Row(
        types="float32 int8 int16 int32", shape="same", in_place=InPlace((0,), False, _BASE)
    ),
    "ELU": Row(
        types="float32 int8",
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        keeps="b" * 256,
    ),
    "EMBEDDING_LOOKUP": Row(types="float32 int8", typed=(1,), keeps="", is_reshaped=True),
    **_alike(
        "EQUAL NOT_EQUAL",
        Row(
            types="float32 int8 int32 int64 bool", shape="broadcast", rows="each", keeps="iiiiiiib"
        ),
    ),
    "EXPAND_DIMS": Row(
        types="float32 int8 int16", shape="expand", in_place=InPlace((0,), True, _COPY), keeps=""
    ),
    "FILL": Row(types="float32 int8 int32", typed=(1,), keeps=""),
    **_alike(
        "FLOOR_DIV FLOOR_MOD",
        Row(
            types="float32",
            shape="broadcast",
            rows="each",
            in_place=InPlace((0, 1), False, _EACH),
            keeps="",
        ),
    ),
    "FULLY_CONNECTED": Row(
        types=_FLOATS_OR_BYTES,
        options=Options(8, keeps_axes=(2, "B")),
        shape="connect",
        rows="connect",
        scratch="unpacked_filter",
        parameters="eebbe",
        keeps=_CONNECTED,
    ),
    "GATHER": Row(types="float32 int8", parameters="ii", keeps="", is_reshaped=True),
    "GATHER_ND": Row(types="float32 int8", keeps="", is_reshaped=True),
    "GELU": Row(shape="same", rows="each"),
    "GREATER": Row(
        types="float32 int8 int16 int32 int64", shape="broadcast", rows="each", keeps="iiiiiiib"
    ),
    **_alike(
        "GREATER_EQUAL LESS LESS_EQUAL",
        Row(types="float32 int8 int32 int64", shape="broadcast", rows="each", keeps="iiiiiiib"),
    ),
    "HARD_SWISH": Row(
        types="float32 int8",
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        keeps="hhhihi",
    ),
    **_alike("HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE", Row(shared=Shared.WORLD)),
    "IF": Row(types="", parameters="ii", keeps="ii", enters=(92, (0, 1))),
    "L2_NORMALIZATION": Row(
        types="float32 int8", shape="same", rows="first", parameters="e", keeps="i"
    ),
    "L2_POOL_2D": Row(
        types="float32",
        options=Options(
            5, padding=(0, "b"), step_x=(1, "i"), step_y=(2, "i"), width=(3, "i"), height=(4, "i")
        ),
        shape="pool",
        rows="pool",
        parameters=_POOL,
        keeps="",
        is_reshaped=True,
    ),
    "LEAKY_RELU": Row(
        types="float32 int8 int16",
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        parameters="f",
        keeps="iiiiii",
    ),
    **_alike(
        "LOGICAL_AND LOGICAL_OR",
        Row(
            types="",
            shape="broadcast",
            rows="each",
            in_place=InPlace((0, 1), False, _EACH),
            keeps="",
        ),
    ),
    "LOGICAL_NOT": Row(
        types="bool", shape="same", rows="each", in_place=InPlace((0,), False, _EACH), keeps=""
    ),
    **_alike(
        "LOGISTIC TANH",
        Row(
            types="float32 int8 int16",
            shape="same",
            rows="each",
            in_place=InPlace((0,), False, _EACH),
            keeps=_SCALED,
        ),
    ),
    "LOG_SOFTMAX": Row(
        types="float32 int8", shape="same", rows="first", keeps="", keeps_of_int8="iiiiipp"
    ),
    **_alike(
        "MAXIMUM MINIMUM",
        Row(
            types="float32 int8 int16 int32 int64",
            shape="broadcast",
            rows="each",
            in_place=InPlace((0, 1), False, _EACH),
            keeps="",
        ),
    ),
    **_alike(
        "MEAN SUM",
        Row(
            types="float32 int8 int16",
            options=Options(27, keeps_axes=(0, "B")),
            shape="reduce",
            rows="mixes",
            scratch="sums",
            parameters="b",
            keeps=_REDUCED,
        ),
    ),
    "MIRROR_PAD": Row(
        types="float32 int8",
        options=Options(77, mode=(0, "b")),
        shape="mirror",
        scratch="paddings",
        parameters="e",
        keeps="iiiii",
    ),
    "MUL": Row(
        types="float32 int8 int16 int32",
        shape="broadcast",
        rows="each",
        in_place=InPlace((0, 1), False, _EACH),
        parameters="e",
        keeps="iiiiiiiff",
    ),
    **_alike("MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM", Row(shared=Shared.GENERATOR)),
    "PACK": Row(
        types="float32 int8 int16 int32 int64",
        options=Options(59, count=(0, "i"), axis=(1, "i")),
        shape="pack",
        parameters="ii",
        keeps="",
    ),
    **_alike(
        "PAD PADV2", Row(types="float32 int8 int16 int32", shape="pad", rows="pad", keeps=_PADDED)
    ),
    "POW": Row(shape="broadcast", rows="each"),
    "PRELU": Row(
        types="float32 int8",
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        keeps="iiiiiii",
    ),
    "QUANTIZE": Row(
        types=_QUANTIZE,
        typed=(0, -1),
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        keeps="(id)iii",
    ),
    "REDUCE_ALL": Row(types="bool", scratch="rank_and_axes", parameters="b", keeps=_REDUCED),
    **_alike(
        "REDUCE_MAX REDUCE_MIN",
        Row(
            types="float32 int8",
            options=Options(27, keeps_axes=(0, "B")),
            shape="reduce",
            rows="mixes",
            scratch="rank_and_axes",
            parameters="b",
            keeps=_REDUCED,
        ),
    ),
    "REDUCE_PROD": Row(options=Options(27, keeps_axes=(0, "B")), shape="reduce", rows="mixes"),
    "RELU": Row(
        types="float32 int8 int16",
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        keeps="(bii)iiii",
    ),
    "RELU6": Row(
        types="float32 int8 int16",
        shape="same",
        rows="each",
        in_place=InPlace((0,), False, _EACH),
        keeps="ii",
    ),
    **_alike("RELU_0_TO_1 RELU_N1_TO_1", Row(rows="each")),
    "RESHAPE": Row(
        types="",
        shape="reshape",
        rows="mixes",
        in_place=InPlace((0,), True, _NOTHING),
        parameters="iiiiiiiii",
        keeps="",
    ),
    "RESIZE_BILINEAR": Row(
        types="float32 int8",
        options=Options(15, align_corners=(2, "B"), half_pixels=(3, "B")),
        shape="resize",
        rows="resize",
        parameters="bb",
        keeps="",
    ),
    "RESIZE_NEAREST_NEIGHBOR": Row(
        types="float32 int8 int16",
        options=Options(74, align_corners=(0, "B"), half_pixels=(1, "B")),
        shape="resize",
        rows="resize",
        parameters="bb",
        keeps="",
    ),
    "REVERSE_V2": Row(types="float32 int8 int16 int32 int64 uint8 bool", keeps=""),
    "SELECT_V2": Row(
        types="float32 int8 int16",
        typed=(1,),
        shape="broadcast",
        rows="each",
        in_place=InPlace((1, 2), False, _EACH),
        keeps="b",
    ),
    "SHAPE": Row(types="", shape="rank", parameters="e", keeps=""),
    "SLICE": Row(types="float32 int8 int16 int32 bool", parts="of_input", keeps=""),
    "SOFTMAX": Row(
        types="float32 int8 int16",
        shape="same",
        rows="first",
        in_place=InPlace((0,), False, _ROWS),
        parameters="f",
        keeps=_SOFTMAX,
    ),
    "SPACE_TO_BATCH_ND": Row(types="float32 int8", keeps="i"),
    "SPACE_TO_DEPTH": Row(
        types="float32 int8",
        options=Options(19, block=(0, "i")),
        rows="to_depth",
        parameters="i",
        keeps="",
        is_reshaped=True,
    ),
    "SPLIT": Row(types="float32 int8 int16 int32", typed=(1,), parameters="i", keeps=""),
    "SPLIT_V": Row(types="float32 int8 int16 int32", parameters="i", keeps=""),
    "SQUARED_DIFFERENCE": Row(
        types="float32 int8 int16 int32",
        shape="broadcast",
        rows="each",
        in_place=InPlace((0, 1), False, _EACH),
        keeps=_DIFFERENCE,
    ),
    "SQUEEZE": Row(types="", in_place=InPlace((0,), True, _COPY), parameters="iiiiiiiii", keeps=""),
    "STRIDED_SLICE": Row(
        types="float32 int8 int16 int32 bool", parameters="iiiiib", keeps=_STRIDED
    ),
    "SVDF": Row(
        types="float32+float32+float32 int8+int8+int16 int8+int8+int8",
        typed=(0, 1, 2),
        scratch="svdf",
        parameters="ieb",
        keeps="iiiiiiiii",
    ),
    "TRANSPOSE": Row(types="float32 int8 int16", shape="transpose", rows="mixes", keeps=""),
    "TRANSPOSE_CONV": Row(
        types="float32+float32 int16+int16 int16+int8 int8+int8",
        typed=(2, 1),
        options=Options(49, padding=(0, "b"), step_x=(1, "i"), step_y=(2, "i")),
        rows="transpose",
        scratch="accumulators",
        parameters="eiiee",
        keeps=_TRANSPOSED + "iipp",
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Row(types=_LSTM, scratch="states", parameters="effbbb"),
    "UNPACK": Row(types="float32 int8 int16 int32", parameters="ii", keeps=""),
    "VAR_HANDLE": Row(types="", parameters="pp", keeps="i", shared=Shared.WORLD),
    "WHILE": Row(types="", parameters="ii", keeps="ii", enters=(93, (0, 1))),
    "ZEROS_LIKE": Row(types="float32 int8 int32 int64", shape="same", rows="each", keeps=""),
    "ethos-u": Row(keeps="iii"),
}
_UNKNOWN: Final = Row()


def find_row(type_: str) -> Row:
    """Return what is known of an operator by its type, which may be nothing."""
    return TABLE.get(type_, _UNKNOWN)
