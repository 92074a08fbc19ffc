"""What the operators of OpenVINO do beside making their results."""

from __future__ import annotations

from memplan.programs.sources.dialects import Dialect, list_shared

__all__ = ["DIALECT"]

_SHARED = list_shared("Multinomial RandomUniform", "Assign ReadValue")

# Types outside of the operation sets have their name before them.
DIALECT = Dialect(_SHARED.get, lambda type_: "." not in type_)
