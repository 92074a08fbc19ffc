"""Rewrites a program by the levers that are allowed, and plans it, for the runtime that it is for.

`arrange` is the one way from a program to another one that needs less: it shares out time and work,
and keeps the best of what the levers make. A `Writer` is what it knows of a runtime. `tradeoff`
aims it at one size after the other.
"""

from memplan.answer import Step
from memplan.levers.pipeline.arranged import Arranged, Draft
from memplan.levers.pipeline.arranging import arrange
from memplan.levers.pipeline.tradeoffs import Tradeoff, TradeoffPoint, tradeoff
from memplan.levers.writers import Comparison, Plain, Variant, Writer, Written, graph_of

__all__ = [
    "Arranged",
    "Comparison",
    "Draft",
    "Plain",
    "Step",
    "Tradeoff",
    "TradeoffPoint",
    "Variant",
    "Writer",
    "Written",
    "arrange",
    "graph_of",
    "tradeoff",
]
