"""The tensors of a quantised network that have one byte for each element.

Quantisation is that of TensorFlow Lite: batch norms are folded into convolutions, and operators
which have a kernel for 8-bit integers use it. Others, such as layer norms, still work in 32 bits.
"""

from __future__ import annotations

from typing import Any

from memplan_lab.corpus.recording import Recording
from memplan_lab.extras import require

__all__ = ["bytes_in_int8", "fold_norms"]

torch = require("torch", extra="corpus")

_WITH_KERNEL = """
convolution addmm mm bmm baddbmm add sub mul rsub maximum minimum neg abs
relu relu_ hardtanh hardtanh_ clamp clamp_min hardswish hardswish_ hardsigmoid hardsigmoid_
leaky_relu leaky_relu_ elu elu_ sigmoid sigmoid_ tanh tanh_ silu silu_ gelu mish mish_
prelu _prelu_kernel _softmax _log_softmax sum mean amax
max_pool2d_with_indices avg_pool2d _adaptive_avg_pool2d adaptive_max_pool2d
upsample_nearest2d upsample_bilinear2d upsample_bicubic2d
cat stack constant_pad_nd reflection_pad2d clone copy_ index index_select gather embedding roll
flip repeat pixel_shuffle slice_scatter select_scatter
"""
_KERNELS = frozenset(f"aten.{name}" for name in _WITH_KERNEL.split())


def bytes_in_int8(recording: Recording) -> list[int]:
    """Return the bytes of every storage, of a run in 32 bits.

    Weights and inputs have one byte an element, as results of kernels for 8-bit integers do.
    """
    found = [_one_byte(one.bytes, one.dtype) for one in recording.storages]
    for step in recording.steps:
        if step.operator not in _KERNELS:
            for number in (*step.makes, *step.changes):
                found[number] = recording.storages[number].bytes
    return found


def _one_byte(bytes: int, dtype: Any) -> int:
    size: int = bytes // dtype.itemsize if dtype.is_floating_point else bytes
    return size


def fold_norms(module: Any) -> Any:
    """Replace the batch norms of a module, in place, by the activation that each may carry."""
    norm = torch.nn.modules.batchnorm._BatchNorm
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, norm):
                setattr(parent, name, getattr(child, "act", None) or torch.nn.Identity())
    return module
