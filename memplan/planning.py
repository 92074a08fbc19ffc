"""One door from a model to a checked plan: its layouts, one budget, the referee, the better plan.

An operator that writes its result over an input needs less memory at that moment, but what shares
memory cannot be placed apart afterwards. So where this is allowed, there are two layouts of one
program, and only their plans say which is the better one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memplan import solvers
from memplan.errors import GraphError, MemplanError, PlanError, ProblemError
from memplan.notes import Note
from memplan.plan import Plan, Status
from memplan.problem import Asked, Problem, problem_of
from memplan.referee import verify
from memplan.solvers import Budget, Interrupted, Progress, Round
from memplan.solvers._limits import MAX_COUNT, check_seconds, check_whole
from memplan.solvers.refereed import check_plan
from memplan.sources import Loaded, laid_out, load, of_problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Planned", "PlanningInterrupted", "layout_of", "layouts", "plan_model"]


@dataclass(frozen=True, repr=False)
class Planned:
    """A model with its plan, which the referee has let pass; what takes a problem takes this, too.

    Attributes
    ----------
    loaded
        The layout that was planned: problem, labels, graph, notes.
    plan
        Of its problem; status and bound are about this layout.
    seconds
        That all searches took together.
    """

    loaded: Loaded
    plan: Plan
    seconds: float = 0.0

    @property
    def problem(self) -> Problem:
        """What was placed."""
        return self.loaded.problem

    @property
    def in_place(self) -> bool:
        """Whether operators write over inputs in this layout."""
        return self.loaded.in_place

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was assumed or left out when the model was read."""
        return self.loaded.notes

    def __repr__(self) -> str:
        way = "in place" if self.in_place else "apart"
        return f"<Planned: {self.loaded.source}, {way}, {self.plan!r}>"

    def summary(self) -> str:
        """Return the outcome in a few lines of plain text, and the notes."""
        lines = [f"{'format':<12} {self.loaded.source}", self.plan.summary()]
        return "\n".join([*lines, *(f"{'note':<12} {note.text}" for note in self.notes)])

    def plot(self, *, width: float | None = None, load: bool = False) -> Figure:
        """Draw the plan, with colours by operator where the file names any; extra `plot`.

        Parameters
        ----------
        width, load
            See `memplan.Plan.plot`, also for what it raises.
        """
        classes = [label.operator or label.kind for label in self.loaded.labels]
        return self.plan.plot(self.problem, width=width, classes=classes or None, load=load)

    def _repr_html_(self) -> str:
        from memplan.view import notebook  # what draws is imported when it is asked for

        return notebook.of_planned(self)


class PlanningInterrupted(Interrupted):
    """Ctrl-C while a model was planned.

    Attributes
    ----------
    planned
        The best so far; the status of its plan may be `unknown`.
    """

    def __init__(self, planned: Planned) -> None:
        super().__init__(planned.plan)
        self.planned = planned

    def __reduce__(self) -> tuple[type[PlanningInterrupted], tuple[Planned]]:  # type: ignore[override]
        return PlanningInterrupted, (self.planned,)


