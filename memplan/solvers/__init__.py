"""Solvers take a problem and return a plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from memplan.base.errors import MemplanError, shown
from memplan.problem import Asked, Buffer, Problem
from memplan.problem.plan import Plan
from memplan.solvers import native, registry
from memplan.solvers._proof_file import open_proof
from memplan.solvers.limits import (
    MAX_COUNT,
    MAX_SEED,
    MAX_THREADS,
    check_seconds,
    check_whole,
    count_cpus,
)
from memplan.solvers.native import Bound, Progress, Round, greedy_orders

__all__ = [
    "Bound",
    "Budget",
    "Interrupted",
    "Progress",
    "Round",
    "bound",
    "greedy_orders",
    "lower_bound",
    "solve",
]


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop a search.

    Attributes
    ----------
    seconds
        Limit on wall-clock time, or `None`. A clock makes the answer depend on the machine.
    nodes
        Limit on search nodes (for greedy: placements), or `None`. The answer is the same on every
        machine.
    """

    seconds: float | None = None
    nodes: int | None = None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; not caught by `except Exception`, like any Ctrl-C.

    Attributes
    ----------
    plan
        The best plan so far; its status may be `unknown`.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted")
        self.plan = plan

    def __reduce__(self) -> tuple[type[Interrupted], tuple[Plan]]:
        return Interrupted, (self.plan,)


def solve(
    problem: Asked | Iterable[Buffer] | Any,
    solver: str = "auto",
    objective: str | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    *,
    budget: Budget | None = None,
    progress: Callable[[Progress], object] | None = None,
    trace: Callable[[Round], object] | None = None,
    proof: str | os.PathLike[str] | None = None,
    **options: object,
) -> Plan:
    """Place every buffer of a problem.

    Parameters
    ----------
    problem
        A `Problem`, the result of `memplan.load`, any iterable of `Buffer`, or a pandas or polars
        frame (see `Problem.from_frame`).
    solver
        One of `memplan.solvers.registry.SOLVERS`, optionally with options as on the command line:
        `minimalloc:dominance=off`.
    objective
        "fit" stops at the first plan within the capacity; the default if there is a capacity.
        "min_peak" looks for the smallest peak (within the capacity, if there is one).
    timeout
        Seconds, or `None` for no limit. A clock makes the answer depend on the machine.
    nodes
        Search nodes (for greedy: placements), or `None` for no limit. The answer is the same on
        every machine.
    threads
        Threads of the search; `None` uses one for each available CPU. Their number changes the
        answer only if the clock ends the search. Baselines have one thread.
    seed
        Seed of the search's random choices.
    budget
        May be given in place of `timeout` and `nodes`.
    progress
        Called with a `Progress`, in the thread of the caller, when the best plan or the bound
        changes and about twice a second. An exception that it raises ends the search and is
        raised here.
    trace
        Called in the same way with a `Round`, whenever an engine has answered one question or
        spent one slice of the budget. Baselines have one round. It changes no plan.
    proof
        The file for a proof that no plan is better (docs/proofs.md), which
        `memplan.referee.verify_proof` checks. A complete file is written, or none: only if the plan
        is a proved optimum or the capacity is refuted. The proof has a budget of its own: as many
        nodes as the search, and at least 20 000.
    **options
        Options of the solver, as `memplan solvers NAME` lists them (docs/solvers.md).

    Returns
    -------
    Plan
        Without a plan it has no offsets, and its `status` is `infeasible` or `unknown`. `stats`
        has `solver` (which found the answer), `nodes`, `restarts`, `seconds` by phase and `note`;
        for telamalloc also `backtracks` (all of them) and `major_backtracks`; with `proof`,
        whether the file was written.

    Raises
    ------
    ProblemError
        If buffers or a frame make no well formed problem.
    UnsupportedError
        If the solver lacks a constraint of the problem, or an option.
    MissingExtraError
        If it needs a library that is not installed.
    MemplanError
        If there is no such solver, an argument is out of range, and for "fit" without a capacity.
    FormatError
        If the proof cannot be written.
    Interrupted
        On Ctrl-C, with the best plan so far.
    """
    asked = _as_problem(problem)
    if budget is not None:
        if timeout is not None or nodes is not None:
            raise MemplanError("give either a budget, or timeout and nodes")
        timeout, nodes = budget.seconds, budget.nodes
    name, switches = registry.parse(solver)
    options = switches | options
    registry.check(name, asked, options)
    for callback, given in (("progress", progress), ("trace", trace)):
        if given is not None and not callable(given):
            raise MemplanError(f"{callback} is {shown(given)}; it must be callable")
    known = registry.SOLVERS[name]
    ask = partial(
        _solve_function(known),
        asked,
        solver=name,
        minimize=_must_minimize(objective, asked),
        seconds=check_seconds(timeout),
        nodes=None if nodes is None else check_whole(nodes, "nodes", 1, MAX_COUNT),
        threads=count_cpus()
        if threads is None
        else check_whole(threads, "threads", 1, MAX_THREADS),
        seed=check_whole(seed, "seed", 0, MAX_SEED),
        options={**known.preset, **options},
        progress=progress,
        trace=trace,
    )
    if proof is None:
        plan, interrupted = ask()
    else:
        registry.check_proof(name, asked)
        with open_proof(proof, asked) as file:
            plan, interrupted = ask(proof=file)
    if interrupted:
        raise Interrupted(plan)
    return plan


def lower_bound(problem: Asked | Iterable[Buffer] | Any) -> int:
    """Return a lower bound on the peak, in bytes: no plan has a smaller one.

    Raises
    ------
    ProblemError
        If buffers or a frame make no well formed problem.
    """
    return bound(problem).bytes


def bound(problem: Asked | Iterable[Buffer] | Any) -> Bound:
    """Return a lower bound on the peak with the rule that gave it, and the section.

    Raises
    ------
    ProblemError
        If buffers or a frame make no well formed problem.
    """
    return native.lower_bound(_as_problem(problem))


def _as_problem(given: Asked | Iterable[Buffer] | Any) -> Problem:
    if hasattr(given, "columns"):
        return Problem.from_frame(given)
    found = getattr(given, "problem", given)
    if isinstance(found, Problem):
        return found
    if not isinstance(given, Iterable):
        raise MemplanError(f"a problem must be a Problem, buffers or a frame, not {shown(given)}")
    return Problem(given)


def _solve_function(solver: registry.Solver) -> Callable[..., tuple[Plan, bool]]:
    if solver.core:
        return partial(native.solve, core=solver.core, outside=solver.outside)
    from memplan.solvers import outside  # imported here because it loads the referee

    return outside.solve


def _must_minimize(objective: str | None, problem: Problem) -> bool:
    if objective is None:
        return problem.capacity is None
    if objective not in ("fit", "min_peak"):
        raise MemplanError(f'objective is {shown(objective)}; it must be "fit" or "min_peak"')
    if objective == "fit" and problem.capacity is None:
        raise MemplanError('the objective "fit" needs a capacity; the problem has none')
    return objective == "min_peak"
