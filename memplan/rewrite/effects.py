"""What an operator does beyond its results, and so which operators keep their order.

Operators that wait for one another's results keep their order anyway. The tables below name those
that share something else: a generator of random numbers, or the world outside of the program. Two
of them run in the given order. What writes to memory that others use is found by `hazards`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from memplan.base.errors import GraphError, quoted
from memplan.graph import Graph, Operator
from memplan.graph.updates import is_view, updates

__all__ = [
    "MOVE_BACK",
    "MOVE_OUT",
    "Shared",
    "draws",
    "is_view",
    "require_known",
    "shared_by",
    "updates",
]


class Shared(StrEnum):
    """What operators share, other than tensors; those that share it run in the given order."""

    GENERATOR = "generator"  # each random number depends on how many were drawn before
    WORLD = "world"  # prints, assertions, collectives, resources that have a handle


def _table(generator: str, world: str) -> Mapping[str, Shared]:
    return {
        **dict.fromkeys(generator.split(), Shared.GENERATOR),
        **dict.fromkeys(world.split(), Shared.WORLD),
    }


# By format: the types of operators that share something. Types of PyTorch are without "aten." and
# without the underscore at the end.
_SHARED: Mapping[str, Mapping[str, Shared]] = {
    "tflite": _table(
        "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL",
        "VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE HASHTABLE HASHTABLE_FIND "
        "HASHTABLE_IMPORT HASHTABLE_SIZE",
    ),
    "onnx": _table(
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
        "com.microsoft.Sampling com.microsoft.BitmaskDropout com.microsoft.BiasDropout",
        "com.microsoft.NcclAllReduce com.microsoft.NcclAllGather com.microsoft.NcclReduceScatter "
        "com.microsoft.AllReduce com.microsoft.AllGather com.microsoft.AllToAll",
    ),
    "openvino": _table("Multinomial RandomUniform", "Assign ReadValue"),
    "torch": _table(
        "_efficient_attention_forward _fused_dropout _scaled_dot_product_attention_math "
        "_scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
        "alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout "
        "feature_dropout geometric log_normal multinomial native_dropout normal normal_functional "
        "poisson rand rand_like randint randint_like randn randn_like random randperm rrelu "
        "rrelu_with_noise rrelu_with_noise_functional scaled_dot_product_attention uniform "
        "read_generator write_generator",
        "_assert_async _assert_scalar _assert_tensor_metadata _print sym_constrain_range "
        "sym_constrain_range_for_size _functional_assert_async _functional_assert_scalar "
        "_functional_sym_constrain_range _functional_sym_constrain_range_for_size",
    ),
}
# Namespaces of PyTorch whose operators all talk to other processes, or to the user.
_WORLDS = frozenset({"_c10d_functional", "_c10d_functional_autograd", "c10d", "c10d_functional"})

# Types of operators that move a tensor out of the memory and back, whatever the format.
MOVE_OUT, MOVE_BACK = "move out", "move back"

# Operators outside of these may do anything.
_TORCH_SPACES = frozenset(
    {"_operator", "aten", "math", "memplan", "prim", "prims", "quantized_decomposed", "torchvision"}
)
_ONNX_DOMAINS = ("ai.onnx.", "com.microsoft.")
# Custom operators of TFLite that are known to compute their results and nothing else.
_TFLITE_PURE = frozenset(
    {
        *("TFLite_Detection_PostProcess", "Convolution2DTransposeBias", "MaxPoolingWithArgmax2D"),
        *("MaxUnpooling2D", "Landmarks2TransformMatrix", "TransformTensorBilinear"),
        *("TransformLandmarks", "SignalWindow", "SignalRfft", "SignalEnergy", "SignalFilterBank"),
    }
)


def shared_by(graph: Graph, operator: Operator) -> set[Shared]:
    """Return what an operator shares with others, itself or inside its blocks."""
    return {found for inner in operator.walk() if (found := _shared(graph.source, inner.type))}


def draws(source: str, type_: str) -> bool:
    """Return whether operators of a type draw random numbers."""
    return _shared(source, type_) is Shared.GENERATOR


def require_known(graph: Graph, pure: Iterable[str]) -> None:
    """Raise `GraphError` for an operator that may do something that memplan does not know.

    The user knows that operators of the pure types compute their results, and do nothing else.
    """
    known = frozenset(pure)
    for operator in graph.walk():
        if operator.type not in known and not _is_known(graph.source, operator):
            label = operator.type if operator.type.isprintable() else quoted(operator.type)
            raise GraphError(
                f"operator {quoted(operator.name or operator.type)} of type "
                f"{quoted(operator.type)} may do more than compute its results; name the type as "
                f"pure (--pure {label}) if it does not"
            )


def _shared(source: str, type_: str) -> Shared | None:
    if source != "torch":
        return _SHARED.get(source, {}).get(type_)
    space, _, rest = type_.partition(".")
    if space in _WORLDS:
        return Shared.WORLD
    return _SHARED[source].get(rest.rstrip("_")) if space in ("aten", "memplan") else None


def _is_known(source: str, operator: Operator) -> bool:
    type_ = operator.type
    if type_ in (MOVE_OUT, MOVE_BACK):
        return True
    if source == "tflite":
        # The schema writes its own types in capital letters; a custom one has any name.
        return type_ in _TFLITE_PURE or (type_ == type_.upper() and type_ != "CUSTOM")
    if source == "onnx":
        return "." not in type_ or type_.startswith(_ONNX_DOMAINS)
    if source == "openvino":
        return "." not in type_  # types outside of the operation sets have their name before it
    if source == "torch":
        space, dot, _ = type_.partition(".")
        return not dot or space in _TORCH_SPACES | _WORLDS
    return True  # a graph that a user wrote says all that there is
