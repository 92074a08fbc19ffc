"""What the operators of PyTorch do beside making their results.

Types of the tables are without "aten." and without the underscore at the end.
"""

from __future__ import annotations

from memplan.programs.sources.dialects import Dialect, Shared, list_shared

__all__ = ["DIALECT"]

_SHARED = list_shared(
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
)
# Namespaces whose operators all talk to other processes, or to the user.
_WORLDS = frozenset({"_c10d_functional", "_c10d_functional_autograd", "c10d", "c10d_functional"})
# Operators outside of these may do anything.
_SPACES = _WORLDS | {
    *("_operator", "aten", "math", "memplan", "prim", "prims", "quantized_decomposed"),
    "torchvision",
}


def _find_shared(type_: str) -> Shared | None:
    space, _, rest = type_.partition(".")
    if space in _WORLDS:
        return Shared.WORLD
    return _SHARED.get(rest.rstrip("_")) if space in ("aten", "memplan") else None


def _is_known(type_: str) -> bool:
    space, dot, _ = type_.partition(".")
    return not dot or space in _SPACES


DIALECT = Dialect(_find_shared, _is_known, declares_views=True)
