"""Finds the order of operators in which the most memory that is live at one time is least."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memplan import _core
from memplan.base.errors import GraphError, PlanError, ProofError
from memplan.base.notes import Code, Note
from memplan.levers.rewrite.columns import Columns, columns_of, columns_of_block
from memplan.levers.rewrite.effects import require_known
from memplan.problem import OrderBound, OrderProblem
from memplan.problem.plan import Status
from memplan.programs.graph import Graph, Layout, Operator
from memplan.programs.sources import Loaded, lay_out_again, load, of_graph
from memplan.programs.sources.loaded import explain_bare
from memplan.referee import OrderClaim
from memplan.referee import verify_order as check_order
from memplan.solvers.limits import MAX_COUNT, check_seconds, check_whole
from memplan.solvers.stopping import is_stopped, note_interrupt, stoppable

__all__ = [
    "Reordered",
    "core_problem",
    "find_load_before",
    "is_in_order",
    "load_program",
    "reorder",
    "require_one_stream",
    "verify_order",
]


@dataclass(frozen=True, repr=False)
class Reordered:
    """A program in another order of operators, and what any order needs at least.

    Attributes
    ----------
    given
        The program as it was.
    loaded
        The program in the new order, in the layout with the smaller load. Offsets that the file
        gives are left out, as they belong to its own order.
    order
        By place in the new order: the index of the outermost operator in the given graph.
    given_peak, peak
        The load of the given and of the new order, in bytes: the most that is live at one time. It
        is that of the better layout, if operators may write over inputs.
    bound
        Proved: no order has a smaller load.
    status
        `optimal` if the load of the new order is the bound.
    in_place
        Whether operators may write over inputs.
    problem
        The question whose certificate this is; see `memplan.levers.rewrite.columns`.
    certificate
        Why no order is better, or `None` if only the whole search shows it.
    moved
        The outermost operators, by index in the given graph, that run at another place: the fewest
        without which both orders are the same.
    interrupted
        Whether Ctrl-C ended the search.
    states
        Work of the search.
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
    interrupted: bool = False
    states: int = 0
    seconds: float = 0.0

    @property
    def graph(self) -> Graph:
        """The graph in the new order."""
        assert self.loaded.graph is not None
        return self.loaded.graph

    def __repr__(self) -> str:
        return f"<Reordered: {self.summary()}>"

    def summary(self) -> str:
        """Return the outcome in one line."""
        found = f"load {self.given_peak} -> {self.peak} bytes, {len(self.moved)} operators moved"
        if self.status is Status.OPTIMAL:
            return f"{found}; optimal: no order needs less"
        return f"{found}; every order needs at least {self.bound}"


@stoppable()
def reorder(
    model: str | os.PathLike[str] | Graph | Loaded | Any,
    *,
    in_place: bool = False,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
    without: Iterable[str] = (),
) -> Reordered:
    """Find the order of a program's operators with the least load, and a bound on every order.

    Operators that wait for one another's results, that share a generator of random numbers or
    effects outside of the program, or of which one writes memory that the other uses keep their
    order. The operators of each block are ordered by themselves first. Among orders of equal load,
    few operators move; if no order is better, none does.

    Parameters
    ----------
    model
        A program; or what `memplan.load` takes: a file, or a `torch.export.ExportedProgram`.
    in_place
        Whether operators may write results over inputs that are not needed any more.
    timeout
        In seconds; without a limit, the search ends when it has proved its answer, or holds half a
        gigabyte of states.
    states
        A limit on the work, for results that are the same on every machine.
    pure
        Types of operators that do nothing but compute their results, though memplan does not know
        them.
    without
        Rules of the search to leave out, to measure what they are worth (docs/algorithms/order.md).

    Raises
    ------
    GraphError
        If the model has no operators, if they run on several streams, or if one of them may have
        effects that memplan does not know.
    MemplanError
        As `memplan.load`.

    Examples
    --------
    >>> from memplan.levers.rewrite import reorder
    >>> found = reorder("examples/models/residual.graph.json")
    >>> found.given_peak, found.peak, str(found.status)
    (73728, 73728, 'optimal')
    """
    begun = time.perf_counter()
    loaded = load_program(model)
    given = lay_out_again(loaded, in_place=False)
    assert given.layout is not None
    search = _SharedBudget(check_seconds(timeout), states, tuple(without))
    require_one_stream(given.layout.graph)
    require_known(given.layout.graph, pure)
    orders, bounds = search.blocks(given)
    graph = given.layout.graph
    columns = columns_of(given.layout, in_place=in_place, inner_bounds=[0] * len(bounds))
    if not in_place:
        columns = columns_of(given.layout, in_place=False, inner_bounds=bounds)
    found = search.best(columns.problem)
    bound = found
    if columns.relaxed is not columns.problem:
        bound = search.best(columns.relaxed)
    order = tuple(found.order)
    operators = tuple(_with_orders(graph.operators[at], orders) for at in order)
    ways = _lay_out(given, in_place)
    given_peak = min(each.problem.max_load for each in ways)
    new = None
    if operators != graph.operators:
        new = _choose(loaded, graph.changed(operators=operators), in_place)
    if new is None or new.problem.max_load >= given_peak:
        order = tuple(range(len(graph.operators)))
        new = _choose(loaded, graph, in_place, ways)
    peak = min(new.problem.max_load, given_peak)
    before = find_load_before(given.layout)
    least = max(bound.bound - columns.slack, before)
    assert least <= peak, "the bound on every order is above an order"
    return Reordered(
        given=loaded,
        loaded=new,
        order=order,
        given_peak=given_peak,
        peak=peak,
        bound=least,
        status=Status.OPTIMAL if peak == least else Status.FEASIBLE,
        in_place=in_place,
        problem=columns.relaxed,
        certificate=_certificate(bound) if bound.bound - columns.slack >= before else None,
        moved=_find_moved(order),
        interrupted=is_stopped(),
        states=search.states,
        seconds=time.perf_counter() - begun,
    )


