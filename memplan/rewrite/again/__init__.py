"""Recomputation: operators run again, so that their results need not be kept."""

from memplan.rewrite.again.costs import Costs
from memplan.rewrite.again.emitted import Emitted
from memplan.rewrite.again.search import (
    Limits,
    NoRunsError,
    Recomputed,
    recompute,
    verify_recompute,
)

__all__ = [
    "Costs",
    "Emitted",
    "Limits",
    "NoRunsError",
    "Recomputed",
    "recompute",
    "verify_recompute",
]
