"""Assigns a program whose operators may write over inputs: the better of its layouts counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memplan.base.errors import PlanError
from memplan.machine.memories import Assigned, Memory, assign
from memplan.programs.sources import Loaded
from memplan.solvers.planning import layouts
from memplan.solvers.stopping import stoppable

__all__ = ["assign_layouts"]


def assign_layouts(
    loaded: Loaded, memories: Sequence[Memory], *, in_place: bool, **asked: Any
) -> Assigned:
    """Assign each layout of a program (`solvers.planning.layouts`); return what costs least.

    What is refused, and how, is as in `memplan.machine.memories.assign` for the layout without
    writes over inputs.
    """
    found: list[Assigned] = []
    failed: list[PlanError] = []
    with stoppable() as stop:
        for layout in layouts(loaded, in_place=in_place):
            try:
                found.append(assign(layout, memories, **asked))
            except PlanError as error:
                failed.append(error)
            if stop.is_set and found:
                break
        if not found:
            raise failed[0]
    best = min(found, key=lambda each: each.traffic)
    return replace(best, interrupted=stop.is_set)
