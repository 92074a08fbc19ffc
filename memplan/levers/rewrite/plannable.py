"""Finds a best order of which a plan needs no more than its load."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from memplan.levers.rewrite.order import Reordered, reorder
from memplan.programs.graph import Graph
from memplan.programs.sources import Loaded
from memplan.solvers import Interrupted
from memplan.solvers.refereed import find_plan
from memplan.solvers.stopping import is_stopped, note_interrupt, stoppable

__all__ = ["reorder_to_plan"]

_NODES = 20_000  # of a trial; most plans take none


@stoppable()
def reorder_to_plan(
    model: str | os.PathLike[str] | Graph | Loaded, *, timeout: float | None = None, **options: Any
) -> Reordered:
    """Find the order with the least load, as `reorder` does, and look for a plan of it.

    Orders near the given one have more odd gaps in a few large training steps, and their plans need
    more than the load. If a short search finds no plan at the load, the order before it was brought
    near to the given one is tried; it is taken if that has such a plan. The options are those of
    `reorder`, except `without`, and the timeout is in seconds, for all searches together.
    """
    begun = time.perf_counter()

    def left() -> float | None:
        return None if timeout is None else max(0.0, timeout - (time.perf_counter() - begun))

    found = reorder(model, timeout=timeout, **options)
    best = found
    try:
        if found.moved and not found.interrupted and left() != 0 and not _has_plan(found, left()):
            other = reorder(model, timeout=left(), without=("tidying",), **options)
            if other.peak <= found.peak and _has_plan(other, left()):
                best = other
    except Interrupted:
        note_interrupt()
    return replace(best, interrupted=best.interrupted or is_stopped())


def _has_plan(found: Reordered, timeout: float | None) -> bool:
    """Return whether a short search finds a plan that needs no more than the load."""
    problem = found.loaded.problem
    plan = find_plan(problem, objective="min_peak", timeout=timeout, nodes=_NODES)
    return plan.peak == problem.max_load
