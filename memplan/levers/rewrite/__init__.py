"""Rewrites: a program becomes another one that computes the same in less memory.

A rewrite takes a `Loaded` and returns one, so layouts, plans, views and targets work as before.
"""

from memplan.levers.rewrite.again import Recomputed, recompute, verify_recompute
from memplan.levers.rewrite.floor import find_floor
from memplan.levers.rewrite.order import Reordered, reorder, verify_order
from memplan.levers.rewrite.plannable import reorder_to_plan
from memplan.levers.rewrite.stored import put_in_order, require_stored

__all__ = [
    "Recomputed",
    "Reordered",
    "find_floor",
    "put_in_order",
    "recompute",
    "reorder",
    "reorder_to_plan",
    "require_stored",
    "verify_order",
    "verify_recompute",
]
