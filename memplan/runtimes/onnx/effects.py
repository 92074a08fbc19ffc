"""What the operators of ONNX and onnxruntime do beside making their results."""

from __future__ import annotations

from memplan.programs.sources.dialects import Dialect, list_shared

__all__ = ["DIALECT"]

_SHARED = list_shared(
    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
    "com.microsoft.Sampling com.microsoft.BitmaskDropout com.microsoft.BiasDropout",
    "com.microsoft.NcclAllReduce com.microsoft.NcclAllGather com.microsoft.NcclReduceScatter "
    "com.microsoft.AllReduce com.microsoft.AllGather com.microsoft.AllToAll",
)
_DOMAINS = ("ai.onnx.", "com.microsoft.")


def _is_known(type_: str) -> bool:
    return "." not in type_ or type_.startswith(_DOMAINS)


DIALECT = Dialect(_SHARED.get, _is_known, random_in_training=frozenset({"Dropout"}))
