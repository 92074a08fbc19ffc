"""Recomputation: operators run again, so that their results need not be kept."""

from memplan.levers.rewrite.again.columns import Again, again_of
from memplan.levers.rewrite.again.costs import Costs, estimate_cost
from memplan.levers.rewrite.again.emitted import Emitted
from memplan.levers.rewrite.again.search import (
    Limits,
    NoRunsError,
    Recomputed,
    recompute,
    verify_recompute,
)

__all__ = [
    "Again",
    "Costs",
    "Emitted",
    "Limits",
    "NoRunsError",
    "Recomputed",
    "again_of",
    "estimate_cost",
    "recompute",
    "verify_recompute",
]
