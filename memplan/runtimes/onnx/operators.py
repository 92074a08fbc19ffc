"""The operators of ONNX and onnxruntime: all that memplan knows of each, in one row.

What kernels do is that of onnxruntime's for the CPU; the library onnx infers most shapes. Rules are
functions of the files of `memplan/runtimes/onnx/read` that `Row` says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from memplan.programs.sources.dialects import Dialect, Shared

__all__ = ["DIALECT", "NCHWC", "TABLE", "Like", "Row", "find_row"]

NCHWC: Final = "com.microsoft.nchwc"  # the domain of operators on blocks of channels


class Like(NamedTuple):
    """The operator of ONNX, with the same attributes, whose result has the same shape."""

    kind: str
    inputs: tuple[int, ...]  # which inputs it would read, by position
    element: int = 0  # the input that has the type of the result, which is float32 without it
    bias: int | None = None  # the input that it would read behind these, if that is there
    turns: bool = False  # whether `transA` and `transB` turn what it reads
    channels_last: bool = False  # whether channels are last without an attribute that says so
    is_checked: bool = True  # whether the shapes must be those that the operator of ONNX takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of an operator; texts are names of rules, empty where there is none."""

    # For the rows that a part of its result needs, and for its multiplications (`graph_pictures`).
    rows: str = ""
    work: str = ""
    filter: int = 0  # the position of the filter of a convolution
    # The inputs over one of which its first result may be written, if their elements have the same
    # size in bytes: element i of the result depends on element i of the input alone, or the kernel
    # reads a row before it writes it.
    in_place: tuple[int, ...] = ()
    in_runtime: bool = False  # whether onnxruntime does so (found by watching what it allocates)
    # Whether onnxruntime gives the result the memory of input 0, or copies it if it is a result of
    # the graph. It removes a Dropout that does not train from the graph before the run.
    is_view: bool = False
    shared: Shared | None = None  # what it shares with other operators, beside tensors
    trains: bool = False  # whether it draws random numbers, but only in training
    is_windowed: bool = False  # whether its attributes are those of windows
    # Whether its result has the shape of input 0, though the library infers none, as it fails to
    # expand its function.
    keeps_shape: bool = False
    # Whether its result depends on the shape of input 0 alone, so that it is known before the run.
    asks_shape: bool = False
    value: str = ""  # computes a small result: a function of NumPy or a rule (`shapes_arithmetic`)
    grows: str = ""  # bounds how many sizes its result can be (`shapes_growth`)
    amends: str = ""  # changes it where the library infers what no runtime makes (`shapes_windows`)
    formula: str = ""  # for its sizes as formulas (`sizes_formulas`)
    sizes: str = ""  # for sizes that depend on data (`sizes_data`)
    # For operators that the library does not know: one that makes the same shape, or the rule for
    # all results (`shapes_runtime`).
    like: Like | None = None
    shape: str = ""
    fits: str = ""  # says whether it can run at its sizes (`faults_rules`)


def _alike(names: str, row: Row, domain: str = "") -> dict[str, Row]:
    return {f"{domain}.{name}" if domain else name: row for name in names.split()}


def _own(names: str, row: Row) -> dict[str, Row]:
    return _alike(names, row, "com.microsoft")


_EACH: Final = Row(rows="each", in_place=(0,))
_RUN: Final = replace(_EACH, in_runtime=True)
_TWO: Final = Row(rows="each", in_place=(0, 1), formula="broadcast")
_VIEW: Final = Row(is_view=True, fits="same_count")
_CONV: Final = Row(rows="filter", work="filter", filter=1, is_windowed=True, fits="convolution")
# Convolutions that onnxruntime fused with an addition add to what input 3 holds.
_FUSED: Final = Row(
    rows="convolve_and_add", work="filter", filter=1, in_place=(3,), in_runtime=True
)
_POOL: Final = Row(rows="pool", is_windowed=True, amends="pool", formula="pool")
_REDUCED: Final = Row(sizes="reduce")
_ROWS: Final = Row(rows="softmax", in_place=(0,), in_runtime=True)
_NORM: Final = Row(fits="by_channel")

