"""Finds a best order of which a plan needs no more than its load."""

from __future__ import annotations

import os
from typing import Any

from memplan.graph import Graph
from memplan.rewrite.order import Reordered, reorder
from memplan.solvers import solve
from memplan.sources import Loaded

__all__ = ["reorder_to_plan"]

_NODES = 20_000  # of a trial; most plans take none


def reorder_to_plan(model: str | os.PathLike[str] | Graph | Loaded, **options: Any) -> Reordered:
    """Find the order with the least load, as `reorder` does, and look for a plan of it.

    Orders near the given one have more odd gaps in a few large training steps, and their plans need
    more than the load. If a short search finds no plan at the load, the order before it was brought
    near to the given one is tried; it is taken if that has such a plan.

    Parameters
    ----------
    model
        See `reorder`.
    options
        All other arguments of `reorder`, except `without`.

    Raises
    ------
    GraphError, MemplanError
        As `reorder`.
    """
    found = reorder(model, **options)
    if not found.moved or found.interrupted or _has_plan(found):
        return found
    other = reorder(model, without=("tidying",), **options)
    return other if other.peak <= found.peak and _has_plan(other) else found


def _has_plan(found: Reordered) -> bool:
    """Return whether a short search finds a plan that needs no more than the load."""
    problem = found.loaded.problem
    return solve(problem, objective="min_peak", nodes=_NODES).peak == problem.max_load
