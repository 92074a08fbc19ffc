"""Latency of networks in PyTorch, eager and through a slab, under several allocators.

    from memplan_lab.bench import latency

    rows = latency.run(["resnet18"], sizes=[128], allocators=[latency.parse("glibc")])
    for line in latency.compare(rows):
        print(line.allocator, line.across.mean, line.across.worst)

This is chapter 4 of MemoMalloc (`run`), and chapter 2.2 (`contention`), on open tools.
"""

from memplan_lab.bench.latency import report
from memplan_lab.bench.latency.allocators import Allocator, parse
from memplan_lab.bench.latency.rows import Case, Outcome, Row, Timing
from memplan_lab.bench.latency.runner import run
from memplan_lab.bench.latency.summary import Comparison, Ratio, compare

__all__ = [
    "Allocator",
    "Case",
    "Comparison",
    "Outcome",
    "Ratio",
    "Row",
    "Timing",
    "compare",
    "parse",
    "report",
    "run",
]
