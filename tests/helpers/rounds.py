"""How many random cases the deep tests try."""

from __future__ import annotations

import os

__all__ = ["rounds"]


def rounds(usual: int, many: int) -> int:
    """Return the usual number, or with `MEMPLAN_DEEP=1` the many that look for what is rare."""
    return many if os.environ.get("MEMPLAN_DEEP") == "1" else usual
