"""The operators of PyTorch: all that memplan knows of each, in one row.

An exported file names operators, but does not say which results share the storage of an argument,
nor what kernels do. These rows do so for ATen; tests compare them with the schemas of an installed
torch. Rules are functions of the files of `memplan/runtimes/torch/read` that `Row` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memplan.programs.sources.dialects import Dialect, Shared

__all__ = ["DIALECT", "TABLE", "Row", "find_row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of an operator; texts are words or names of rules, if there is one."""

    # Which results share the storage of an argument: always that of the first tensor ("view"), or
    # unless it needs a change ("same"), elements are dropped ("dropout"), or its strides forbid it
    # ("reshape"); or result i that of tensor i ("each").
    shares: str = ""
    # For the rows that a part of its result needs (`pictures`); "each" says that element i of the
    # result needs element i of the inputs, and nothing after it.
    rows: str = ""
    # Over which inputs it may write: "any", or the "first", of which it replaces some elements.
    in_place: str = ""
    # Whether it copies the whole storage that the first tensor is a view of, and writes into the
    # copy (`clone_preserve_strides`).
    copies_storage: bool = False
    is_metadata: bool = False  # it reads sizes and no elements, so no input stays in use for it
    packs: bool = False  # it first copies an input that is not dense
    work: str = ""  # for its multiplications (`pictures`)
    long: int = 0  # the input that has rows as long as the sums of a product
    # In a region of autocast it runs in the region's own type ("reduced"), or in float32 or the
    # widest type of its inputs ("plain", "plain on cpu", "plain on cuda").
    autocast: str = ""
    shared: Shared | None = None  # what it shares with other operators, beside tensors


def _alike(names: str, row: Row) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