TABLE: Final[dict[str, Row]] = {
    **_alike("Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseNot Cos Cosh Erf Exp Gelu", _EACH),
    **_alike("HardSwish Log Mish Reciprocal Round Sign Sin Sinh Sqrt Swish Tan", _EACH),
    **_alike("Celu Clip Elu HardSigmoid LeakyRelu Relu Selu Shrink Sigmoid Softplus", _RUN),
    **_alike("Softsign Tanh ThresholdedRelu", _RUN),
    **_alike("BitwiseAnd BitwiseOr BitwiseXor Mean Pow Sum Xor", _TWO),
    "Abs": replace(_EACH, value="abs"),
    "Add": replace(_TWO, value="add", grows="counted"),
    "AffineGrid": Row(sizes="grid"),
    "And": replace(_TWO, value="logical_and"),
    **_alike("AveragePool LpPool MaxPool", _POOL),
    "BatchNormalization": replace(_NORM, rows="normalize"),
    "Bernoulli": Row(shared=Shared.GENERATOR),
    **_alike("BlackmanWindow HammingWindow HannWindow", Row(sizes="element")),
    "Cast": replace(_RUN, value="cast"),
    "CastLike": Row(in_place=(0,)),
    "Ceil": replace(_EACH, value="ceil"),
    "CenterCropPad": Row(sizes="any"),
    "Compress": Row(value="compress", sizes="compress"),
    "Concat": Row(rows="join", value="concatenate", grows="join", formula="concatenate"),
    "Constant": Row(value="constant", grows="constant"),
    "ConstantOfShape": Row(value="constant_of_shape", grows="fill", sizes="elements"),
    "Conv": replace(_CONV, formula="convolve"),
    "ConvInteger": _CONV,
    "ConvTranspose": Row(
        rows="transpose",
        work="spread",
        is_windowed=True,
        amends="spread",
        formula="spread",
        fits="spread",
    ),
    "DFT": Row(sizes="transform"),
    "DeformConv": Row(is_windowed=True),
    "DepthToSpace": Row(rows="to_space"),
    **_alike("DequantizeLinear QuantizeLinear", Row(rows="quantize")),
    "Div": replace(_TWO, value="divide"),
    "Dropout": replace(_VIEW, trains=True),
    "Equal": replace(_TWO, value="equal"),
    "Expand": Row(value="expand", grows="expand", sizes="expand"),
    "Flatten": replace(_VIEW, formula="flatten"),
    "Floor": replace(_EACH, value="floor"),
    **_alike("GRU LSTM RNN", Row(fits="recurrent")),
    "Gather": Row(value="gather", grows="gather"),
    "GatherND": Row(shape="gather_points"),
    "Gemm": Row(work="product", fits="gemm"),
    "Greater": replace(_TWO, value="greater"),
    "GreaterOrEqual": replace(_TWO, value="greater_equal"),
    **_alike("GroupNormalization MeanVarianceNormalization", Row(keeps_shape=True)),
    "Identity": replace(_VIEW, value="asarray"),
    "If": Row(sizes="branch"),
    "InstanceNormalization": _NORM,
    "LRN": Row(rows="first"),
    "LayerNormalization": Row(shape="of_scale", fits="by_axis"),
    "Less": replace(_TWO, value="less"),
    "LessOrEqual": replace(_TWO, value="less_equal"),
    **_alike("LogSoftmax Softmax", _ROWS),
    "Loop": Row(sizes="loop"),
    "MatMul": Row(work="product"),
    "Max": replace(_TWO, value="largest"),
    "MaxUnpool": Row(is_windowed=True, sizes="pictures"),
    "MelWeightMatrix": Row(sizes="matrix"),
    "Min": replace(_TWO, value="least"),
    "Mod": replace(_TWO, value="remainder"),
    "Mul": replace(_TWO, value="multiply", grows="counted"),
    "Multinomial": Row(shared=Shared.GENERATOR),
    "Neg": replace(_EACH, value="negative"),
    "NonMaxSuppression": Row(sizes="suppress"),
    "NonZero": Row(value="nonzero", sizes="nonzero"),
    "Not": replace(_EACH, value="logical_not"),
    "OneHot": Row(grows="axis", sizes="one_hot"),
    "Or": replace(_TWO, value="logical_or"),
    "PRelu": replace(_EACH, formula="broadcast", fits="by_slope"),
    "Pad": Row(rows="pad", sizes="pad", fits="pad"),
    "QLinearConv": replace(_CONV, filter=3),
    "RMSNormalization": Row(fits="by_axis"),
    **_alike(
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
        Row(shared=Shared.GENERATOR),
    ),
    "Range": Row(value="range", grows="range"),
    **_alike("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceSumSquare", _REDUCED),
    **_alike("ReduceMax ReduceMin", replace(_REDUCED, grows="one")),
    "ReduceProd": replace(_REDUCED, value="product", grows="one"),
    "ReduceSum": replace(_REDUCED, value="total", grows="one"),
    "Reshape": replace(_VIEW, value="reshape", grows="reshape", formula="reshape", sizes="reshape"),
    "Resize": Row(rows="resize", sizes="any"),
    "STFT": Row(sizes="short_transform"),
    "ScatterElements": Row(fits="scatter_elements"),
    "ScatterND": Row(fits="scatter"),
    **_alike("SequenceAt SplitToSequence", Row(grows="axis")),
    "Shape": Row(asks_shape=True, grows="shape"),
    "SimplifiedLayerNormalization": Row(shape="of_scale"),
    "Size": Row(asks_shape=True, grows="one"),
    "Slice": Row(rows="slice", value="slice", amends="slice", sizes="slice"),
    "SpaceToDepth": Row(rows="to_depth"),
    "Split": Row(sizes="split", fits="split"),
    "Squeeze": replace(_VIEW, value="squeeze", amends="squeeze", sizes="squeeze"),
    "Sub": replace(_TWO, value="subtract", grows="counted"),
    "Tile": Row(grows="tile", sizes="any"),
    "TopK": Row(sizes="top"),
    "Transpose": Row(value="transpose"),
    "Trilu": Row(in_place=(0,), in_runtime=True),
    "Unique": Row(sizes="unique"),
    "Unsqueeze": replace(_VIEW, value="unsqueeze", grows="unsqueeze", sizes="unsqueeze"),
    "Upsample": Row(rows="resize", amends="upsample", sizes="any"),
    "Where": Row(rows="each", in_place=(1, 2), value="where", formula="broadcast"),
    # onnxruntime's own, docs/ContribOperators.md.
    **_own("AllGather AllReduce AllToAll NcclAllGather", Row(shared=Shared.WORLD)),
    **_own("NcclAllReduce NcclReduceScatter", Row(shared=Shared.WORLD)),
    **_own("BiasDropout BitmaskDropout Sampling", Row(shared=Shared.GENERATOR)),
    **_own("Attention", Row(shape="attention")),
    **_own("BiasGelu FastGelu", Row(shape="with_bias")),
    **_own("DequantizeLinear", Row(shape="of_scale")),
    **_own("DynamicQuantizeLSTM", Row(shape="quantized_lstm")),
    **_own(
        "DynamicQuantizeMatMul FusedMatMul TransposeMatMul",
        Row(like=Like("MatMul", (0, 1), turns=True)),
    ),
    **_own("EmbedLayerNormalization", Row(shape="embed")),
    **_own("FusedConv", replace(_FUSED, like=Like("Conv", (0, 1), bias=2))),
    **_own("FusedGemm", Row(like=Like("Gemm", (0, 1), bias=2))),
    **_own("GatherBlockQuantized", Row(shape="gather_blocks")),
    **_own("Gelu QuickGelu", Row(rows="first", shape="same")),
    **_own("GroupQueryAttention", Row(shape="group_query")),
    **_own("MatMulBnb4 MatMulNBits", Row(shape="blocks_product")),
    **_own("MatMulIntegerToFloat", Row(like=Like("MatMul", (0, 1), 2, turns=True))),
    **_own("MultiHeadAttention", Row(shape="multi_head")),
    **_own("NhwcMaxPool", Row(like=Like("MaxPool", (0,), channels_last=True))),
    **_own("QAttention", Row(shape="quantized_attention")),
    **_own("QGemm", Row(like=Like("Gemm", (0, 3), 8, bias=6))),
    **_own("QLinearAdd", Row(like=Like("Add", (0, 3)))),
    **_own("QLinearAveragePool", Row(like=Like("AveragePool", (0,)))),
    **_own("QLinearConcat", Row(shape="concatenate")),
    **_own("QLinearConv", Row(like=Like("Conv", (0, 3), 7))),
    **_own("QLinearGlobalAveragePool", Row(like=Like("GlobalAveragePool", (0,)))),
    **_own("QLinearLeakyRelu QLinearSigmoid QLinearSoftmax RotaryEmbedding", Row(shape="same")),
    **_own("QLinearMul", Row(like=Like("Mul", (0, 3)))),
    **_own("QLinearWhere", Row(like=Like("Max", (0, 1, 4), 1))),
    **_own("QuantizeLinear", Row(shape="quantize")),
    **_own("SkipLayerNormalization SkipSimplifiedLayerNormalization", Row(shape="skip_normalize")),
    # Tensors keep the axes of NCHW, with channels filled up to whole blocks.
    f"{NCHWC}.AveragePool": Row(rows="pool", like=Like("AveragePool", (0,))),
    f"{NCHWC}.Conv": replace(_FUSED, like=Like("Conv", (0, 1), is_checked=False)),
    f"{NCHWC}.GlobalAveragePool": Row(like=Like("GlobalAveragePool", (0,))),
    f"{NCHWC}.GlobalMaxPool": Row(like=Like("GlobalMaxPool", (0,))),
    f"{NCHWC}.MaxPool": Row(rows="pool", like=Like("MaxPool", (0,))),
    f"{NCHWC}.ReorderInput": Row(rows="reorder", shape="reorder_input"),
    f"{NCHWC}.ReorderOutput": Row(rows="reorder", shape="reorder_output"),
    f"{NCHWC}.Upsample": Row(rows="repeat", shape="upsample"),
}
_UNKNOWN: Final = Row()
_DOMAINS: Final = ("ai.onnx.", "com.microsoft.")


def find_row(type_: str) -> Row:
    """Return what is known of an operator by its type, which may be nothing."""
    return TABLE.get(type_, _UNKNOWN)


def _is_known(type_: str) -> bool:
    return "." not in type_ or type_.startswith(_DOMAINS)


DIALECT: Final = Dialect(
    lambda type_: find_row(type_).shared,
    _is_known,
    random_in_training=frozenset(name for name, row in TABLE.items() if row.trains),
)
