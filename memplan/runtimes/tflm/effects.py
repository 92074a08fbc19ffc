"""What the operators of TFLite do beside making their results."""

from __future__ import annotations

from memplan.programs.sources.dialects import Dialect
from memplan.runtimes.tflm.operators import find_row

__all__ = ["DIALECT"]

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


DIALECT = Dialect(
    lambda type_: find_row(type_).shared, _is_known, replaces_state=True, copies_blocks=True
)
