"""Which plan a model gets, and which of its layouts somebody's plan is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memplan import solvers
from memplan.errors import PlanError
from memplan.graph import Graph, Layout, lay_out
from memplan.plan import Plan
from memplan.sources.tflite.graph import graph_of
from memplan.sources.tflite.model import Model
from memplan.verify import verify

__all__ = ["best", "layout_of", "offsets_of"]


def best(
    model: Model, *, in_place: bool, overwrite_input: bool, timeout: float | None
) -> tuple[Layout, Plan]:
    """Return the better of the plans with and without in-place choices.

    What shares memory cannot be placed apart, so neither is always the better one; where they are
    equal, it is the one that writes over nothing.
    """
    graph = graph_of(replace(model, offsets=()))
    layouts = [lay_out(graph)]
    if in_place:
        layouts.append(lay_out(graph if overwrite_input else _inputs_kept(graph), in_place=True))
    plans = [(layout, _solved(layout, timeout)) for layout in layouts]
    return min(plans, key=lambda pair: pair[1].peak or 0)


def layout_of(model: Model, plan: Plan) -> Layout:
    """Return the layout that a plan is for.

    Raises
    ------
    PlanError
        What `verify` says, if it is for none of them.
    """
    layouts = list(_layouts(model))
    for layout in layouts:
        if plan.fingerprint in (None, layout.problem.fingerprint) and _fits(layout, plan):
            return layout
    ids = set(plan.ids)
    nearest = min(layouts, key=lambda layout: len(ids.symmetric_difference(layout.problem.ids)))
    try:
        verify(nearest.problem, plan)
    except PlanError as error:
        raise PlanError(f"this is no plan of {model.name}: {error}") from None
    return nearest


def offsets_of(model: Model, layout: Layout, plan: Plan) -> list[int]:
    """Return by tensor of the file where the plan puts it; -1 where that is left to TFLM.

    Left to it are constants, state that outlives a run, kernel scratch, and what nobody uses.
    """
    offsets = [-1] * model.first[-1]
    for row in layout.rows:
        storage = layout.storages[row]
        base = plan.offset(storage.name)
        for tensor, inside in zip(storage.tensors, storage.offsets, strict=True):
            if tensor < len(offsets):  # behind them are scratch and copies
                offsets[tensor] = base + inside
    return offsets


def _solved(layout: Layout, timeout: float | None) -> Plan:
    plan = solvers.solve(layout.problem, timeout=timeout)
    verify(layout.problem, plan)
    return plan


def _layouts(model: Model) -> Iterator[Layout]:
    """Yield the layouts that a plan may be for, the simplest first."""
    graph = graph_of(replace(model, offsets=()))
    yield lay_out(graph)
    yield lay_out(_inputs_kept(graph), in_place=True)
    yield lay_out(graph, in_place=True)
    if model.offsets:  # a plan that keeps those of the file
        pinned = graph_of(model)
        yield lay_out(pinned)
        yield lay_out(pinned, in_place=True)


def _inputs_kept(graph: Graph) -> Graph:
    """Return a graph that does not write over its inputs."""
    given = set(graph.inputs)

    def kept(pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple(pair for pair in pairs if pair[0] not in given)

    steps = tuple(replace(step, in_place=kept(step.in_place)) for step in graph.operators)
    return replace(graph, operators=steps)


def _fits(layout: Layout, plan: Plan) -> bool:
    try:
        verify(layout.problem, plan)
    except PlanError:
        return False
    return True
