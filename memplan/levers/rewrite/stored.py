"""Puts a program in an order that was found before, or in one in which operators run again.

The referee checks the order first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memplan.base.errors import FormatError, GraphError
from memplan.levers.rewrite.again.columns import again_of
from memplan.levers.rewrite.again.emitted import emit
from memplan.levers.rewrite.columns import order_problem
from memplan.problem.columns import MAX_BYTES
from memplan.programs.graph import Graph, lay_out
from memplan.programs.sources import Loaded, lay_out_again, of_graph
from memplan.referee import verify_order, verify_recompute

__all__ = ["put_in_order", "require_stored"]

_ANY_RATES = (10**15, 10**15)  # what moves cost does not matter


def put_in_order(loaded: Loaded, order: object) -> Loaded:
    """Return a program whose outermost operators run in this order, without pins of its file.

    The order has by new place the index of the operator, as in `Reordered.order`; or, with some of
    them more than once and with moves, as in `Recomputed.runs`. It is refused with a `GraphError`
    if it is no order of this program's operators, and with a `PlanError` if an operator would run
    before what it waits for.
    """
    if loaded.graph is None:
        raise GraphError("the plan is in another order of operators, and this file has none")
    given = lay_out_again(loaded, in_place=False)
    assert given.layout is not None
    graph = given.layout.graph
    runs = order if isinstance(order, (list, tuple)) else ()
    count = len(graph.operators)
    place: dict[int, int] = {}  # by operator: how many others ran before it
    for at in runs:
        if type(at) is not int or at < count:
            place.setdefault(at if type(at) is int else -1, len(place))
    if sorted(place) != [*range(count)]:
        raise GraphError(f"the order is not one of the {count} operators of the file")
    verify_order(order_problem(given.layout), place)
    moved = replace(
        graph,
        operators=tuple(graph.operators[at] for at in place),
        tensors=tuple(replace(tensor, pin=None) for tensor in graph.tensors),
    )
    if len(runs) > len(place):
        moved = _run_again(moved, runs, tuple(place))
    new = of_graph(moved, figures=loaded.figures, notes=loaded.notes)
    problem = new.problem.with_capacity(loaded.problem.capacity)
    return replace(new, source=loaded.source, problem=problem)


def _run_again(graph: Graph, runs: Sequence[int], order: Sequence[int]) -> Graph:
    """Return a program with copies of the operators that run again, and with moves."""
    question = again_of(lay_out(graph), rates=_ANY_RATES)
    sequence = question.from_file(runs, order)
    verify_recompute(question.problem, sequence, MAX_BYTES)
    return emit(question, sequence).graph


def require_stored(given: Loaded, order: Sequence[int], found: Loaded, path: str) -> None:
    """Check that the order of the outermost operators alone gives the program that was found.

    Raises
    ------
    FormatError
        If it does not, as where operators inside of branches or loops move too.
    """
    stored = lay_out_again(put_in_order(given, order), in_place=found.in_place)
    if stored.problem.fingerprint != found.problem.fingerprint:
        raise FormatError(
            path,
            "operators inside of branches or loops move too, which neither a plan nor a header "
            "can say: leave out order and again",
        )
