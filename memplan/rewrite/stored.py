"""Puts a program in an order that was found before, after the referee has checked the order."""

from __future__ import annotations

from dataclasses import replace

from memplan.errors import FormatError, GraphError
from memplan.referee import verify_order
from memplan.rewrite.columns import order_problem
from memplan.rewrite.order import Reordered
from memplan.sources import Loaded, lay_out_again, of_graph

__all__ = ["put_in_order", "require_stored"]


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
    GraphError
        If it is no order of this program's operators: of another program, or with one twice.
    PlanError
        If an operator would run before what it waits for.
    """
    if loaded.graph is None:
        raise GraphError("the plan is in another order of operators, and this file has none")
    given = lay_out_again(loaded, in_place=False)
    assert given.layout is not None
    graph = given.layout.graph
    if not isinstance(order, (list, tuple)) or sorted(map(repr, order)) != sorted(
        map(repr, range(len(graph.operators)))
    ):
        raise GraphError(
            f"the order is not one of the {len(graph.operators)} operators of the file"
        )
    verify_order(order_problem(given.layout), order)
    moved = replace(
        graph,
        operators=tuple(graph.operators[at] for at in order),
        tensors=tuple(replace(tensor, pin=None) for tensor in graph.tensors),
    )
    new = of_graph(moved, figures=loaded.figures, notes=loaded.notes)
    problem = new.problem.with_capacity(loaded.problem.capacity)
    return replace(new, source=loaded.source, problem=problem)


def require_stored(given: Loaded, found: Reordered, path: str) -> None:
    """Check that the order of the outermost operators alone gives the program that was found.

    Raises
    ------
    FormatError
        If it does not, as where operators inside of branches or loops move too.
    """
    stored = lay_out_again(put_in_order(given, found.order), in_place=found.loaded.in_place)
    if stored.problem.fingerprint != found.loaded.problem.fingerprint:
        raise FormatError(
            path,
            "operators inside of branches or loops move too, which neither a plan nor a header "
            "can say: leave out --order",
        )
