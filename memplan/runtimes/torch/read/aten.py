"""Tables of what PyTorch's operators do with the memory of their inputs.

An exported file names operators, but does not say which results share the storage of an argument.
These tables do so for ATen; the tests compare them with the schemas of an installed torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memplan.runtimes.torch.read.values import Value, view_strides

__all__ = [
    "MASKS",
    "Call",
    "copies_storage",
    "has_scratch",
    "in_place_inputs",
    "is_metadata",
    "is_pointwise",
    "is_update",
    "operator_of",
    "shares",
    "split_words",
    "writes",
]


def split_words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# The results of these are always views of the first tensor.
_VIEWS = split_words(
    """
    _conj _fw_primal _neg_view _reshape_alias _unsafe_view adjoint alias as_strided broadcast_to
    chunk conj detach diagonal dsplit expand expand_as hsplit imag lift_fresh linalg_diagonal mH mT
    matrix_H moveaxis movedim narrow numpy_T permute positive real select slice split
    split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten unfold
    unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view view_as view_as_complex
    view_as_real vsplit
    """
)
# These return the first tensor itself if it needs no change, otherwise a copy. `resolve_conj` and
# `resolve_neg` are not here, as a file does not say whether there is anything to resolve. Then a
# copy is the safe assumption: its memory is enough for either case.
_SAME = split_words(
    """
    _autocast_to_full_precision _autocast_to_reduced_precision contiguous cpu cuda pin_memory to
    type_as
    """
)
# These return a view if the strides allow it, otherwise a copy.
_RESHAPES = split_words("atleast_1d atleast_2d atleast_3d flatten ravel reshape reshape_as")
# These return the first tensor itself unless they drop elements.
_DROPOUTS = split_words("alpha_dropout dropout feature_alpha_dropout feature_dropout")
# Result i is a view of tensor i.
_EACH = split_words("broadcast_tensors meshgrid")

# Element i of the result needs element i of the inputs, and nothing after it.
_POINTWISE = split_words(
    """
    _conj_physical abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
    clamp_max clamp_min clip conj_physical copysign cos cosh deg2rad digamma div elu elu_backward
    erf erfc erfinv exp exp2 expm1 float_power floor fmax fmin fmod frac gcd gelu gelu_backward
    hardshrink hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh
    hardtanh_backward heaviside hypot i0 igamma igammac lcm ldexp leaky_relu leaky_relu_backward
    lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor logit logit_backward masked_fill maximum minimum mish mul nan_to_num
    native_dropout_backward neg nextafter polygamma pow rad2deg reciprocal relu relu6 remainder
    round rsqrt rsub selu sgn sigmoid sigmoid_backward sign silu silu_backward sin sinc sinh
    softplus softplus_backward softshrink special_entr special_erfcx special_i0e special_i1
    special_i1e special_log_ndtr special_ndtri special_xlog1py special_zeta sqrt square sub tan
    tanh tanh_backward threshold threshold_backward true_divide trunc where xlogy
    """
)
# The same, but of these no input is written over: their results have another type, or are copies.
_ELEMENTS = split_words(
    """
    __lshift__ __rshift__ __xor__ clone eq ge gt isfinite isinf isnan isneginf isposinf le lt
    mvlgamma ne signbit special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0
    special_bessel_y1
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he
    special_laguerre_polynomial_l special_legendre_polynomial_p special_modified_bessel_i0
    special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1
    special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
    special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
    special_spherical_bessel_j0
    """
)
_OF_TWO = ("aten.max.other", "aten.min.other")  # with other arguments, these reduce
# The result is the first tensor with some elements replaced.
_UPDATES = split_words(
    """
    as_strided_scatter diagonal_scatter index_add index_copy index_fill index_put scatter
    scatter_add select_scatter slice_scatter
    """
)
# These copy the whole storage that the first tensor is a view of, and write into the copy
# (`clone_preserve_strides`).
_STORAGES = split_words("as_strided_scatter copy diagonal_scatter select_scatter slice_scatter")
# These read sizes and no elements, so they do not keep the memory of their inputs in use.
_METADATA = split_words(
    """
    _assert_scalar _assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size
    sym_numel sym_size sym_storage_offset sym_stride
    """
)
# The kernels of these may allocate scratch memory, or call other operators, and the program shows
# neither. `memplan.runtimes.torch.measure.run` found which operators allocate
# more than their results.
_SCRATCH = (
    *("conv", "scaled_dot_product", "_scaled_dot_product", "lstm", "gru", "rnn", "linalg_", "fft_"),
    *(
        "layer_norm",
        "group_norm",
        "batch_norm",
        "instance_norm",
        "rms_norm",
        "max_pool",
        "upsample",
    ),
    *("adaptive_", "im2col", "unfold", "cross_entropy_loss", "mse_loss", "nll_loss", "cosine_"),
    *("embedding_bag", "sort", "repeat", "multi_head", "_native_multi_head", "cdist", "einsum"),
)
_PRODUCTS = split_words("linear matmul")
# A backward operator makes only the gradients that its argument of this name asks for, though its
# fake kernel may make all of them.
MASKS = split_words("grad_input_mask output_mask")
_KNOWN = ("aten", "autocast", "higher_order", "_operator", "prims")


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its arguments."""

    target: str  # the full name, such as "aten.slice.Tensor"
    tensors: tuple[Value, ...] = ()  # every tensor argument, in order
    # Arguments that are numbers, by the names of the operator's schema.
    flags: Mapping[str, float] = field(default_factory=dict)
    # Arguments that are one tensor, by name.
    named: Mapping[str, Value] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """The name without namespace and overload; empty if it is not ATen's."""
        return operator_of(self.target)


