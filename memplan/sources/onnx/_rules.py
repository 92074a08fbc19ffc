"""Which operators share memory between input and output, and which are known before the run."""

from __future__ import annotations

__all__ = ["IN_PLACE", "RANDOM", "SAME_SHAPE", "SHAPE_ONLY", "VIEWS"]

# onnxruntime gives the output the memory of input 0 (unless the output leaves the graph, then it
# is a copy). Dropout, unless it trains, is taken out of the graph before it runs.
VIEWS = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})

# Output 0 may be written over one of these inputs, if it has as many bytes in its elements.
#
# By element: element i of the output depends on element i of the input alone, so that it is read
# before it is overwritten, whatever the order.
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
# By row: onnxruntime's kernels read a row before they write it.
_ROWS = "LogSoftmax Softmax"

# onnxruntime's CPU kernels take fewer of these choices (found by watching what each allocates):
# Cast, Celu, Clip, Elu, HardSigmoid, LeakyRelu, LogSoftmax, Relu, Selu, Shrink, Sigmoid, Softmax,
# Softplus, Softsign, Tanh, ThresholdedRelu and Trilu.
IN_PLACE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((_ONE + _ROWS).split(), (0,)),
    **dict.fromkeys(_TWO.split(), (0, 1)),
    "Where": (1, 2),
}

# Not the same in every run, so never a constant.
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

# What they give depends on the shape of their input, which is known, not on what is in it.
SHAPE_ONLY = frozenset({"Shape", "Size"})

# Their output is like input 0; the library infers nothing, it fails to expand their functions.
SAME_SHAPE = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
