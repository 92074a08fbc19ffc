"""Finds the order of operators in which the most memory that is live at one time is least."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from memplan import _core
from memplan.errors import GraphError
from memplan.graph import Graph
from memplan.plan import Status
from memplan.problem import OrderBound, OrderProblem
from memplan.rewrite.columns import order_problem
from memplan.solvers._limits import MAX_COUNT, check_seconds, check_whole
from memplan.sources import Loaded, lay_out_again, of_graph

__all__ = ["Reordered", "reorder"]


@dataclass(frozen=True)
class Reordered:
    """A program in another order of operators, and what any order needs at least.

    Attributes
    ----------
    given
        The program as it was, in its layout without in-place writes.
    loaded
        The program in the new order, with everything else as it was; its own layout. Pins of the
        file are left out, as they belong to the given order.
    order
        By place in the new order: the index of the operator in the given graph.
    given_peak, peak
        The load of the given and of the new order: the most bytes that are live at one time. With
        `in_place`, both are those of the layouts in which operators write over inputs.
    bound
        Proved: no order has a smaller load.
    status
        `optimal` if the load of the new order is the bound.
    in_place
        Whether operators may write over inputs that die.
    problem
        The question that was solved.
    certificate
        Why no order is better, or `None` if only the whole search shows it.
    moved
        The operators, by index in the given graph, that no longer run between the same others: the
        fewest whose removal leaves the same order.
    states
        States of the searches.
    seconds
        Wall time.
    """

    given: Loaded
    loaded: Loaded
    order: tuple[int, ...]
    given_peak: int
    peak: int
    bound: int
    status: Status
    in_place: bool
    problem: OrderProblem
    certificate: OrderBound | None
    moved: tuple[int, ...]
    states: int = 0
    seconds: float = 0.0

    @property
    def graph(self) -> Graph:
        """The graph in the new order."""
        assert self.loaded.graph is not None
        return self.loaded.graph


def reorder(
    model: Graph | Loaded,
    *,
    in_place: bool = False,
    timeout: float | None = None,
    states: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    pure: Iterable[str] = (),
    without: Iterable[str] = (),
) -> Reordered:
    """Find the order of a program's operators with the least load, and a bound on every order."""
    begun = time.perf_counter()
    loaded = of_graph(model) if isinstance(model, Graph) else model
    if loaded.graph is None:
        raise GraphError("an order needs operators, and this is a problem without a graph")
    given = lay_out_again(loaded, in_place=False)
    assert given.layout is not None
    graph = given.layout.graph
    problem = order_problem(given.layout)
    if not in_place:
        problem = replace(problem, in_place=problem.in_place[:0])
    found = _core.best_order(
        _as_core(problem),
        check_seconds(timeout),
        None if states is None else check_whole(states, "states", 1, MAX_COUNT),
        threads or 0,
        seed,
        list(without),
    )
    order = tuple(found.order)
    tensors = tuple(replace(tensor, pin=None) for tensor in graph.tensors)
    operators = tuple(graph.operators[at] for at in order)
    new = of_graph(
        replace(graph, operators=operators, tensors=tensors),
        in_place=in_place,
        figures=loaded.figures,
        notes=loaded.notes,
    )
    peak = _load(new)
    certificate = None
    if found.operator >= 0:
        flow = np.array(found.flow, dtype=np.int64).reshape(-1, 3)
        certificate = OrderBound(found.operator, tuple(found.done), flow)
    return Reordered(
        given,
        new,
        order,
        _load(lay_out_again(loaded, in_place=in_place)),
        peak,
        found.bound,
        Status.OPTIMAL if peak == found.bound else Status.FEASIBLE,
        in_place,
        problem,
        certificate,
        _find_moved(order),
        found.states,
        time.perf_counter() - begun,
    )


def _as_core(problem: OrderProblem) -> _core.OrderProblem:
    return _core.OrderProblem(
        problem.workspace,
        np.ascontiguousarray(problem.arcs[:, 0]),
        np.ascontiguousarray(problem.arcs[:, 1]),
        problem.size,
        problem.given.view(np.uint8),
        problem.wanted.view(np.uint8),
        problem.user_begin,
        problem.user,
        np.ascontiguousarray(problem.in_place.ravel()),
    )


def _load(loaded: Loaded) -> int:
    return loaded.problem.max_load


def _find_moved(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the operators outside of a longest ascending part of the order (patience sorting)."""
    from bisect import bisect_left

    tails: list[int] = []
    before: dict[int, int | None] = {}
    for operator in order:
        at = bisect_left(tails, operator)
        before[operator] = tails[at - 1] if at else None
        tails[at : at + 1] = [operator]
    kept = set()
    last = tails[-1] if tails else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return tuple(sorted(set(order) - kept))
