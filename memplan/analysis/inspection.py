"""How much memory a problem needs, when, whose fault it is, and what would make it less."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from memplan import solvers
from memplan.analysis.explain import Explanation, explain
from memplan.analysis.savings import Change, Savings, Worst, savings
from memplan.errors import ProblemError
from memplan.plan import Plan
from memplan.planning import plan_model
from memplan.problem import Asked, Problem, problem_of
from memplan.solvers import Bound
from memplan.solvers.refereed import NODES, quick_plan
from memplan.sources.loaded import Figure, Loaded, of_problem

__all__ = ["NODES", "Inspection", "Trial", "inspect"]


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that was tried.

    Attributes
    ----------
    rows
        Whose: rows of the problem; more than one where nobody alone brings the load down.
    change
        Which.
    worst
        The greatest load then.
    plan
        Of the changed problem.
    """

    rows: tuple[int, ...]
    change: Change
    worst: Worst
    plan: Plan

    @property
    def proved(self) -> bool:
        """Whether it is proved that no plan has a smaller peak."""
        return self.plan.peak == self.plan.lower_bound


@dataclass(frozen=True, eq=False)
class Inspection:
    """What is known of a problem.

    Attributes
    ----------
    loaded
        The problem, and where it comes from.
    figures
        What other planners need for it.
    bound
        The lower bound on the peak, and what gave it.
    plan
        The best that a short search found, whatever the capacity.
    savings
        Who makes the greatest load, and what one change to each would save.
    trials
        Of each kind of change the one that saves most, planned, or where nobody alone saves
        anything, that of a few together; none where nothing is saved.
    shortage
        Whether it fits into the capacity, and what is missing; `None` where there is no capacity.
    """

    loaded: Loaded
    figures: tuple[Figure, ...]
    bound: Bound
    plan: Plan
    savings: Savings
    trials: tuple[Trial, ...]
    shortage: Explanation | None

    @property
    def lower_bound(self) -> int:
        """What is proved to be needed, by the bound or by the search, in bytes."""
        return max(self.bound.bytes, self.plan.lower_bound)

    @property
    def proved(self) -> bool:
        """Whether it is proved that no plan has a smaller peak."""
        return self.plan.peak == self.lower_bound

    def enough(self, change: Change) -> list[int]:
        """Return of whom one change brings the load within the capacity, where it is beyond it.

        They are indices of `Savings.rows`; whether a plan fits as well only a search can tell.
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
    nodes: int = NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Inspection:
    """Look at a problem from all sides.

    Parameters
    ----------
    asked
        What is to be placed: a problem, or what `memplan.load` read.
    in_place
        Whether operators may write over inputs; the layout with the better plan is looked at.
    figures
        What other planners need for it, beside those that its file says.
    nodes
        Search nodes for each plan, and for each question about the capacity.
    timeout
        Seconds for each plan, and for all questions about the capacity together, or `None`. A
        clock makes the answer depend on the machine.
    threads, seed
        As in `memplan.solve`.

    Raises
    ------
    Interrupted
        On Ctrl-C.
    """
    problem = problem_of(asked)
    loaded = asked if isinstance(asked, Loaded) else of_problem(problem)
    free = replace(loaded, problem=problem.with_capacity(None))
    planned = plan_model(
        free, in_place=in_place, nodes=nodes, timeout=timeout, threads=threads, seed=seed
    )
    problem = planned.problem.with_capacity(problem.capacity)
    loaded = replace(planned.loaded, problem=problem)
    plan_of = partial(quick_plan, nodes=nodes, timeout=timeout, threads=threads, seed=seed)
    shortage = None
    if problem.capacity is not None:
        shortage = explain(problem, nodes=nodes, timeout=timeout, threads=threads, seed=seed)
    found = savings(problem, loaded.layout)
    return Inspection(
        loaded,
        (*loaded.figures, *figures),
        solvers.bound(problem),
        planned.plan,
        found,
        tuple(_trials(found, plan_of)),
        shortage,
    )


def _trials(found: Savings, plan_of: Callable[[Problem], Plan]) -> Iterator[Trial]:
    for change, rows in _best(found):
        try:
            changed, worst = found.changed(rows, change), found.worst(rows, change)
        except ProblemError:  # pins or a group forbid it
            continue
        if worst.load < found.peak:
            yield Trial(rows, change, worst, plan_of(changed))


def _best(found: Savings) -> list[tuple[Change, tuple[int, ...]]]:
    """Return of each kind of change who saves most by it, or who does so together."""
    best = [(change, found.best(change)) for change in Change]
    alone: list[tuple[Change, tuple[int, ...]]] = [
        (change, (int(found.rows[at]),)) for change, at in best if at is not None
    ]
    if alone or not found.together:
        return alone
    return [(change, found.together) for change in (Change.HALVED, Change.REMOVED)]
