"""How many random cases the deep tests try."""

from __future__ import annotations

import os

__all__ = ["ALL", "rounds"]

ALL = os.environ.get("MEMPLAN_DEEP") == "1"


def rounds(usual: int, many: int) -> int:
    """Return the usual number, or with `MEMPLAN_DEEP=1` the many that look for what is rare."""
    return many if ALL else usual
