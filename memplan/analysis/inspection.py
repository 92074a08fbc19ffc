"""How much memory a problem needs, when, because of which buffers, and what would reduce it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from memplan import solvers
from memplan.analysis.explain import DEFAULT_NODES, Explanation, explain
from memplan.analysis.orders import try_less, try_orders
from memplan.analysis.savings import Change, Savings, Worst, savings
from memplan.base.drawing import Reported
from memplan.base.errors import MemplanError, ProblemError
from memplan.levers.rewrite import Recomputed, Reordered
from memplan.levers.rewrite.again import Limits
from memplan.machine.memories import Assigned, Memory, assign
from memplan.problem import Asked, Buffer, Problem, problem_of
from memplan.problem.loads import Held
from memplan.problem.plan import Plan
from memplan.programs.sources.loaded import Failure, Figure, Loaded, of_problem
from memplan.solvers import Bound
from memplan.solvers.planning import plan_model
from memplan.solvers.refereed import NODES, quick_plan
from memplan.solvers.stopping import stoppable

__all__ = ["NODES", "Inspection", "Refusal", "Trial", "inspect"]

_MOST_REFUSALS = 3  # requests that are examined; each needs a plan


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that was tried."""

    rows: tuple[int, ...]  # more than one if no single change brings the load down
    change: Change
    worst: Worst  # the greatest load after it
    plan: Plan  # of the changed problem

    @property
    def proved(self) -> bool:
        """Whether it is proved that no plan has a smaller peak."""
        return self.plan.peak == self.plan.lower_bound


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request for memory that the recorded run did not get."""

    failure: Failure
    held: tuple[Held, ...]  # the buffers that were live then, the largest first
    live: int  # their bytes
    # Of all that was allocated until then, with the request; `None` if the live buffers leave too
    # little room for any.
    plan: Plan | None

    @property
    def fits(self) -> bool | None:
        """Whether a plan would have had room; `None` if neither is known."""
        room, plan = self.failure.room, self.plan
        if plan is None or plan.lower_bound > room:
            return False
        return True if plan.peak is not None and plan.peak <= room else None


@dataclass(frozen=True, eq=False)
class Inspection(Reported):
    """The results of an inspection of a problem.

    Attributes
    ----------
    loaded
        The problem, and the source that it comes from.
    figures
        How much other planners need for it.
    bound
        The lower bound on the peak, with the rule that gave it.
    plan
        The best plan that a short search found without the capacity.
    savings
        The buffers that make the greatest load, and what a change to each would save.
    trials
        For each kind of change, the buffer that saves most by it, with a plan. If no single buffer
        saves anything, a few together are tried. Several runs of operators are fused together if
        that saves more than one. Changes that save nothing are left out.
    shortage
        Whether it fits into the capacity, and what is missing; `None` if there is no capacity.
    order
        What other orders of the operators need, as a short search shows; one sentence if they may
        not be reordered, and `None` if there are no operators.
    refusals
        The requests that the recorded run did not get, the largest first.
    less
        Re-runs that a short search found for a tenth less memory, or what is proved of that; `None`
        if operators may not be reordered, or write over inputs in the plan.
    outside
        If it does not fit: which buffers would lie in a second memory, so that least is read and
        written there, with what a byte more of this one would save at each time.
    interrupted
        Whether Ctrl-C ended the searches; what they had is the answer.
    """

    _report = "inspection"

    loaded: Loaded
    figures: tuple[Figure, ...]
    bound: Bound
    plan: Plan
    savings: Savings
    trials: tuple[Trial, ...]
    shortage: Explanation | None
    order: Reordered | str | None = None
    refusals: tuple[Refusal, ...] = ()
    less: Recomputed | Limits | None = None
    outside: Assigned | None = None
    interrupted: bool = False

    @property
    def lower_bound(self) -> int:
        """The better of the bound and what the search proved, in bytes."""
        required = 0 if self.shortage is None else self.shortage.required or 0
        return max(self.bound.bytes, self.plan.lower_bound, required)

    @property
    def proved(self) -> bool:
        """Whether it is proved that no plan has a smaller peak."""
        return self.plan.peak == self.lower_bound

    def enough(self, change: Change) -> list[int]:
        """Return the buffers for which one change brings a too great load within the capacity.

        They are indices in `Savings.rows`. Whether a plan fits too, only a search can decide.
        """
        if self.shortage is None or self.savings.peak <= self.shortage.available:
            return []
        found: list[int] = self.savings.within(self.shortage.available, change).tolist()
        return found


def inspect(
    asked: Asked,
    *,
    in_place: bool = False,
    figures: Iterable[Figure] = (),
    nodes: int | None = None,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Inspection:
    """Inspect a problem: its bound, a quick plan, the buffers that matter, and what would help.

    Parameters
    ----------
    asked
        A problem, or the result of `memplan.load`.
    in_place
        Whether operators may write over inputs; the layout with the better plan is inspected.
    figures
        How much other planners need for it, in addition to those that its file names.
    nodes
        Search nodes for each plan, and for each question about the capacity; by default `NODES`
        and `memplan.analysis.explain.DEFAULT_NODES`.
    timeout
        Seconds for each plan, and for all questions about the capacity together, or `None`. A
        clock makes the answer depend on the machine.
    threads, seed
        As in `memplan.solve`.

    """
    with stoppable() as stop:
        found = _inspect(
            asked,
            figures,
            in_place=in_place,
            nodes=nodes,
            timeout=timeout,
            threads=threads,
            seed=seed,
        )
        return replace(found, interrupted=stop.is_set)


def _inspect(
    asked: Asked,
    figures: Iterable[Figure],
    *,
    in_place: bool,
    nodes: int | None,
    **search: Any,
) -> Inspection:
    """Return what `inspect` does, as part of a question."""
    problem = problem_of(asked)
    loaded = asked if isinstance(asked, Loaded) else of_problem(problem)
    given = None if loaded.graph is None else loaded
    free = replace(loaded, problem=problem.with_capacity(None))
    of_plan, of_question = (NODES, DEFAULT_NODES) if nodes is None else (nodes, nodes)
    planned = plan_model(free, in_place=in_place, nodes=of_plan, **search)
    problem = planned.problem.with_capacity(problem.capacity)
    loaded = replace(planned.loaded, problem=problem)
    plan_of = partial(quick_plan, nodes=of_plan, **search)
    shortage = None
    if problem.capacity is not None:
        shortage = explain(problem, nodes=of_question, **search, known=planned.plan)
    found = savings(problem, loaded.layout)
    outside = None
    if shortage is not None and not shortage.fits:
        outside = _move_out(loaded, shortage.capacity, of_plan, search["timeout"])
    order = None if given is None else try_orders(given, in_place=in_place)
    less = None
    if isinstance(order, Reordered) and not loaded.in_place and found.peak:
        less = try_less(order, planned.plan.peak or found.peak)
    return Inspection(
        loaded=loaded,
        figures=(*loaded.figures, *figures),
        bound=solvers.bound(problem),
        plan=planned.plan if shortage is None or shortage.plan is None else shortage.plan,
        savings=found,
        trials=tuple(_try_changes(found, plan_of)),
        shortage=shortage,
        order=order,
        refusals=tuple(_examine(problem, failure, plan_of) for failure in _choose_failures(loaded)),
        less=less,
        outside=outside,
    )


def _move_out(loaded: Loaded, capacity: int, nodes: int, timeout: float | None) -> Assigned | None:
    """Choose what lies in a second memory; `None` if that is not possible."""
    memories = (Memory("inside", capacity, read=0, write=0), Memory("outside"))
    try:
        return assign(loaded, memories, nodes=nodes, timeout=timeout)
    except MemplanError:
        return None


def _choose_failures(loaded: Loaded) -> list[Failure]:
    return sorted(loaded.failures, key=lambda one: -one.asked)[:_MOST_REFUSALS]


def _examine(problem: Problem, failure: Failure, plan_of: Callable[[Problem], Plan]) -> Refusal:
    """Find out what held the memory at a request that was refused, and what a plan would need."""
    time = failure.time
    asked = Buffer("request", time, time + 1, failure.asked, alignment=failure.alignment)
    before = [buffer for buffer in problem.buffers if buffer.start <= time]
    live = sorted(
        (each for each in before if each.end > time), key=lambda each: (-each.size, each.id)
    )
    held = tuple(Held(each.id, each.size, each.size, each.start, each.end) for each in live)
    total = sum(each.size for each in live)
    has_room = total + failure.asked <= failure.room
    return Refusal(failure, held, total, plan_of(Problem([*before, asked])) if has_room else None)


def _try_changes(found: Savings, plan_of: Callable[[Problem], Plan]) -> Iterator[Trial]:
    for change, rows in _choose_changes(found):
        try:
            changed, worst = found.changed(rows, change), found.worst(rows, change)
        except ProblemError:  # pins or a group contradict the change
            continue
        if worst.load < found.peak:
            yield Trial(rows, change, worst, plan_of(changed))


def _choose_changes(found: Savings) -> list[tuple[Change, tuple[int, ...]]]:
    """Return for each kind of change the buffer, or the set of buffers, that saves most by it."""
    best = [(change, found.best(change)) for change in Change]
    alone: list[tuple[Change, tuple[int, ...]]] = [
        (change, (int(found.rows[at]),)) for change, at in best if at is not None
    ]
    if not alone and found.together:
        alone = [(change, found.together) for change in (Change.HALVED, Change.REMOVED)]
    return [*alone, (Change.FUSED, found.runs_rows)] if found.runs else alone
