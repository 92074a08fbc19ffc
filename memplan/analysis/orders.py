"""What other orders of operators and re-runs need: short searches beside other questions."""

from __future__ import annotations

from memplan.base.errors import MemplanError
from memplan.levers.rewrite import Recomputed, Reordered, recompute, reorder
from memplan.levers.rewrite.again import Limits, NoRunsError
from memplan.programs.sources import Loaded

__all__ = ["try_less", "try_orders"]

_STATES = 20_000  # so that a question beside others stays cheap
_RE_RUNS = 300  # states of the same for re-runs
_SECONDS = 2.0


def try_orders(loaded: Loaded, *, in_place: bool = False) -> Reordered | str:
    """Return the best order that a short search finds, or one sentence on why there is none."""
    try:
        return reorder(loaded, in_place=in_place, timeout=_SECONDS, states=_STATES)
    except MemplanError as error:
        return str(error)


def try_less(found: Reordered, peak: int) -> Recomputed | Limits:
    """Return the re-runs that a short search finds for a tenth less memory, or what is proved."""
    capacity = max(peak * 9 // 10, 1)
    try:
        return recompute(found, capacity, timeout=_SECONDS, states=_RE_RUNS)
    except NoRunsError as error:
        return error.limits
