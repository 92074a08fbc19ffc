"""Puts a program in an order that was found before, after the referee has checked the order."""

from __future__ import annotations

from dataclasses import replace

from memplan.errors import PlanError
from memplan.referee import verify_order
from memplan.rewrite.columns import order_problem
from memplan.sources import Loaded, lay_out_again, of_graph

__all__ = ["put_in_order"]


def put_in_order(loaded: Loaded, order: object) -> Loaded:
    """Return a program whose outermost operators run in this order, without pins of its file.

    Parameters
    ----------
    loaded
        The program in its given order.
    order
        By place in the new order: the index of the operator, as in `Reordered.order`.

    Raises
    ------
    PlanError
        If it is no order of this program, or if an operator would run before what it waits for.
    """
    if loaded.graph is None:
        raise PlanError("the plan is in another order of operators, and this file has none")
    given = lay_out_again(loaded, in_place=False)
    assert given.layout is not None
    graph = given.layout.graph
    if not isinstance(order, (list, tuple)) or sorted(map(repr, order)) != sorted(
        map(repr, range(len(graph.operators)))
    ):
        raise PlanError(f"the order is not one of the {len(graph.operators)} operators of the file")
    verify_order(order_problem(given.layout), order)
    moved = replace(
        graph,
        operators=tuple(graph.operators[at] for at in order),
        tensors=tuple(replace(tensor, pin=None) for tensor in graph.tensors),
    )
    new = of_graph(moved, figures=loaded.figures, notes=loaded.notes)
    problem = new.problem.with_capacity(loaded.problem.capacity)
    return replace(new, source=loaded.source, problem=problem)
