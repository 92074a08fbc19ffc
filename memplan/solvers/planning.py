"""Plans a model: solves each of its layouts within one budget, and returns the best valid plan.

An operator that writes its result over an input needs less memory while it runs, but then input
and result are one buffer, which cannot be placed in two parts. So if operators may do this, a
program has two layouts, and only their plans show which one is better.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memplan import solvers
from memplan.base.drawing import find_artist
from memplan.base.errors import GraphError, MemplanError, PlanError, ProblemError, quoted
from memplan.base.notes import Code, Note
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.plan import Plan, Status
from memplan.programs.graph.states import add_states, find_states
from memplan.programs.sources import Loaded, detect, lay_out_again, load, of_problem
from memplan.programs.sources.loaded import note_limit
from memplan.programs.sources.options import Options
from memplan.programs.sources.registry import find_format, import_runtime
from memplan.referee import verify, verify_shared
from memplan.solvers import Budget, Interrupted, Progress, Round
from memplan.solvers.limits import MAX_COUNT, check_seconds, check_whole
from memplan.solvers.refereed import find_plan
from memplan.solvers.stopping import is_asked, is_stopped, stoppable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from memplan.programs.sources.options import Board

__all__ = [
    "Planned",
    "PlanningInterrupted",
    "SharedBudget",
    "capacity_to_load",
    "hold_capacity",
    "layout_of",
    "layouts",
    "leave_to_referee",
    "load_model",
    "plan_model",
    "settle_sizes",
]


@dataclass(frozen=True, repr=False)
class Planned:
    """A model with its plan, which the referee has accepted. It can be used where a problem can.

    Attributes
    ----------
    loaded
        The layout that was planned: problem, labels, graph, notes.
    plan
        The plan of that problem; its status and bound are about this layout only.
    seconds
        The time of all searches together.
    """

    loaded: Loaded
    plan: Plan
    seconds: float = 0.0

    @property
    def problem(self) -> Problem:
        """The problem of the layout that was planned."""
        return self.loaded.problem

    @property
    def in_place(self) -> bool:
        """Whether operators write over inputs in this layout."""
        return self.loaded.in_place

    @property
    def notes(self) -> tuple[Note, ...]:
        """The assumptions and omissions of the reader of the model."""
        return self.loaded.notes

    def __repr__(self) -> str:
        way = "in place" if self.in_place else "apart"
        return f"<Planned: {self.loaded.source}, {way}, {self.plan!r}>"

    def summary(self) -> str:
        """Return the outcome in a few lines of plain text, and the notes."""
        lines = [f"{'format':<12} {self.loaded.source}", self.plan.summary()]
        return "\n".join([*lines, *(f"{'note':<12} {note.text}" for note in self.notes)])

    def plot(self, *, width: float | None = None, load: bool = False) -> Figure:
        """Draw the plan, with colours by operator if the file names operators; extra `plot`.

        Parameters
        ----------
        width, load
            See `memplan.Plan.plot`, also for what it raises.
        """
        classes = [label.operator or label.kind for label in self.loaded.labels]
        return self.plan.plot(self.problem, width=width, classes=classes or None, load=load)

    def _repr_html_(self) -> str:
        return find_artist().write_html("planned", self)


class PlanningInterrupted(Interrupted):
    """Ctrl-C while a model was planned.

    Attributes
    ----------
    planned
        The best plan so far, with its layout; the status of the plan may be `unknown`.
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
    """Plan a model: `memplan plan` and this function give the same plan.

    Parameters
    ----------
    model
        A file that `memplan.load` reads, the result of `memplan.load`, or a problem.
    in_place
        Whether operators may write over inputs that are not needed any more. Then both layouts
        are planned and the better plan is taken; of equally good ones, the plan without such
        writes. If only a fit is asked, the plan without them is taken if it fits. For a model that
        was loaded with `in_place=True` this is always on.
    capacity
        In bytes, in place of the model's own. For the file of a TFLite model it limits the whole
        arena of TensorFlow Lite Micro: the plan gets what that needs beside it less, as measured
        where tflite-micro is installed; elsewhere a note says that it is unknown. For a model that
        was loaded before, it limits the plan.
    dims, include, pins
        See `memplan.load`; for a file only.
    solver, objective, threads, seed, progress, trace, **options
        See `memplan.solve`.
    timeout, nodes
        See `memplan.solve`; the limits are for all searches together. The first of two layouts
        gets half of them, and the second all that is left then.
    proof
        See `memplan.solve`. A proof is about one problem, so there can be none if operators may
        write over inputs.

    Returns
    -------
    Planned
        If no plan was found, the plan has no offsets, and its status is `infeasible` (in every
        layout) or `unknown`.

    Raises
    ------
    PlanningInterrupted
        On Ctrl-C, with the best plan so far. As a part of another question it is returned.
    MemplanError
        As `memplan.load` and `memplan.solve` do.

    Examples
    --------
    >>> import memplan as mp
    >>> planned = mp.plan_model(mp.Problem([mp.Buffer("a", 0, 2, 4), mp.Buffer("b", 1, 3, 4)]))
    >>> planned.plan.peak, planned.in_place
    (8, False)
    """
    solvers.registry.check_libraries(solvers.registry.parse(solver)[0])
    budget = SharedBudget(timeout, nodes)
    possible = layouts(load_model(model, capacity, dims, include, pins), in_place=in_place)
    if proof is not None and (in_place or possible[-1].in_place):
        raise MemplanError("a proof is of one problem; leave in-place choices out, or the proof")
    best: Planned | None = None
    is_part = is_asked()
    with stoppable() as stop:
        for place, layout in enumerate(possible):
            share = leave_to_referee(budget.share(len(possible) - place), layout.problem)
            plan = find_plan(
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
            budget.spend(plan, share)
            if best is None or _is_better(plan, best.plan):
                best = Planned(layout, plan)
            if stop.is_set:
                break
            is_fit = layout.problem.capacity is not None and objective in (None, "fit")
            if plan.has_offsets and is_fit:
                break  # the objective is a fit, and this plan fits
    assert best is not None  # there is at least one layout
    best = _with_limit(replace(best, seconds=budget.elapsed))
    if stop.is_set and not is_part:
        raise PlanningInterrupted(best)
    return best


_REFEREE = 2e-6  # seconds for each buffer
_MOST_OF_REFEREE = 0.2  # of the time of a search


def leave_to_referee(share: Budget, problem: Problem) -> Budget:
    """Return the budget of a search whose plan is then checked within the same limit."""
    if share.seconds is None:
        return share
    check = min(_REFEREE * len(problem), _MOST_OF_REFEREE * share.seconds)
    return replace(share, seconds=share.seconds - check)


def _with_limit(planned: Planned) -> Planned:
    """Return a plan with a note if its arena is larger than the host's limit on blocks."""
    loaded, peak = planned.loaded, planned.plan.peak
    limit = loaded.block_limit
    if limit is None or peak is None or peak <= limit:
        return planned
    if any(note.code is Code.BLOCK_LIMIT for note in loaded.notes):
        return planned
    return replace(planned, loaded=replace(loaded, notes=(*loaded.notes, note_limit(limit))))


def layouts(loaded: Loaded, *, in_place: bool) -> list[Loaded]:
    """Return the layouts that a model may have; the first is the one without in-place writes.

    Parameters
    ----------
    loaded
        A model, or a problem, which has one layout.
    in_place
        Whether operators may write over inputs. They also may if the model was loaded that way.

    Raises
    ------
    MemplanError
        If the problem of the model was changed after its graph was laid out.
    """
    if loaded.graph is None or not (in_place or loaded.in_place):
        return [loaded]
    apart = lay_out_again(loaded, in_place=False)
    try:
        shared = lay_out_again(loaded, in_place=True)
    except (GraphError, ProblemError):
        return [apart]  # in-place writes contradict pins
    return [apart] if shared.problem.same_rows(apart.problem) else [apart, shared]


def layout_of(loaded: Loaded, plan: Plan, *, in_place: bool) -> Loaded:
    """Return the layout of a model that a plan is for.

    Parameters
    ----------
    loaded, in_place
        See `layouts`.
    plan
        A plan that was made earlier, by memplan or another program.

    Raises
    ------
    PlanError
        If it is a plan of none of them; the sentence is the referee's. Also if states that it keeps
        in a shared arena are not those of the program, or meet its buffers.
    """
    possible, ids = layouts(loaded, in_place=in_place), set(plan.ids)
    for layout in possible:
        if plan.fingerprint in (None, layout.problem.fingerprint) and _fits(layout.problem, plan):
            found = layout
            break
    else:
        found = min(possible, key=lambda each: len(ids.symmetric_difference(each.problem.ids)))
        verify(found, plan)
    if plan.shared is not None:
        verify_shared(plan)
        verify(*place_states(found, plan))
    return found


def capacity_to_load(path: str | os.PathLike[str], capacity: int | None) -> int | None:
    """Return the capacity that the plan of a file has; not yet where it limits a whole arena."""
    return None if capacity is None or find_format(detect(path)).has_arena else capacity


def hold_capacity(
    loaded: Loaded,
    path: str | os.PathLike[str],
    capacity: int | None,
    board: Board | None = None,
) -> Loaded:
    """Return a model whose whole arena has a capacity, if its runtime has one arena for all."""
    if capacity is None or not find_format(loaded.source).has_arena:
        return loaded
    arena = import_runtime(loaded.source, "arena")
    held: Loaded = arena.hold_capacity(loaded, Path(path), capacity, board)
    return held


def settle_sizes(
    loaded: Loaded, path: str | os.PathLike[str], options: Options, read: Callable[..., Loaded]
) -> Loaded:
    """Return a model with declared shapes that count against inferred ones.

    They do where its runtime is installed and makes them; a note says so.

    Parameters
    ----------
    loaded, path, options
        The model, its file, and how it was read.
    read
        Reads the file again, with other sizes as `dims`.
    """
    if all(note.code is not Code.SHAPE_OVERRIDDEN for note in loaded.notes):
        return loaded
    settled = import_runtime(loaded.source, "measure").settle(Path(path), options)
    if settled is None:
        return loaded
    other = read(dims={**options.dims, **settled.dims})
    return replace(other, notes=(*other.notes, settled.note))


def load_model(
    model: str | os.PathLike[str] | Asked,
    capacity: int | None = None,
    dims: Mapping[str, int] | None = None,
    include: Iterable[str] | None = None,
    pins: bool = True,
) -> Loaded:
    """Return a model as `plan_model` plans it, with the sizes that its own runtime computes.

    Parameters, and errors, are those of `plan_model`.
    """
    if isinstance(model, (str, os.PathLike)):
        limit = capacity_to_load(model, capacity)
        kinds = None if include is None else tuple(include)

        read = partial(load, model, capacity=limit, include=kinds, pins=pins)
        found = settle_sizes(read(dims=dims), model, Options(dims=dims or {}), read)
        return hold_capacity(found, model, capacity)
    if dims is not None or include is not None or not pins:
        raise MemplanError("dims, include and pins say how a file is read; this was read before")
    loaded = model if isinstance(model, Loaded) else of_problem(problem_of(model))
    if capacity is None:
        return loaded
    return replace(loaded, problem=loaded.problem.with_capacity(capacity))


def place_states(loaded: Loaded, plan: Plan) -> tuple[Problem, Plan]:
    """Return a problem with the states that a plan keeps in a shared arena, and the plan of both.

    Parameters
    ----------
    loaded
        The program in the layout of the plan, as `layout_of` returns it.
    plan
        Its plan; one of `memplan.scenarios.together.plan_together` may place states beside its
        buffers.

    Raises
    ------
    PlanError
        If it keeps what the program does not have, or as more or fewer bytes.
    """
    kept = () if plan.shared is None else plan.shared.kept
    places = {each.id: each for each in kept if each.id not in plan}
    if not places:
        return loaded.problem, plan
    states = () if loaded.layout is None else find_states(loaded.layout)
    problem = loaded.problem
    if loaded.layout is not None:
        problem = add_states(problem, loaded.layout, states)
    rows = {id: row for row, id in enumerate(problem.ids) if row >= len(loaded.problem)}
    for id, place in places.items():
        if id not in rows or int(problem.size[rows[id]]) != place.size:
            raise PlanError(f"the plan keeps {place.size} bytes as {quoted(id)}; no state is that")
    if len(rows) != len(places):
        missing = next(id for id in rows if id not in places)
        raise PlanError(f"the plan keeps states, but not {quoted(missing)}")
    offsets = [plan.offset(id) for id in loaded.problem.ids]
    placed = Plan.of(
        problem.with_capacity(loaded.problem.capacity),
        [*offsets, *(places[id].offset for id in rows)],
        status=plan.status,
        lower_bound=plan.lower_bound,
        solver=plan.solver,
        stats=plan.stats,
    )
    return problem.with_capacity(loaded.problem.capacity), placed


class SharedBudget:
    """A budget of time and nodes that several searches share; after Ctrl-C no time is left."""

    def __init__(self, timeout: float | None, nodes: int | None) -> None:
        self._begun = time.perf_counter()
        self._timeout = check_seconds(timeout)
        self._nodes = None if nodes is None else check_whole(nodes, "nodes", 1, MAX_COUNT)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._begun

    def share(self, searches: int) -> Budget:
        """Return the budget of the next search, if so many searches share what is left."""
        timeout, nodes = 0.0 if is_stopped() else self._timeout, self._nodes
        return Budget(
            None if timeout is None else max(0.0, timeout - self.elapsed) / searches,
            None if nodes is None else max(1, nodes // searches),
        )

    def spend(self, plan: Plan, share: Budget) -> None:
        """Subtract the nodes that a search has used; the clock needs no accounting."""
        if self._nodes is not None and share.nodes is not None:
            used = plan.stats.get("nodes", share.nodes)
            self._nodes -= min(used if isinstance(used, int) else share.nodes, share.nodes)


def _is_better(one: Plan, other: Plan) -> bool:
    """Return whether `one` is the better answer of the two.

    `infeasible` is the worst, so that it is the answer only if every layout is infeasible.
    """
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