def plan_model(
    model: str | os.PathLike[str] | Asked,
    *,
    in_place: bool = False,
    capacity: int | None = None,
    dims: Mapping[str, int] | None = None,
    include: Iterable[str] | None = None,
    pins: bool = True,
    solver: str = "auto",
    objective: str | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    progress: Callable[[Progress], object] | None = None,
    trace: Callable[[Round], object] | None = None,
    proof: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Planned:
    """Plan a model: `memplan plan`, `memplan apply` and this function give the same plan.

    Parameters
    ----------
    model
        A file, as `memplan.load` takes it; what that returned; or a problem.
    in_place
        Whether operators may write over inputs that nobody needs any more. Both layouts are
        planned then, and the better plan is taken; of equal ones that which writes over nothing.
        With a capacity to fit, the layout without is taken if it fits. A model that was loaded
        with `in_place=True` may always.
    capacity
        In bytes, in place of the model's own.
    dims, include, pins
        As `memplan.load` takes them; for a file only.
    solver, objective, threads, seed, progress, trace, **options
        As `memplan.solve` takes them.
    timeout, nodes
        As `memplan.solve` takes them, for all searches together: of two layouts the first gets a
        half, and the second all that is left then.
    proof
        As `memplan.solve` takes it; a proof is of one problem, so not where operators may write
        over inputs.

    Returns
    -------
    Planned
        Also where there is no plan: the status of its plan is then `infeasible` (in every layout)
        or `unknown`.

    Raises
    ------
    PlanningInterrupted
        On Ctrl-C, with the best plan so far.
    MemplanError
        As `memplan.load` and `memplan.solve` do.

    Examples
    --------
    >>> import memplan as mp
    >>> planned = mp.plan_model(mp.Problem([mp.Buffer("a", 0, 2, 4), mp.Buffer("b", 1, 3, 4)]))
    >>> planned.plan.peak, planned.in_place
    (8, False)
    """
    budget = _Budget(timeout, nodes)
    possible = layouts(_load_model(model, capacity, dims, include, pins), in_place=in_place)
    if proof is not None and (in_place or possible[-1].in_place):
        raise MemplanError("a proof is of one problem; leave in-place choices out, or the proof")
    best: Planned | None = None
    for place, layout in enumerate(possible):
        share, interrupted = budget.share(len(possible) - place), False
        try:
            plan = solvers.solve(
                layout.problem,
                solver,
                objective,
                threads=threads,
                seed=seed,
                budget=share,
                progress=progress,
                trace=trace,
                proof=proof,
                **options,
            )
        except Interrupted as stop:
            plan, interrupted = stop.plan, True
        budget.spend(plan, share)
        check_plan(layout.problem, plan)
        if best is None or _is_better(plan, best.plan):
            best = Planned(layout, plan)
        best = replace(best, seconds=budget.elapsed)
        if interrupted:
            raise PlanningInterrupted(best)
        if plan.has_offsets and layout.problem.capacity is not None and objective in (None, "fit"):
            break  # it fits, as asked
    assert best is not None  # there is at least one layout
    return best


def layouts(loaded: Loaded, *, in_place: bool) -> list[Loaded]:
    """Return the layouts that a model may have; first the one that writes over nothing.

    Parameters
    ----------
    loaded
        A model, or a problem, which has one layout.
    in_place
        Whether operators may write over inputs; where the model was loaded so, they may.

    Raises
    ------
    MemplanError
        If its problem is not that of its graph any more.
    """
    if loaded.graph is None or not (in_place or loaded.in_place):
        return [loaded]
    apart = laid_out(loaded, in_place=False)
    try:
        shared = laid_out(loaded, in_place=True)
    except (GraphError, ProblemError):
        return [apart]  # pins forbid the other
    return [apart] if shared.problem.same_rows(apart.problem) else [apart, shared]


def layout_of(loaded: Loaded, plan: Plan, *, in_place: bool) -> Loaded:
    """Return the layout of a model that a plan is for.

    Parameters
    ----------
    loaded, in_place
        See `layouts`.
    plan
        Made before, by this program or another one.

    Raises
    ------
    PlanError
        What the referee says, if it is for none of them.
    """
    possible = layouts(loaded, in_place=in_place)
    for layout in possible:
        if plan.fingerprint in (None, layout.problem.fingerprint) and _fits(layout.problem, plan):
            return layout
    ids = set(plan.ids)
    nearest = min(possible, key=lambda each: len(ids.symmetric_difference(each.problem.ids)))
    verify(nearest, plan)
    return nearest


def _load_model(
    model: str | os.PathLike[str] | Asked,
    capacity: int | None,
    dims: Mapping[str, int] | None,
    include: Iterable[str] | None,
    pins: bool,
) -> Loaded:
    if isinstance(model, (str, os.PathLike)):
        return load(model, capacity=capacity, dims=dims, include=include, pins=pins)
    if dims is not None or include is not None or not pins:
        raise MemplanError("dims, include and pins say how a file is read; this was read before")
    loaded = model if isinstance(model, Loaded) else of_problem(problem_of(model))
    if capacity is None:
        return loaded
    return replace(loaded, problem=loaded.problem.with_capacity(capacity))


class _Budget:
    """The time and the nodes that are left for all searches to come."""

    def __init__(self, timeout: float | None, nodes: int | None) -> None:
        self._begun = time.perf_counter()
        self._timeout = check_seconds(timeout)
        self._nodes = None if nodes is None else check_whole(nodes, "nodes", 1, MAX_COUNT)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._begun

    def share(self, searches: int) -> Budget:
        """Return an equal share of what is left for the next of so many searches."""
        timeout, nodes = self._timeout, self._nodes
        return Budget(
            None if timeout is None else max(0.0, timeout - self.elapsed) / searches,
            None if nodes is None else max(1, nodes // searches),
        )

    def spend(self, plan: Plan, share: Budget) -> None:
        """Take off the nodes of a search; the clock goes by itself."""
        if self._nodes is not None and share.nodes is not None:
            used = plan.stats.get("nodes", share.nodes)
            self._nodes -= min(used if isinstance(used, int) else share.nodes, share.nodes)


def _is_better(one: Plan, other: Plan) -> bool:
    """Whether a plan is the better answer: `infeasible` only where that goes for every layout."""
    if one.peak is not None and other.peak is not None:
        return one.peak < other.peak
    if one.peak is None and other.peak is None:
        return one.status is Status.UNKNOWN and other.status is Status.INFEASIBLE
    return one.peak is not None


def _fits(problem: Problem, plan: Plan) -> bool:
    try:
        verify(problem, plan)
    except PlanError:
        return False
    return True
