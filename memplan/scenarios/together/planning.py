"""Plans programs that share one arena, and holds the result against the referee."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from memplan.base.errors import InfeasibleError, MemplanError, NoPlanError, PlanError, listed
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.plan import Kept, Plan, Shared, Status
from memplan.programs.sources import Loaded
from memplan.referee import Tenant, verify_together
from memplan.scenarios.together.joint import join, stack
from memplan.scenarios.together.programs import (
    Program,
    check_names,
    find_pairs,
    keep_tensors,
    name_programs,
)
from memplan.solvers.planning import Planned, SharedBudget, load_model, plan_model
from memplan.solvers.refereed import check_plan, find_plan
from memplan.solvers.stopping import stoppable

__all__ = ["Joined", "Together", "join_programs", "plan_alone", "plan_together"]


@dataclass(frozen=True, repr=False)
class Together:
    """Programs in one arena; the referee has accepted their plans.

    Attributes
    ----------
    names
        The name of each program.
    programs
        Each program with its plan: its offsets in the shared arena.
    problems
        What is placed of each program: its buffers, and its states if they are kept.
    kept
        By program: the ids of what keeps its bytes until it runs again.
    overlap
        Pairs of programs, by number, that may run at the same time.
    problem, plan
        All programs as one problem, with ids "program/buffer", and its plan. Its status and its
        bound are about the arena.
    separate
        The bytes that the programs need in an arena each, with copies of what is kept beside them.
    by_hand
        The bytes that they need if the largest arena is shared, and what is kept is copied out of
        it. Programs that may run at the same time then have arenas of their own.
    seconds
        Wall time.
    interrupted
        Whether Ctrl-C ended the search; this is the best so far.
    """

    names: tuple[str, ...]
    programs: tuple[Planned, ...]
    problems: tuple[Problem, ...]
    kept: tuple[tuple[str, ...], ...]
    overlap: tuple[tuple[int, int], ...]
    problem: Problem
    plan: Plan
    separate: int
    by_hand: int
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def peak(self) -> int:
        """The bytes of the arena."""
        assert self.plan.peak is not None
        return self.plan.peak

    def offset(self, program: str, id: str) -> int:
        """Return the offset of a buffer or state of a program, in bytes."""
        return self.plan.offset(f"{program}/{id}")

    def __repr__(self) -> str:
        return f"<Together: {', '.join(self.names)}, {self.plan!r}>"

    def verify(self) -> int:
        """Check all plans with the referee again, and return the bytes of the arena.

        Raises
        ------
        PlanError
            As `memplan.referee.verify_together`.
        """
        tenants = []
        for name, problem, kept in zip(self.names, self.problems, self.kept, strict=True):
            offsets = [self.offset(name, id) for id in problem.ids]
            tenants.append(Tenant(name, problem, Plan.of(problem, offsets), kept))
        return verify_together(tenants, self.overlap)


def plan_together(
    models: Iterable[str | os.PathLike[str] | Loaded | Problem],
    *,
    names: Sequence[str] | None = None,
    keep: Iterable[str] = (),
    overlap: Iterable[tuple[str, str]] = (),
    in_place: bool = False,
    capacity: int | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Together:
    """Plan programs that share one arena, and run one after another in any order.

    Parameters
    ----------
    models
        Files that `memplan.load` reads, its results, or problems; at least two.
    names
        A name for each; by default that of its file.
    keep
        What keeps its bytes until its program runs again, though others run: names of tensors,
        "program:tensor" where several programs have one of that name, or a kind for all tensors of
        it: "outputs", "inputs" or "program:outputs". With "states", the variables that the programs
        read and assign are placed in the arena too, for a runtime that leaves their place to the
        caller; TFLM does not.
    overlap
        Pairs of names of programs that may run at the same time.
    in_place
        See `memplan.plan_model`.
    capacity
        Of the shared arena, in bytes; by default the least of those in the files.
    timeout, nodes
        For all searches together: half for the programs by themselves, half for the arena.
    threads, seed
        See `memplan.solve`.

    Raises
    ------
    MemplanError
        One sentence: for fewer than two programs, a name that is unknown or of several, a program
        that may overlap with itself, addresses that only some of the programs reserve, an arena
        that the capacity does not hold; and as `memplan.load` and `memplan.plan_model`.
    NoPlanError
        If no plan was found within the budget.
    KeyboardInterrupt
        On Ctrl-C before there is a plan; after that, the best one is returned.

    Examples
    --------
    >>> import memplan as mp
    >>> from memplan.scenarios.together import plan_together
    >>> one = mp.Problem([mp.Buffer("a", 0, 2, 60), mp.Buffer("result", 1, 3, 8)])
    >>> two = mp.Problem([mp.Buffer("b", 0, 1, 64), mp.Buffer("answer", 1, 2, 8)])
    >>> found = plan_together([one, two], names=["one", "two"], keep=["result", "answer"])
    >>> found.peak, found.by_hand, str(found.plan.status)
    (76, 84, 'optimal')
    """
    begun = time.perf_counter()
    models, budget = list(models), SharedBudget(timeout, nodes)
    paths = [each if isinstance(each, (str, os.PathLike)) else "program" for each in models]
    called = check_names(name_programs(paths) if names is None else names, len(models))
    pairs = find_pairs(called, overlap)
    given = [load_model(each) for each in models]
    limits = [each.problem.capacity for each in given if each.problem.capacity is not None]
    limit = min(limits, default=None) if capacity is None else capacity
    search: dict[str, Any] = {"threads": threads, "seed": seed}
    with stoppable() as stop:
        alone = [
            plan_alone(name, each, budget, len(given), in_place=in_place, **search)
            for name, each in zip(called, given, strict=True)
        ]
        joined = join_programs(alone, keep, pairs, limit)
        left = budget.share(1).seconds
        half = None if nodes is None else max(1, nodes // 2)
        found = joined.place(timeout=left, nodes=half, **search)
    seconds = time.perf_counter() - begun
    return replace(found, seconds=seconds, interrupted=stop.is_set)


@dataclass(frozen=True)
class Joined:
    """Programs as one problem, before it is placed.

    Attributes
    ----------
    programs
        Each with its own plan, and what it keeps.
    pairs
        Of programs that may run at the same time, by number.
    problem
        All of them, with ids "program/buffer", and the capacity of the arena.
    """

    programs: tuple[Program, ...]
    pairs: tuple[tuple[int, int], ...]
    problem: Problem

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the programs."""
        return tuple(each.name for each in self.programs)

    def place(self, **search: Any) -> Together:
        """Return all programs in one arena; `search` is as for `memplan.solve`.

        Raises
        ------
        InfeasibleError, NoPlanError
            If there is no plan within the capacity, proved or within the budget.
        """
        begun = time.perf_counter()
        problem = self.problem
        plan = find_plan(problem, **search)
        stacked, by_hand, copies = stack(self.programs, self.pairs)
        if not (problem.has_pins or problem.has_reserved or problem.has_groups):
            plan = _better(plan, problem, stacked)
        if plan.offsets is None:
            raise _explain(plan, self.names, problem.capacity)
        arena = plan.peak or 0
        found = Together(
            self.names,
            tuple(
                _with_offsets(each, part, _describe_arena(self, number, part, arena))
                for number, (each, part) in enumerate(
                    zip(self.programs, self.split(plan.offsets), strict=True)
                )
            ),
            tuple(each.problem for each in self.programs),
            tuple(each.kept_ids for each in self.programs),
            self.pairs,
            problem,
            plan,
            separate=sum(each.planned.plan.peak or 0 for each in self.programs) + copies,
            by_hand=by_hand,
            seconds=time.perf_counter() - begun,
        )
        found.verify()
        return found

    def split(self, column: Column) -> list[Column]:
        """Return a column of the joint problem, such as the offsets, by program."""
        ends = [0, *accumulate(len(each.problem) for each in self.programs)]
        return [column[first:end] for first, end in pairwise(ends)]


