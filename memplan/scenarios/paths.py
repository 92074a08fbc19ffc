"""Plans for paths of control flow; the program chooses one of them while it runs.

The conservative plan has room for every branch. A path is the part of the program that runs if
some conditions are known; its plan needs room only for that part. A condition may be computed
inside the program, and then the plan is chosen in the middle of a run:

    steps before the choice      same offsets in all plans, so that nothing moves
    steps after it               each path has the offsets of its own plan

Buffers that are in memory at the choice or before it are therefore pinned: to the offsets of a
plan of the whole program, of these buffers alone, or of one path. The best of these is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from memplan import solvers
from memplan.base.errors import MemplanError, NoPlanError, PlanError, listed, quoted
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan, Status
from memplan.programs.graph import Layout
from memplan.programs.graph.paths import (
    BEFORE_RUN,
    Choice,
    find_choices,
    find_first_use,
    list_paths,
    narrow,
)
from memplan.programs.sources import Loaded
from memplan.programs.sources.loaded import explain_bare, make_labels
from memplan.referee import verify
from memplan.solvers.planning import Planned, plan_model
from memplan.solvers.refereed import NODES, check_plan, quick_plan
from memplan.solvers.stopping import is_stopped, stoppable

__all__ = ["MOST_PATHS", "PathPlan", "PathPlans", "list_choices", "plan_paths"]

MOST_PATHS = 16  # paths that are planned if the caller names none
_MOST_RUNS = 4096  # runs that are compared with the paths, to find out whether these are complete
_MOST_RANKED = 64  # paths with a single choice that are compared by load
_MOST_LEADERS = 3  # paths whose own best plan is tried as the source of pins


@dataclass(frozen=True)
class PathPlan:
    """The plan of one path.

    Attributes
    ----------
    choices
        The branch of each choice that is made, by name; other choices are open, and the plan has
        room for all of their branches.
    step
        The step of the whole program before which the path must be known: that of its last choice
        whose condition the program computes, or -1 if the caller knows all conditions. Buffers
        that are needed before have the same offsets as in `PathPlans.fallback`.
    planned
        The program on this path, and its plan, which the referee has accepted.
    """

    choices: Mapping[str, str]
    step: int
    planned: Planned

    @property
    def name(self) -> str:
        """The choices in one word: "cond=then,mode=else"."""
        return ",".join(f"{choice}={branch}" for choice, branch in self.choices.items())

    @property
    def peak(self) -> int:
        """The bytes that a run on this path needs."""
        return _peak(self.planned.plan)


@dataclass(frozen=True)
class PathPlans:
    """The plans of several paths of a program; one of them is chosen at run time.

    Attributes
    ----------
    choices
        The operators that choose between branches, in the order of the program.
    conservative
        The best plan of the whole program by itself, to compare with.
    fallback
        The plan of the whole program with which runs begin, and which they keep if no path
        applies. Buffers that are needed before a path is known have the same offsets in both.
    paths
        The plans of the paths, in the order in which `choose` looks at them.
    complete
        Whether every run is on one of the paths.
    single
        Whether the paths are those that make a single choice, because more than 16 paths make all
        choices.
    interrupted
        Whether Ctrl-C ended the search; these are the best plans so far.
    """

    choices: tuple[Choice, ...]
    conservative: Planned
    fallback: Planned
    paths: tuple[PathPlan, ...]
    complete: bool
    single: bool = False
    interrupted: bool = False

    @property
    def peak(self) -> int:
        """The bytes that are enough for every run."""
        peaks = [each.peak for each in self.paths]
        return max(peaks if self.complete else [*peaks, _peak(self.fallback.plan)])

    def verify(self) -> None:
        """Check every plan, and that no buffer moves when a run continues with that of a path.

        Raises
        ------
        PlanError
            If one is wrong.
        """
        whole = self.fallback
        assert whole.loaded.layout is not None
        verify(whole.problem, whole.plan)
        first = dict(zip(whole.problem.ids, find_first_use(whole.loaded.layout), strict=True))
        for path in self.paths:
            problem, plan = path.planned.problem, path.planned.plan
            verify(problem, plan)
            for id in problem.ids:
                if first[id] < path.step and plan.offset(id) != whole.plan.offset(id):
                    raise PlanError(
                        f"buffer {quoted(id)} is needed before path {quoted(path.name)} is known, "
                        "and lies elsewhere in its plan"
                    )

    def choose(self, known: Mapping[str, str]) -> PathPlan | None:
        """Return the path whose plan the run continues with; `None` stands for the fallback.

        Call it before the run, and again whenever a condition becomes known, with all conditions
        that are known by then. Once it has returned a path, it returns the same one until the end
        of the run.

        Parameters
        ----------
        known
            The branch of each choice that has been made so far, by their names.

        Examples
        --------
        >>> plans.choose({})  # doctest: +SKIP
        >>> plans.choose({"cond": "then_branch"}).peak  # doctest: +SKIP
        4096
        """
        for path in self.paths:
            if path.choices.items() <= known.items():
                return path
        return None


def list_choices(loaded: Loaded) -> tuple[Choice, ...]:
    """Return the operators of a program that choose between branches; none without a graph."""
    if loaded.layout is None:
        return ()
    return find_choices(loaded.layout.graph, loaded.layout.lives)


@stoppable()
def plan_paths(
    loaded: Loaded,
    paths: Iterable[Mapping[str, str]] | None = None,
    *,
    known: Iterable[str] | None = None,
    in_place: bool = False,
    nodes: int = NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> PathPlans:
    """Plan the paths of a program that chooses between branches, each by itself.

    Parameters
    ----------
    loaded
        A program, as `memplan.load` returns it.
    paths
        For each path: the name of a branch, or an unambiguous beginning of it, by the name of its
        choice. By default all paths; if these are more than 16, the sixteen with the smallest load
        among the paths that make a single choice.
    known
        The choices whose conditions the caller knows before the run. By default those whose
        condition is an input of the program: a "bool" with one element.
    in_place
        Whether operators may write over inputs; the layout with the better conservative plan is
        used for all paths.
    nodes
        Search nodes for each plan. There are up to five rounds of plans of all paths.
    timeout
        Seconds for each plan, or `None`. A clock makes the answer depend on the machine.
    threads, seed
        As in `memplan.solve`.

    Raises
    ------
    MemplanError
        If the program has no operator that chooses between branches, or no such choice or branch
        as named; if a path is named twice, contradicts itself, or is never chosen because another
        one is chosen earlier; if a condition is computed inside a program on several streams,
        whose operators have no one order; and if no plan was found within the budget.
    KeyboardInterrupt
        On Ctrl-C before there are plans; after that, the best ones are returned.
    """
    solve = partial(quick_plan, nodes=nodes, timeout=timeout, threads=threads, seed=seed)
    free = replace(loaded, problem=loaded.problem.with_capacity(None))
    if loaded.graph is None:
        raise MemplanError(explain_bare(loaded.source, "so that no path is chosen"))
    choices = list_choices(loaded)
    if not choices:
        raise MemplanError(
            "no operator outside of loops chooses between branches, so that all runs are on one "
            "path; `memplan plan` plans it"
        )
    steps = _find_steps(choices, known)
    conservative = plan_model(
        free, in_place=in_place, nodes=nodes, timeout=timeout, threads=threads, seed=seed
    )
    layout, problem = conservative.loaded.layout, conservative.problem
    assert layout is not None
    every = list_paths(choices, MOST_PATHS)
    if paths is not None:
        chosen = _find_paths(choices, paths)
    else:
        chosen = _rank(layout, problem, choices) if every is None else every
    if any(steps[index] != BEFORE_RUN for path in chosen for index in path):
        _refuse_streams(layout, choices, steps)
    runs = list_paths(choices, _MOST_RUNS) or [{}]
    complete = all(any(path.items() <= run.items() for path in chosen) for run in runs)
    parts = [_make_part(conservative.loaded, choices, path, steps) for path in chosen]
    fallback, plans = _Round(conservative, parts, complete, solve).find_plans()
    made = [
        PathPlan(
            {choices[index].name: choices[index].branches[at] for index, at in part.path.items()},
            part.step,
            Planned(part.loaded, plan),
        )
        for part, plan in zip(parts, plans, strict=True)
    ]
    made.sort(key=lambda each: (each.step, each.peak, -len(each.choices)))
    _refuse_unreachable(made)
    single = paths is None and every is None
    begun = replace(conservative, plan=fallback)
    return PathPlans(choices, conservative, begun, tuple(made), complete, single, is_stopped())


@dataclass(frozen=True)
class _Part:
    """A path, its program, and the rows of the whole problem that it contains."""

    path: Mapping[int, int]
    loaded: Loaded
    rows: Column
    step: int


def _make_part(
    loaded: Loaded, choices: Sequence[Choice], path: Mapping[int, int], steps: Sequence[int]
) -> _Part:
    assert loaded.layout is not None
    layout, rows = narrow(loaded.layout, loaded.problem, choices, path)
    narrowed = replace(
        loaded,
        problem=layout.problem,
        labels=make_labels(layout),
        graph=layout.graph,
        layout=layout,
        figures=(),
    )
    return _Part(path, narrowed, rows, max((steps[index] for index in path), default=BEFORE_RUN))


class _Round:
    """Plans all paths with the same pins for shared buffers, from several sources of pins."""

    def __init__(
        self,
        conservative: Planned,
        parts: Sequence[_Part],
        complete: bool,
        solve: Callable[[Problem], Plan],
    ) -> None:
        assert conservative.loaded.layout is not None
        self._whole, self._parts = conservative, parts
        self._complete, self._solve = complete, solve
        self._first = find_first_use(conservative.loaded.layout)
        last = max((part.step for part in parts), default=BEFORE_RUN)
        self._shared = np.flatnonzero(self._first < last)

    def find_plans(self) -> tuple[Plan, list[Plan]]:
        """Return the fallback, and the plan of each path."""
        problem = self._whole.problem
        best: tuple[tuple[int, int], Plan, list[Plan]] | None = None
        for pins in self._iterate_pins():
            fallback, plans = self._whole.plan, []
            if not np.array_equal(pins, _offsets(fallback)[self._shared]):
                fallback = self._plan(problem, problem.ids, self._shared, pins)
            for part in self._parts:
                mine = self._first[self._shared] < part.step
                rows = self._shared[mine]
                here = np.isin(rows, part.rows)
                free = part.loaded.problem
                plans.append(self._plan(free, problem.ids, rows[here], pins[mine][here]))
            peaks = [_peak(plan) for plan in plans]
            enough = max(peaks if self._complete else [*peaks, _peak(fallback)], default=0)
            score = enough, sum(peaks)
            if best is None or score < best[0]:
                best = score, fallback, plans
            if all(plan.status == "optimal" for plan in (fallback, *plans)):
                break  # no pins can serve them better
        assert best is not None  # there is at least one source of pins
        self._check(best[1], best[2])
        return best[1], best[2]

    def _iterate_pins(self) -> Iterator[Column]:
        """Yield offsets of the shared rows, from plans in which they overlap on no path."""
        yield _offsets(self._whole.plan)[self._shared]
        if not len(self._shared):
            return
        largest = sorted(self._parts, key=lambda part: -part.loaded.problem.max_load)
        for rows in (self._shared, *(part.rows for part in largest[:_MOST_LEADERS])):
            together = np.union1d(self._shared, rows)
            # The lifetimes are those of the whole program, so the pins suit all paths.
            plan = self._solve(self._whole.problem.subset(together))
            yield _offsets(plan)[np.searchsorted(together, self._shared)]

    def _plan(self, problem: Problem, ids: Sequence[str], rows: Column, pins: Column) -> Plan:
        """Plan with the shared rows pinned; return a plan of the problem without these pins.

        It is optimal only if no plan without these pins needs less.
        """
        at = {ids[row]: pin for row, pin in zip(rows.tolist(), pins.tolist(), strict=True)}
        found = self._solve(problem.with_pins(at))
        bound = found.lower_bound if not at else solvers.lower_bound(problem)
        status = Status.OPTIMAL if _peak(found) == bound else Status.FEASIBLE
        plan = Plan.of(
            problem,
            _offsets(found),
            status=status,
            lower_bound=bound,
            solver=found.solver,
            stats=found.stats,
        )
        return check_plan(problem, plan)

    def _check(self, fallback: Plan, plans: Sequence[Plan]) -> None:
        """Check that no buffer moves when a run continues with the plan of a path."""
        for part, plan in zip(self._parts, plans, strict=True):
            shared = self._first[part.rows] < part.step
            if (_offsets(plan)[shared] != _offsets(fallback)[part.rows[shared]]).any():
                raise RuntimeError("the plan of a path moves what is there before it is known")


def _offsets(plan: Plan) -> Column:
    _peak(plan)
    assert plan.offsets is not None
    return plan.offsets


def _peak(plan: Plan) -> int:
    if plan.peak is None:
        raise NoPlanError(
            f"no plan of a path was found ({plan.status}); allow more nodes or more time"
        )
    return plan.peak


def _find_steps(choices: Sequence[Choice], known: Iterable[str] | None) -> list[int]:
    """Return for each choice the step at which its condition is known."""
    if known is None:
        return [BEFORE_RUN if choice.given else choice.step for choice in choices]
    given = {_find_choice(choices, name) for name in known}
    return [BEFORE_RUN if at in given else choice.step for at, choice in enumerate(choices)]


def _find_choice(choices: Sequence[Choice], name: str) -> int:
    for index, choice in enumerate(choices):
        if choice.name == name:
            return index
    names = listed([choice.name for choice in choices])
    raise MemplanError(f"no operator {quoted(name)} chooses between branches; those are {names}")


def _find_branch(choice: Choice, name: str) -> int:
    found = [at for at, branch in enumerate(choice.branches) if branch == name]
    found = found or [at for at, branch in enumerate(choice.branches) if branch.startswith(name)]
    if len(found) != 1:
        which = "more than one branch" if found else "no branch"
        branches = listed(list(choice.branches))
        raise MemplanError(
            f"{quoted(choice.name)} has {which} {quoted(name)}; its branches are {branches}"
        )
    return found[0]


def _find_paths(
    choices: Sequence[Choice], paths: Iterable[Mapping[str, str]]
) -> list[dict[int, int]]:
    found: list[dict[int, int]] = []
    for path in paths:
        indices = {_find_choice(choices, name): branch for name, branch in path.items()}
        if not indices:
            raise MemplanError("a path makes at least one choice; name it with its branch")
        made = {index: _find_branch(choices[index], indices[index]) for index in sorted(indices)}
        for index in made:
            _refuse_contradiction(choices, made, index)
        if made in found:
            raise MemplanError(f"the path {quoted(_name_path(choices, made))} is named twice")
        found.append(made)
    if not found:
        raise MemplanError("no path is named; name one, or leave paths out to plan all")
    return found


def _refuse_contradiction(choices: Sequence[Choice], path: Mapping[int, int], index: int) -> None:
    """Refuse a choice in a branch that does not run on this path."""
    inside = choices[index].inside
    while inside is not None:
        outer, branch = inside
        if path.get(outer, branch) != branch:
            raise MemplanError(
                f"{quoted(choices[index].name)} is in branch "
                f"{quoted(choices[outer].branches[branch])} of {quoted(choices[outer].name)}, "
                f"which does not run on the path {quoted(_name_path(choices, path))}"
            )
        inside = choices[outer].inside


def _name_path(choices: Sequence[Choice], path: Mapping[int, int]) -> str:
    return ",".join(f"{choices[at].name}={choices[at].branches[to]}" for at, to in path.items())


def _rank(layout: Layout, problem: Problem, choices: Sequence[Choice]) -> list[dict[int, int]]:
    """Return the paths with a single choice that have the smallest loads.

    Only choices with a great load while they run can lower the greatest load, so these come first.
    """
    whole = Loads(problem)

    def measure(choice: Choice) -> int:
        start, end = layout.lives.spans[choice.operator]
        during = (whole.start < end) & (whole.end > start)
        return int(whole.load[during].max(initial=0))

    worst = [measure(choice) for choice in choices]
    singles = (
        {index: branch}
        for index in sorted(range(len(choices)), key=lambda index: -worst[index])
        for branch in range(len(choices[index].branches))
    )
    loads = [
        (narrow(layout, problem, choices, path)[0].problem.max_load, number, path)
        for number, path in enumerate(islice(singles, _MOST_RANKED))
    ]
    return [path for _, _, path in sorted(loads, key=lambda each: each[:2])[:MOST_PATHS]]


def _refuse_streams(layout: Layout, choices: Sequence[Choice], steps: Sequence[int]) -> None:
    if layout.graph.has_streams:
        computed = next(at for at, step in enumerate(steps) if step != BEFORE_RUN)
        raise MemplanError(
            f"the condition of {quoted(choices[computed].name)} is computed inside a program on "
            "several streams, where no order says what is in memory by then; plan paths whose "
            "conditions are known before the run"
        )


def _refuse_unreachable(paths: Sequence[PathPlan]) -> None:
    """Refuse a path if another one is always chosen before it."""
    for at, path in enumerate(paths):
        for other in paths[:at]:
            if other.choices.items() <= path.choices.items() and other.step < path.step:
                raise MemplanError(
                    f"the path {quoted(path.name)} is never chosen: {quoted(other.name)} is known "
                    "earlier, and it is chosen then; leave one of them out"
                )