def verify_order(
    model: str | os.PathLike[str] | Graph | Loaded | Any, reordered: Reordered
) -> OrderClaim:
    """Check that a reordered program is the given one in a legal order, and what is said of it.

    The order and the certificate are checked by the referee, which shares no code with the search;
    the load by a layout of the program in its new order.

    Returns
    -------
    OrderClaim
        The load of the order, and the bound that the certificate proves; without one, a bound that
        each operator proves by itself. It is below `reordered.bound` only if the whole search is
        the proof, which cannot be checked again in less time.

    Raises
    ------
    PlanError
        If it is an order of another program, not legal, or its load is not the one that it claims.
    ProofError
        If its certificate does not show its bound.
    """
    loaded = lay_out_again(load_program(model), in_place=False)
    assert loaded.layout is not None
    graph, in_place = loaded.layout.graph, reordered.in_place
    columns = columns_of(loaded.layout, in_place=in_place, inner_bounds=[0] * len(graph.operators))
    held = columns.problem.workspace.tolist()
    most = columns_of(loaded.layout, in_place=in_place, inner_bounds=held).relaxed
    claimed = reordered.problem
    if _without_workspace(claimed) != _without_workspace(most) or any(
        claimed.workspace > most.workspace
    ):
        raise PlanError("the order is of another program, or of another layout of this one")
    check_order(columns.problem, reordered.order)
    certificate = reordered.certificate
    claimed_bound = None if certificate is None else reordered.bound + columns.slack
    proved = check_order(
        claimed, range(len(claimed)), bound=claimed_bound, certificate=certificate
    ).bound
    if not is_in_order(reordered.graph, graph, reordered.order):
        raise PlanError("the operators of the new order are not those of the program")
    ways = (*_lay_out(reordered.loaded, in_place), *_lay_out(loaded, in_place))
    peak = min(each.problem.max_load for each in ways)
    if peak != reordered.peak:
        raise PlanError(f"the order claims a load of {reordered.peak} bytes, but it has {peak}")
    if reordered.bound > peak:
        raise ProofError(
            f"the bound of {reordered.bound} bytes is above the load of an order, {peak}"
        )
    before = find_load_before(loaded.layout)
    return OrderClaim(peak, min(max(before, proved - columns.slack), reordered.bound))


def find_load_before(layout: Layout) -> int:
    """Return what is live before the first operator of any order, in bytes."""
    problem = layout.problem
    return sum(problem.size[problem.start < 0].tolist())


class _SharedBudget:
    """Calls of the core that share a budget."""

    def __init__(
        self,
        seconds: float | None,
        states: int | None,
        without: tuple[str, ...],
    ) -> None:
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._left = None if states is None else check_whole(states, "states", 1, MAX_COUNT)
        self._without = list(without)
        self.states = 0

    def best(self, problem: OrderProblem) -> _core.OrderResult:
        """Return the best order of a question, within what is left of the budget."""
        found = _core.best_order(
            core_problem(problem),
            None if self._end is None else max(0.0, self._end - time.perf_counter()),
            self._left,
            self._without,
        )
        if found.interrupted:
            note_interrupt()
        self.states += found.states
        if self._left is not None:
            self._left = max(1, self._left - found.states)
        return found

    def blocks(self, loaded: Loaded) -> tuple[dict[int, list[int]], list[int]]:
        """Return an order of each block, by its identity, and what the blocks hold at least.

        The latter is by outermost operator, in bytes.
        """
        orders: dict[int, list[int]] = {}
        bounds = []
        assert loaded.layout is not None
        for outer in loaded.layout.graph.operators:
            bounds.append(0)
            for operator in outer.walk():
                for block in operator.blocks:
                    columns = columns_of_block(loaded.layout, operator, block)
                    found = self.best(columns.problem)
                    orders[id(block)] = list(found.order)
                    bounds[-1] = max(bounds[-1], self._bound(columns, found))
        return orders, bounds

    def _bound(self, columns: Columns, found: _core.OrderResult) -> int:
        same = columns.relaxed is columns.problem
        return found.bound if same else self.best(columns.relaxed).bound


