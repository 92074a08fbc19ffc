"""Latency of networks in PyTorch, eager and through a slab, under several allocators.

`memplan_lab.bench.experiments` measures it: `latency`, chapter 4 of MemoMalloc, and `contention`,
chapter 2.2, on open tools.
"""

from memplan_lab.bench.latency.rows import Case, Contention, Outcome, Row, Timing
from memplan_lab.bench.latency.summary import Comparison, Ratio, compare

__all__ = ["Case", "Comparison", "Contention", "Outcome", "Ratio", "Row", "Timing", "compare"]