def operator_of(target: str) -> str:
    """Return the name of an operator without namespace and overload; empty if it is not ATen's."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "aten" else ""


def shares(call: Call, output: Value, position: int) -> str | None:
    """Return the argument that a result shares its storage with, or `None` if it has its own."""
    name = call.operator
    if not name or not call.tensors:
        return None
    first = call.tensors[0]
    if "out" in call.named:
        return call.named["out"].name
    if name in _VIEWS or _is_in_place(name):
        return first.name
    if name in _EACH:
        return call.tensors[position].name if position < len(call.tensors) else None
    if name in _SAME:
        return first.name if output.is_same(first) and not call.flags.get("copy") else None
    if name in _DROPOUTS:
        return None if call.flags.get("train") and call.flags.get("p", 0) else first.name
    if name in _RESHAPES and output.dtype == first.dtype and output.offset == first.offset:
        steps = view_strides(first.sizes, first.strides, output.sizes)
        if steps is not None and output.layout == _with(output, steps).layout:
            return first.name
    return None


def writes(call: Call) -> tuple[str, ...]:
    """Return the names of the arguments that an operator changes."""
    name = call.operator
    found = [call.named["out"].name] if "out" in call.named else []
    if _is_in_place(name) and call.tensors:
        found.append(call.tensors[0].name)
    if "batch_norm" in name and call.flags.get("training", call.flags.get("train", 0)):
        statistics = ("running_mean", "running_var")
        found += [call.named[key].name for key in statistics if key in call.named]
    return tuple(found)


def in_place_inputs(target: str, inputs: tuple[Value, ...], output: Value) -> tuple[str, ...]:
    """Return the inputs over which an operator can write its result without errors.

    The caller must check that an input is not needed any more, and has a storage of its own.
    """
    name = operator_of(target)
    if name in _UPDATES:
        inputs = inputs[:1]
    elif name not in _POINTWISE:
        return ()
    return tuple(value.name for value in inputs if value.layout == output.layout)


def is_pointwise(target: str) -> bool:
    """Whether element i of the result needs no elements of the inputs but i."""
    name = operator_of(target)
    return name in _POINTWISE or name in _ELEMENTS or target in _OF_TWO


def copies_storage(target: str, first: Value, output: Value) -> bool:
    """Whether an operator copies the whole storage that its first input is a view of."""
    if operator_of(target) not in _STORAGES or output.strides != first.strides:
        return False
    return all(step or size == 1 for size, step in zip(first.sizes, first.strides, strict=True))


def is_update(target: str) -> bool:
    """Whether an operator reads its other inputs while it changes the first."""
    return operator_of(target) in _UPDATES


def is_metadata(target: str) -> bool:
    """Whether an operator does not read the elements of its inputs."""
    return operator_of(target) in _METADATA


def has_scratch(target: str, inputs: Sequence[Value]) -> bool:
    """Whether an operator's kernel may take memory that the program does not show.

    Products first copy inputs that are not dense, and element-wise operators convert inputs of
    another floating-point type to that of the result.
    """
    name = operator_of(target)
    if name in _PRODUCTS and not all(value.is_dense for value in inputs[:1]):
        return True
    if name in _POINTWISE and len({v.dtype for v in inputs if "float" in v.dtype}) > 1:
        return True
    return name.startswith(_SCRATCH) or target.split(".")[0] not in _KNOWN


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _with(value: Value, strides: tuple[int, ...]) -> Value:
    return Value(value.name, value.dtype, value.itemsize, value.sizes, strides, value.offset)
