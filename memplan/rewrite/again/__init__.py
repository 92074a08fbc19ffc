"""Recomputation: operators run again, so that their results need not be kept."""

from memplan.rewrite.again.search import Recomputed, recompute, verify_recompute

__all__ = ["Recomputed", "recompute", "verify_recompute"]