# By name, without namespace; with the overload where others of the name do something else.
# `resolve_conj` and `resolve_neg` share nothing here, as a file does not say whether there is
# anything to resolve: the memory of a copy is enough for either case. Recurrent layers have no
# kernel of their own, but the operators that they consist of cast. `sum`, `softmax` and the like
# are not "plain on cuda", as their kernels there read one type and write another without a cast.
TABLE: Final[dict[str, Row]] = {
    **_alike("broadcast_tensors meshgrid", Row(shares="each")),
    **_alike(
        "atleast_1d atleast_2d atleast_3d flatten ravel reshape reshape_as",
        Row(shares="reshape"),
    ),
    **_alike(
        """
        _autocast_to_full_precision _autocast_to_reduced_precision contiguous cpu cuda pin_memory to
        type_as
        """,
        Row(shares="same"),
    ),
    **_alike(
        """
        _conj _fw_primal _neg_view _reshape_alias _unsafe_view adjoint alias as_strided broadcast_to
        chunk conj detach diagonal dsplit expand expand_as hsplit imag lift_fresh linalg_diagonal mH
        mT matrix_H moveaxis movedim narrow numpy_T permute positive real select slice split
        split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten unfold
        unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view view_as view_as_real vsplit
        """,
        Row(shares="view"),
    ),
    "view_as_complex": Row(shares="view", autocast="plain on cpu"),
    **_alike(
        "alpha_dropout dropout feature_alpha_dropout feature_dropout",
        Row(shares="dropout", shared=Shared.GENERATOR),
    ),
    **_alike(
        """
        __lshift__ __rshift__ __xor__ clone eq ge gt isfinite isinf isnan isneginf isposinf le lt
        max.other min.other mvlgamma ne signbit special_airy_ai special_bessel_j0 special_bessel_j1
        special_bessel_y0 special_bessel_y1 special_chebyshev_polynomial_t
        special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
        special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l
        special_legendre_polynomial_p special_modified_bessel_i0 special_modified_bessel_i1
        special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
        special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
        special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
        special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0
        """,
        Row(rows="each"),
    ),
    **_alike(
        "_native_batch_norm_legit_no_training batch_norm native_batch_norm",
        Row(rows="normalize"),
    ),
    **_alike("constant_pad_nd pad", Row(rows="pad")),
    **_alike("avg_pool2d max_pool2d max_pool2d_with_indices", Row(rows="pool")),
    **_alike("_log_softmax _softmax log_softmax softmax", Row(rows="softmax")),
    "pixel_unshuffle": Row(rows="to_depth"),
    "pixel_shuffle": Row(rows="to_space"),
    **_alike(
        """
        _conj_physical abs acosh add angle asinh atan atanh bitwise_and bitwise_left_shift
        bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min
        clip conj_physical copysign cos deg2rad digamma div elu elu_backward erf erfc exp2
        float_power floor fmax fmin fmod frac gcd gelu gelu_backward hardshrink hardsigmoid
        hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward heaviside hypot
        i0 igamma igammac lcm ldexp leaky_relu leaky_relu_backward lerp lgamma logaddexp logaddexp2
        logical_and logical_not logical_or logical_xor logit logit_backward masked_fill maximum
        minimum mish mul nan_to_num native_dropout_backward neg nextafter polygamma rad2deg relu
        relu6 remainder round rsub selu sgn sigmoid sigmoid_backward sign silu silu_backward sin
        sinc softplus_backward softshrink special_entr special_erfcx special_i0e special_i1
        special_i1e special_log_ndtr special_ndtri special_xlog1py special_zeta sqrt square sub tanh
        tanh_backward threshold threshold_backward true_divide trunc where xlogy
        """,
        Row(rows="each", in_place="any"),
    ),
    **_alike(
        """
        acos addcdiv addcmul asin atan2 cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal
        rsqrt sinh softplus tan
        """,
        Row(rows="each", in_place="any", autocast="plain on cuda"),
    ),
    **_alike("conv2d convolution", Row(rows="convolve", work="convolution", autocast="reduced")),
    "conv_transpose2d": Row(rows="transpose", work="convolution", autocast="reduced"),
    "cat": Row(rows="join", autocast="plain on cpu"),
    **_alike(
        "upsample_bilinear2d upsample_nearest2d",
        Row(rows="resize", autocast="plain on cuda"),
    ),
    **_alike("index_add index_fill scatter", Row(in_place="first")),
    **_alike(
        "as_strided_scatter diagonal_scatter select_scatter slice_scatter",
        Row(in_place="first", copies_storage=True),
    ),
    "index_copy": Row(in_place="first", autocast="plain on cpu"),
    **_alike("index_put scatter_add", Row(in_place="first", autocast="plain on cuda")),
    "copy": Row(copies_storage=True),
    **_alike("sym_numel sym_size sym_storage_offset sym_stride", Row(is_metadata=True)),
    **_alike(
        "_assert_scalar _assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size",
        Row(is_metadata=True, shared=Shared.WORLD),
    ),
    **_alike("linear matmul", Row(packs=True, work="product", autocast="reduced")),
    **_alike("addmm baddbmm", Row(work="product", long=1, autocast="reduced")),
    **_alike(
        "conv1d conv3d conv_transpose1d conv_transpose3d",
        Row(work="convolution", autocast="reduced"),
    ),
    **_alike("bmm mm", Row(work="product", autocast="reduced")),
    **_alike(
        """
        binary_cross_entropy binary_cross_entropy_with_logits cdist cosine_embedding_loss
        grid_sampler hinge_embedding_loss huber_loss kl_div l1_loss linalg_matrix_sqrth
        margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d
        poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
        """,
        Row(autocast="plain"),
    ),
    **_alike(
        """
        _grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d
        avg_pool3d cholesky cholesky_inverse cholesky_solve cross_entropy_loss ctc_loss
        fake_quantize_per_tensor_affine fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2
        fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn
        fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler_2d grid_sampler_3d inverse
        linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals
        linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq
        linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv
        linalg_tensorsolve lu_solve max_pool3d max_unpool2d max_unpool3d
        multilabel_margin_loss_forward nanquantile orgqr ormqr pinverse polar prod qr quantile
        reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d
        stack stft svd trace triangular_solve
        """,
        Row(autocast="plain on cpu"),
    ),
    **_alike(
        """
        _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d
        _upsample_nearest_exact2d _upsample_nearest_exact3d bilinear cosine_similarity cross
        cudnn_convolution cudnn_convolution_transpose dist dot frobenius_norm group_norm layer_norm
        logsumexp native_layer_norm nuclear_norm pdist renorm rms_norm tensordot upsample_bicubic2d
        upsample_linear1d upsample_nearest1d upsample_nearest3d upsample_trilinear3d vdot
        """,
        Row(autocast="plain on cuda"),
    ),
    **_alike(
        """
        _addmm_activation _convolution _cudnn_rnn _native_multi_head_attention _thnn_fused_gru_cell
        _thnn_fused_lstm_cell addbmm addmv addr chain_matmul conv_tbc einsum gru gru_cell inner
        linalg_multi_dot linalg_vecdot lstm lstm_cell mkldnn_rnn_layer mv prelu rnn_relu
        rnn_relu_cell rnn_tanh rnn_tanh_cell
        """,
        Row(autocast="reduced"),
    ),
    **_alike(
        "_scaled_dot_product_flash_attention scaled_dot_product_attention",
        Row(autocast="reduced", shared=Shared.GENERATOR),
    ),
    **_alike(
        """
        _efficient_attention_forward _fused_dropout _scaled_dot_product_attention_math
        _scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention
        _scaled_dot_product_flash_attention_for_cpu bernoulli binomial cauchy exponential geometric
        log_normal multinomial native_dropout normal normal_functional poisson rand rand_like
        randint randint_like randn randn_like random randperm read_generator rrelu rrelu_with_noise
        rrelu_with_noise_functional uniform write_generator
        """,
        Row(shared=Shared.GENERATOR),
    ),
    **_alike(
        """
        _assert_async _functional_assert_async _functional_assert_scalar
        _functional_sym_constrain_range _functional_sym_constrain_range_for_size _print
        """,
        Row(shared=Shared.WORLD),
    ),
}
_UNKNOWN: Final = Row()
# Namespaces whose operators all talk to other processes, or to the user.
_WORLDS: Final = {"_c10d_functional", "_c10d_functional_autograd", "c10d", "c10d_functional"}
# Operators outside of these may do anything.
_SPACES: Final = _WORLDS | {
    *("_operator", "aten", "math", "memplan", "prim", "prims", "quantized_decomposed"),
    "torchvision",
}


def find_row(target: str) -> Row:
    """Return what is known of an operator by its full name, such as "aten.slice.Tensor"."""
    space, _, rest = target.partition(".")
    if space != "aten":
        return _UNKNOWN
    return TABLE.get(rest) or TABLE.get(rest.partition(".")[0], _UNKNOWN)


def _find_shared(type_: str) -> Shared | None:
    space, _, rest = type_.partition(".")
    if space in _WORLDS:
        return Shared.WORLD
    known = space in ("aten", "memplan")
    return TABLE.get(rest.rstrip("_"), _UNKNOWN).shared if known else None


def _is_known(type_: str) -> bool:
    space, dot, _ = type_.partition(".")
    return not dot or space in _SPACES


DIALECT: Final = Dialect(_find_shared, _is_known, declares_views=True)
