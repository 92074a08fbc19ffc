"""Finds which operators to run again, so that a program fits and its re-runs cost least."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from memplan.base.errors import GraphError, InfeasibleError, NoPlanError, PlanError, quoted
from memplan.base.sizes import parse_rates, parse_size
from memplan.levers.rewrite.again.blame import blame_operator
from memplan.levers.rewrite.again.columns import Again, again_of
from memplan.levers.rewrite.again.costs import Costs
from memplan.levers.rewrite.again.emitted import Emitted, emit
from memplan.levers.rewrite.again.native import (
    bound_certificate_of,
    find_runs,
    floor_certificate_of,
    order_certificate_of,
)
from memplan.levers.rewrite.again.overlap import Overlap, find_overlap
from memplan.levers.rewrite.columns import order_problem
from memplan.levers.rewrite.effects import require_known
from memplan.levers.rewrite.order import (
    Reordered,
    find_load_before,
    is_in_order,
    load_program,
    reorder,
    require_one_stream,
)
from memplan.problem import GivenOrderBound, RecomputeBound, RecomputeFloor, RecomputeProblem
from memplan.problem.columns import MAX_BYTES
from memplan.problem.plan import Status
from memplan.programs.graph import Graph, Kind, Layout, lay_out
from memplan.programs.sources import Loaded, lay_out_again, of_graph
from memplan.referee import RecomputeClaim
from memplan.referee import verify_order as check_order
from memplan.referee import verify_recompute as check_recompute
from memplan.solvers.limits import MAX_COUNT, check_seconds, check_whole
from memplan.solvers.stopping import is_stopped, stoppable

__all__ = [
    "Limits",
    "NoRunsError",
    "Recomputed",
    "recompute",
    "verify_recompute",
]

_STATES: Final = 20_000  # of a search without a limit


@dataclass(frozen=True)
class Limits:
    """What is proved of a capacity; see `Recomputed`.

    `is_impossible` says whether it is proved that no sequence fits.
    """

    capacity: int
    plain: int
    bound: int
    order_bound: int
    floor: int
    floor_operator: str
    is_impossible: bool = False
    interrupted: bool = False


@dataclass(frozen=True, repr=False)
class Recomputed:
    """A program in which operators run again, and what re-runs cost at least.

    Costs are in picoseconds.

    Attributes
    ----------
    given
        The program as it was.
    ordered
        The program in the order of its first runs before operators ran again.
    loaded
        The program with copies: what runs again is "conv_3 (again)" and makes "x (again)". It is an
        ordinary program. Offsets that the file gives are left out.
    order
        By place in `ordered`: the index of the outermost operator in the given graph.
    runs
        The indices in the given graph of the operators, in the order in which they run. `n + t`
        moves tensor `t` back, if the graph has `n` operators.
    operators
        By operator of `loaded`: its index in the given graph, or -1 for one that moves a tensor.
        Views of copies are among them.
    capacity
        The bytes that the load may have.
    given_peak, peak
        The load of the given and of the new program, in bytes.
    plain
        The cost of running every operator once.
    extra
        The cost of the runs beyond the first ones, and of all moves.
    bound
        Proved: no order, re-runs and moves within the capacity have a smaller extra cost.
    order_bound
        Proved: no re-runs and moves have a smaller one while first runs are in the order of
        `ordered`.
    status
        `optimal` if the extra cost is the bound; with `order=False`, if it is `order_bound`.
    floor
        Proved: no order and no re-runs need less memory, in bytes.
    floor_operator
        The operator that needs it, by name; empty if inputs or results are as large.
    moment
        The operator at whose first run the bound is shown, by name; empty if it is 0.
    problem
        The question; its operators are those of `ordered`. The certificates are of
        `Again.relaxed`, which is the same if there are no blocks.
    certificate, order_certificate, floor_certificate
        Why `bound`, `order_bound` and floor hold; `None` where they need none.
    interrupted
        Whether Ctrl-C ended the search.
    states
        Work of the search.
    seconds
        Wall time.
    moving, hidden
        What moves take if nothing runs meanwhile, and how much of that is hidden if operators run
        beside them, within the capacity.
    """

    given: Loaded
    ordered: Loaded
    loaded: Loaded
    order: tuple[int, ...]
    runs: tuple[int, ...]
    operators: tuple[int, ...]
    capacity: int
    given_peak: int
    peak: int
    plain: int
    extra: int
    bound: int
    order_bound: int
    status: Status
    floor: int
    floor_operator: str
    moment: str
    problem: RecomputeProblem
    certificate: RecomputeBound | None
    order_certificate: GivenOrderBound | None
    floor_certificate: RecomputeFloor | None
    interrupted: bool = False
    states: int = 0
    seconds: float = 0.0
    moving: int = 0
    hidden: int = 0

    @property
    def graph(self) -> Graph:
        """The graph with copied operators."""
        assert self.loaded.graph is not None
        return self.loaded.graph

    @property
    def repeated(self) -> int:
        """The number of runs of operators beyond the first ones."""
        return len(self.runs) - len(self.order) - len(self.moved)

    @property
    def moved(self) -> tuple[str, ...]:
        """The names of the tensors that are moved out, each time that one comes back."""
        count = len(self.order)
        assert self.given.graph is not None
        return tuple(
            self.given.graph.tensors[run - count].name for run in self.runs if run >= count
        )

    @property
    def outside(self) -> int:
        """The most bytes that are in the other memory at one time."""
        return lay_out(self.graph, include=(Kind.OUTSIDE,)).problem.max_load

    @property
    def share(self) -> float:
        """The extra cost as a share of the cost of running every operator once."""
        return self.share_of(self.extra)

    def share_of(self, cost: int) -> float:
        """Return a cost as a share of that of running every operator once."""
        return cost / self.plain if self.plain else 0.0

    @property
    def limits(self) -> Limits:
        """What is proved of the capacity."""
        return Limits(
            self.capacity,
            self.plain,
            self.bound,
            self.order_bound,
            self.floor,
            self.floor_operator,
            interrupted=self.interrupted,
        )

    @property
    def gains_nothing(self) -> bool:
        """Whether it is proved that re-runs never help: the program needs its floor without any."""
        return self.ordered.problem.max_load <= self.floor

    def __repr__(self) -> str:
        return f"<Recomputed: {self.summary()}>"

    def summary(self) -> str:
        """Return the outcome in one line."""
        moves = f"{len(self.moved)} moves, " if self.moved else ""
        found = (
            f"load {self.given_peak} -> {self.peak} bytes, {self.repeated} operators run again, "
            f"{moves}{self.share:.2%} more work"
        )
        if self.status is Status.OPTIMAL:
            return f"{found}; optimal: no re-runs cost less"
        return f"{found}; at least {self.share_of(self.bound):.2%}"


class NoRunsError(PlanError):
    """No re-runs were found with which a program fits; `limits` is what is proved nevertheless."""

    def __init__(self, message: str, limits: Limits) -> None:
        super().__init__(message)
        self.limits = limits

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.limits)


class _ImpossibleError(NoRunsError, InfeasibleError):
    """It is proved that there are none."""


class _UnfoundError(NoRunsError, NoPlanError):
    """The search ended without any."""


@stoppable()
def recompute(
    model: str | os.PathLike[str] | Graph | Loaded | Reordered | Any,
    capacity: int | str,
    *,
    costs: Costs | None = None,
    spill: str | None = None,
    order: bool = True,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
) -> Recomputed:
    """Make a program fit by running some of its operators again, at the least cost that is found.

    A result that is read much later need not be kept: what makes it runs again, or it is moved to
    another memory and back. First the order of operators with the least load is taken, if the given
    one does not fit.

    Parameters
    ----------
    model
        A program; or what `memplan.load` takes: a file, or a `torch.export.ExportedProgram`; or
        what `memplan.levers.rewrite.reorder` found for one, so that the order is not searched for
        again.
    capacity
        The bytes that may be live at one time, or words like "256KiB".
    costs
        Seconds by the name of an operator, or a file of them in CSV with the columns
        `operator,seconds`. Without it, a roofline: see `memplan.levers.rewrite.again.costs`.
    spill
        How fast tensors are moved to another memory and back: "25GB/s", or "12GB/s,25GB/s" to write
        and to read. While they are, nothing else runs. Without it, nothing is moved.
    order
        Whether first runs may leave the given order.
    timeout
        In seconds: half of it for the search of an order.
    states
        A limit on the work of each search, for results that are the same on every machine. With it,
        re-runs and moves together never cost more than either alone.
    pure
        Types of operators that do nothing but compute their results, though memplan does not know
        them.

    Raises
    ------
    GraphError
        As `memplan.levers.rewrite.reorder`; if a type of `pure` is of no operator; if the costs are
        not right.
    NoRunsError
        A `PlanError`, if nothing fits: because the capacity is below the floor, which the sentence
        names with its operator, or because no sequence was found.
    MemplanError
        As `memplan.load`.

    Examples
    --------
    >>> from memplan.levers.rewrite import recompute
    >>> found = recompute("examples/models/residual.graph.json", "72KiB")
    >>> found.peak, found.extra, str(found.status)
    (73728, 0, 'optimal')
    """
    begun = time.perf_counter()
    better = model if isinstance(model, Reordered) else None
    loaded = load_program(model.given if isinstance(model, Reordered) else model)
    size, seconds = parse_size(capacity), check_seconds(timeout)
    rates = None if spill is None else parse_rates(spill)
    if states is not None:
        check_whole(states, "states", 1, MAX_COUNT)
    given, pure = lay_out_again(loaded, in_place=False), tuple(pure)
    assert given.layout is not None
    graph, given_peak = given.layout.graph, given.problem.max_load
    require_one_stream(graph)
    _require_types(graph, pure)
    require_known(graph, pure)
    ordered, places = given, tuple(range(len(graph.operators)))
    if better is None and order and given_peak > size:
        half = None if seconds is None else seconds / 2
        better = reorder(loaded, timeout=half, states=states, pure=pure)
    if better is not None:
        moved = lay_out_again(better.loaded, in_place=False)
        if moved.problem.max_load < given_peak:
            ordered, places = moved, better.order
    assert ordered.layout is not None
    question = again_of(ordered.layout, costs, rates)
    left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - begun))
    if left is None and states is None:
        states = _STATES
    load = ordered.problem.max_load
    found = find_runs(question, load, size, left, states, order)
    proof = found.proof
    outside = _find_load_outside(given.layout, question.problem)
    floor = max(proof.floor, outside)
    has_operator = proof.floor_op >= 0 and proof.floor >= outside
    floor_op = question.whole[proof.floor_op] if has_operator else -1
    names, plain = question.problem.program.operators, question.problem.plain
    floor_operator = names[floor_op] if floor_op >= 0 else ""
    if found.runs is None or size < floor:
        limits = Limits(
            size,
            plain,
            proof.bound,
            proof.order_bound,
            floor,
            floor_operator,
            is_impossible=size < floor or proof.status == "infeasible",
            interrupted=is_stopped(),
        )
        words = _explain(limits, load)
        if size < floor:
            words += blame_operator(question, floor_op)
        raise (_ImpossibleError if limits.is_impossible else _UnfoundError)(words, limits)
    is_best = found.extra == (proof.bound if order else proof.order_bound)
    emitted = emit(question, found.runs)
    new = _lay_out(loaded, emitted)
    overlap = _find_overlap(new, question, emitted, rates, size)
    return Recomputed(
        given=loaded,
        ordered=ordered,
        loaded=new,
        order=places,
        runs=question.to_file(found.runs, places),
        operators=tuple(-1 if op < 0 else places[op] for op in emitted.operators),
        capacity=size,
        given_peak=given_peak,
        peak=new.problem.max_load,
        plain=plain,
        extra=found.extra,
        bound=proof.bound,
        order_bound=proof.order_bound,
        status=Status.OPTIMAL if is_best else Status.FEASIBLE,
        floor=floor,
        floor_operator=floor_operator,
        moment=names[question.whole[proof.moment]] if proof.moment >= 0 else "",
        problem=question.problem,
        certificate=bound_certificate_of(proof),
        order_certificate=order_certificate_of(proof),
        floor_certificate=floor_certificate_of(proof),
        interrupted=is_stopped(),
        states=found.nodes,
        seconds=time.perf_counter() - begun,
        moving=overlap.moving,
        hidden=overlap.hidden,
    )


def verify_recompute(
    model: str | os.PathLike[str] | Graph | Loaded | Any,
    recomputed: Recomputed,
    *,
    costs: Costs | None = None,
    spill: str | None = None,
) -> RecomputeClaim:
    """Check that a program with re-runs computes what the given one does, and what is said of it.

    Sequence, loads, costs and certificates are checked by the referee, which shares no code with
    the search.

    Parameters
    ----------
    model, costs, spill
        As `recompute` got them.
    recomputed
        Its result.

    Returns
    -------
    RecomputeClaim
        The proved facts.

    Raises
    ------
    PlanError
        If it is of another program, not legal, or does not need or cost what it claims.
    ProofError
        If a certificate does not show its bound.
    """
    loaded = lay_out_again(load_program(model), in_place=False)
    ordered = lay_out_again(recomputed.ordered, in_place=False)
    assert loaded.layout is not None
    assert ordered.layout is not None
    graph, order = loaded.layout.graph, recomputed.order
    check_order(order_problem(loaded.layout), order)
    if not is_in_order(ordered.layout.graph, graph, order):
        raise PlanError("the operators that run again are not those of the program")
    problem = recomputed.problem
    rates = None if spill is None else parse_rates(spill)
    question = again_of(ordered.layout, costs, rates)
    if question.problem.fingerprint != problem.fingerprint:
        raise PlanError("the re-runs are of another program, or with other costs")
    sequence = question.from_file(recomputed.runs, order)
    outside = _find_load_outside(loaded.layout, problem)
    # Operators with blocks need less than all that they touch, as the new program shows below.
    most = recomputed.capacity if question.relaxed is question.problem else MAX_BYTES
    ran = check_recompute(problem, sequence, most, extra=recomputed.extra)
    claim = check_recompute(
        question.relaxed,
        None,
        recomputed.capacity,
        bound=recomputed.bound,
        certificate=recomputed.certificate,
        order_bound=recomputed.order_bound,
        order_certificate=recomputed.order_certificate,
        floor=None if recomputed.floor <= outside else recomputed.floor,
        floor_certificate=recomputed.floor_certificate,
    )
    new = _lay_out(loaded, emit(question, sequence))
    if new.problem.fingerprint != recomputed.loaded.problem.fingerprint:
        raise PlanError("the program with copies does not run this sequence")
    if not new.problem.max_load == recomputed.peak <= max(ran.peak, outside):
        raise PlanError(
            f"the re-runs claim a load of {recomputed.peak} bytes, but it is {new.problem.max_load}"
        )
    if recomputed.peak > recomputed.capacity:
        raise PlanError(
            f"the sequence needs {recomputed.peak} bytes, but the capacity is {recomputed.capacity}"
        )
    if recomputed.bound > ran.extra:
        raise PlanError(f"the bound of {recomputed.bound} is above the cost of a sequence")
    return claim._replace(peak=recomputed.peak, extra=ran.extra, floor=max(claim.floor, outside))


def _find_overlap(
    new: Loaded,
    question: Again,
    emitted: Emitted,
    rates: tuple[int, int] | None,
    capacity: int,
) -> Overlap:
    """Return what moves take, alone and beside operators."""
    assert new.layout is not None
    if rates is None:
        return Overlap(0, 0)
    times = [int(question.problem.cost[op]) if op >= 0 else 0 for op in emitted.operators]
    return find_overlap(new.layout, times, rates, capacity)


def _find_load_outside(layout: Layout, problem: RecomputeProblem) -> int:
    """Return what is live before the first operator, or after the last one if that is more."""
    program = problem.program
    return max(find_load_before(layout), int(program.size[program.wanted].sum()))


def _require_types(graph: Graph, pure: Iterable[str]) -> None:
    known = {operator.type for operator in graph.walk()}
    for each in pure:
        if each not in known:
            raise GraphError(f"no operator is of the type {quoted(each)}, which is named as pure")


def _explain(limits: Limits, load: int) -> str:
    """Return why there is no sequence."""
    capacity, floor, operator = limits.capacity, limits.floor, limits.floor_operator
    if capacity < floor:
        what = f"operator {quoted(operator)}" if operator else "what is given or wanted"
        gain = (
            "; running operators again gains nothing, as the program needs no more without it"
            if load <= floor
            else ""
        )
        return (
            f"{capacity} bytes are below the floor of {floor}: {what} needs as much, in any order "
            f"and whatever runs again{gain}"
        )
    if limits.is_impossible:
        return f"proved: in no order and with no re-runs does the program fit into {capacity} bytes"
    return (
        f"no re-runs were found with which the program fits into {capacity} bytes; every sequence "
        f"needs at least {floor}, and the best order without re-runs {load}"
    )


def _lay_out(loaded: Loaded, emitted: Emitted) -> Loaded:
    """Return a program with copies, with the capacity of the given one."""
    new = of_graph(emitted.graph, figures=loaded.figures, notes=loaded.notes)
    problem = new.problem.with_capacity(loaded.problem.capacity)
    return replace(new, source=loaded.source, problem=problem)