def load_program(model: Any) -> Loaded:
    """Return a program that has operators, or raise `GraphError`; it takes what `load` does too."""
    if not isinstance(model, (Graph, Loaded)):
        model = load(model)
    loaded = of_graph(model) if isinstance(model, Graph) else model
    if loaded.graph is None:
        why = "so that nothing can be put in another order or run again"
        raise GraphError(explain_bare(loaded.source, why))
    return loaded


def require_one_stream(graph: Graph) -> None:
    """Raise `GraphError` for a program on several streams."""
    streams = sorted({operator.stream for operator in graph.operators})
    if len(streams) > 1:
        raise GraphError(
            f"the operators run on {len(streams)} streams, and their order there is the program's "
            "own: only programs on one stream can be reordered"
        )


def _with_orders(operator: Operator, orders: dict[int, list[int]]) -> Operator:
    """Return an operator whose blocks run in the orders that were found."""
    if not operator.blocks:
        return operator
    blocks = []
    for block in operator.blocks:
        order = orders.get(id(block), range(len(block.operators)))
        inner = tuple(_with_orders(block.operators[at], orders) for at in order)
        blocks.append(replace(block, operators=inner))
    return replace(operator, blocks=tuple(blocks))


def _without_workspace(problem: OrderProblem) -> str:
    """Return a fingerprint of all columns but one, which depends on the orders of blocks."""
    return replace(problem, workspace=np.zeros_like(problem.workspace)).fingerprint


def is_in_order(moved: Graph, graph: Graph, order: Iterable[int]) -> bool:
    """Return whether a graph runs the outermost operators of another one in this order."""
    runs = [_plain(operator) for operator in moved.operators]
    return runs == [_plain(graph.operators[at]) for at in order]


def _plain(operator: Operator) -> Operator:
    """Return an operator whose blocks have their operators in an order that is no matter."""
    if not operator.blocks:
        return operator
    blocks = [
        replace(block, operators=tuple(sorted(map(_plain, block.operators), key=repr)))
        for block in operator.blocks
    ]
    return replace(operator, blocks=tuple(blocks))


def _choose(loaded: Loaded, graph: Graph, in_place: bool, ways: Sequence[Loaded] = ()) -> Loaded:
    """Return the layout of a program with the smaller load, with the capacity of the given one.

    `ways` are layouts of this graph, if there are any; they have its pins and reserved ranges.
    """
    pinned = tuple(tensor.name for tensor in graph.tensors if tensor.pin is not None)
    notes = loaded.notes
    if pinned:
        text = "offsets in the file are left out, since they belong to its own order of operators"
        notes = (*notes, Note(Code.PINS_DROPPED, text, pinned))
    if pinned or loaded.problem.reserved or not ways:
        tensors = tuple(replace(tensor, pin=None) for tensor in graph.tensors)
        graph = graph.changed(tensors=tensors) if pinned else graph
        ways = _lay_out(of_graph(graph, figures=loaded.figures, notes=notes), in_place)
    best = min(ways, key=lambda each: each.problem.max_load)
    capacity = loaded.problem.capacity
    problem = best.problem if capacity is None else best.problem.with_capacity(capacity)
    return replace(best, source=loaded.source, problem=problem)


def _lay_out(loaded: Loaded, in_place: bool) -> list[Loaded]:
    """Return the layouts of a program in the order that it has, without in-place writes first."""
    ways = (False, True) if in_place else (False,)
    return [lay_out_again(loaded, in_place=way) for way in ways]


def core_problem(problem: OrderProblem) -> _core.OrderProblem:
    """Return the question of an order as the core takes it."""
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


def _certificate(found: _core.OrderResult) -> OrderBound | None:
    if found.operator < 0:
        return None
    flow = np.array(found.flow, dtype=np.int64).reshape(-1, 3)
    return OrderBound(found.operator, tuple(found.done), flow)


def _find_moved(order: Sequence[int]) -> tuple[int, ...]:
    """Return the operators outside of a longest ascending part of an order (patience sorting)."""
    tails: list[int] = []  # by length: the lowest end of an ascending part
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
