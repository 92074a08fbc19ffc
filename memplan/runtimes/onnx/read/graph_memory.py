"""Which operators share memory between input and output, and which are known before the run."""

from __future__ import annotations

__all__ = [
    *("FUSED_IN_PLACE", "IN_PLACE", "IN_RUNTIME", "RANDOM", "SAME_SHAPE", "SHAPE_ONLY", "VIEWS"),
]

# onnxruntime gives the output the memory of input 0, or copies it if it is an output of the graph.
# It removes a Dropout that does not train from the graph before the run.
VIEWS = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})

# Output 0 may be written over one of these inputs, if their elements have the same size in bytes.
#
# By element: element i of the output depends on element i of the input alone, so in any order of
# the elements the input is read before it is overwritten.
_ONE = """
    Abs Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh
    Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg Not PRelu Reciprocal Relu
    Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
    Trilu
"""
_TWO = """
    Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max
    Mean Min Mod Mul Or Pow Sub Sum Xor
"""
# By row: this is safe because onnxruntime's kernels read a row before they write it.
_ROWS = "LogSoftmax Softmax"

IN_PLACE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((_ONE + _ROWS).split(), (0,)),
    **dict.fromkeys(_TWO.split(), (0, 1)),
    "Where": (1, 2),
}
# Convolutions that onnxruntime fused with an addition add to what input 3 holds.
FUSED_IN_PLACE: dict[str, tuple[int, ...]] = {
    "com.microsoft.FusedConv": (3,),
    "com.microsoft.nchwc.Conv": (3,),
}

# onnxruntime's CPU kernels take fewer of these choices (found by watching what each allocates).
_KERNELS = """
    Cast Celu Clip Elu HardSigmoid LeakyRelu LogSoftmax Relu Selu Shrink Sigmoid Softmax Softplus
    Softsign Tanh ThresholdedRelu Trilu
"""
IN_RUNTIME = frozenset(_KERNELS.split()) | frozenset(FUSED_IN_PLACE)

# Their results differ from run to run, so they are never folded into constants.
RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)

# Their results depend only on the shape of the input, so they are known before the run.
SHAPE_ONLY = frozenset({"Shape", "Size"})

# Their output has the shape of input 0. The library fails to expand their functions, and so
# infers no shape.
SAME_SHAPE = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
