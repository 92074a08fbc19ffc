"""What the operators of TFLite do beside making their results."""

from __future__ import annotations

from memplan.sources.dialects import Dialect, list_shared

__all__ = ["DIALECT"]

_SHARED = list_shared(
    "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL",
    "VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE HASHTABLE HASHTABLE_FIND "
    "HASHTABLE_IMPORT HASHTABLE_SIZE",
)
# Custom operators that are known to compute their results and nothing else.
_PURE = frozenset(
    {
        *("TFLite_Detection_PostProcess", "Convolution2DTransposeBias", "MaxPoolingWithArgmax2D"),
        *("MaxUnpooling2D", "Landmarks2TransformMatrix", "TransformTensorBilinear"),
        *("TransformLandmarks", "SignalWindow", "SignalRfft", "SignalEnergy", "SignalFilterBank"),
    }
)


def _is_known(type_: str) -> bool:
    # The schema writes its own types in capital letters; a custom one has any name.
    return type_ in _PURE or (type_ == type_.upper() and type_ != "CUSTOM")


DIALECT = Dialect(_SHARED.get, _is_known, replaces_state=True, copies_blocks=True)