def join_programs(
    alone: Sequence[Program],
    keep: Iterable[str],
    pairs: tuple[tuple[int, int], ...],
    capacity: int | None,
) -> Joined:
    """Return programs as one problem; see `plan_together`, also for the errors."""
    if len(alone) < 2:
        raise MemplanError("an arena is shared by at least two programs; name more of them")
    programs = tuple(keep_tensors(alone, keep))
    return Joined(programs, pairs, join(programs, pairs, capacity))


def plan_alone(
    name: str, given: Loaded, budget: SharedBudget, count: int, **search: Any
) -> Program:
    """Return one of so many programs with a plan of its own, in half of the budget for all."""
    share = budget.share(1)
    planned = plan_model(
        replace(given, problem=given.problem.with_capacity(None)),
        timeout=None if share.seconds is None else share.seconds / 2 / count,
        nodes=None if share.nodes is None else max(1, share.nodes // 2 // count),
        **search,
    )
    if planned.plan.status is Status.INFEASIBLE:
        some = listed(planned.plan.conflict or planned.problem.ids)
        raise InfeasibleError(f"{name} has no plan by itself: it is proved of {some}")
    if not planned.plan.has_offsets:
        raise NoPlanError(f"no plan of {name} by itself was found in time")
    return Program(name, planned, planned.problem)


def _better(plan: Plan, problem: Problem, offsets: Column) -> Plan:
    """Return the plan, or these offsets if they need less."""
    peak = int((offsets + problem.size).max(initial=0))
    if (plan.peak is not None and plan.peak <= peak) or peak > (problem.capacity or peak):
        return plan
    return check_plan(problem, _claim(problem, offsets, plan.lower_bound, plan.solver))


def _with_offsets(program: Program, offsets: Column, shared: Shared) -> Planned:
    """Return a program at its offsets in the arena; its bound is that of its own arena.

    What is kept of it, states too, is in the `stats` of the plan.
    """
    alone = program.planned
    bound, solver = alone.plan.lower_bound, alone.plan.solver
    plan = _claim(alone.problem, offsets[: program.rows], bound, solver, shared)
    return replace(alone, plan=plan)


def _describe_arena(joined: Joined, number: int, offsets: Column, arena: int) -> Shared:
    """Return what a plan says of the arena; `offsets` are of all that is placed of its program."""
    each, called = joined.programs[number], joined.names
    ids, size = each.problem.ids, each.problem.size
    return Shared(
        each.name,
        called,
        arena,
        tuple(Kept(ids[row], int(size[row]), int(offsets[row])) for row in each.kept),
        tuple(sorted(called[sum(pair) - number] for pair in joined.pairs if number in pair)),
    )


def _claim(
    problem: Problem, offsets: Column, bound: int, solver: str, shared: Shared | None = None
) -> Plan:
    peak = int((offsets + problem.size).max(initial=0))
    status = Status.OPTIMAL if peak == bound else Status.FEASIBLE
    stats = None if shared is None else {"shared": shared.describe()}
    return Plan.of(problem, offsets, status=status, lower_bound=bound, solver=solver, stats=stats)


def _explain(plan: Plan, called: Sequence[str], capacity: int | None) -> PlanError:
    programs = listed(list(called))
    if plan.status is Status.INFEASIBLE:
        return InfeasibleError(f"proved: {programs} do not fit into one arena of {capacity} bytes")
    return NoPlanError(
        f"no plan of {programs} in one arena was found; they need at least {plan.lower_bound} bytes"
    )
