"""What the operators of OpenVINO do beside making their results."""

from __future__ import annotations

from memplan.programs.sources.dialects import Dialect, Shared

__all__ = ["DIALECT"]

_SHARED = {
    **dict.fromkeys(("Multinomial", "RandomUniform"), Shared.GENERATOR),
    **dict.fromkeys(("Assign", "ReadValue"), Shared.WORLD),
}

# Types outside of the operation sets have their name before them.
DIALECT = Dialect(_SHARED.get, lambda type_: "." not in type_)
