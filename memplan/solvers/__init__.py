"""Solvers: a problem goes in, a plan comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from memplan.errors import MemplanError, shown
from memplan.plan import Plan
from memplan.problem import Asked, Buffer, Problem
from memplan.solvers import native, registry
from memplan.solvers._limits import MAX_COUNT, MAX_SEED, MAX_THREADS, cores, seconds, whole
from memplan.solvers._proof_file import proof_file
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
        Of wall clock, or `None`. A clock makes the answer depend on the machine.
    nodes
        Search nodes (for greedy: placements), or `None`. The answer repeats.
    """

    seconds: float | None = None
    nodes: int | None = None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; not caught by `except Exception`, like any Ctrl-C.

    Attributes
    ----------
    plan
        The best one so far; its status may be `unknown`.
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
        A `Problem`, what `memplan.load` read, any iterable of `Buffer`, or a pandas or polars
        frame (see `Problem.from_frame`).
    solver
        One of `memplan.solvers.registry.SOLVERS`, or one with options as the command line takes
        them: `minimalloc:dominance=off`.
    objective
        "fit" stops at the first plan within the capacity; the default where there is one.
        "min_peak" looks for the smallest peak (within the capacity, where there is one).
    timeout
        Seconds, or `None` for no limit. A clock makes the answer depend on the machine.
    nodes
        Search nodes (for greedy: placements), or `None` for no limit; the answer repeats.
    threads
        Of the search, or `None` for one per available core. Never changes the answer unless the
        clock cuts it short. Baselines have one thread.
    seed
        Of the search.
    budget
        In place of `timeout` and `nodes`.
    progress
        Called with a `Progress`, in the thread of the caller, when the best plan or the bound
        changes and about twice a second. What it raises ends the search and comes out here.
    trace
        Called likewise with a `Round`, whenever an engine has answered one question or spent one
        slice of the budget. Baselines are one round. It changes no plan.
    proof
        A file to write down why no plan is better (docs/proofs.md), for
        `memplan.referee.verify_proof`. It is written as a whole or not at all: only where the
        plan is a proved optimum or a capacity is refuted. It may cost as many nodes again as the
        search has, and at least 20 000.
    **options
        Switches of the solver; see `memplan.solvers.registry`.

    Returns
    -------
    Plan
        Also where there is none: its `status` is then `infeasible` or `unknown`. `stats` has
        `solver` (the one that found the answer), `nodes`, `restarts`, `seconds` by phase, `note`;
        of telamalloc `backtracks`, minor and major ones, and the `major_backtracks` among them;
        and with `proof`, whether the file was written.

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
        _door(known),
        asked,
        solver=name,
        minimize=_minimize(objective, asked),
        seconds=seconds(timeout),
        nodes=None if nodes is None else whole(nodes, "nodes", 1, MAX_COUNT),
        threads=cores() if threads is None else whole(threads, "threads", 1, MAX_THREADS),
        seed=whole(seed, "seed", 0, MAX_SEED),
        options={**known.preset, **options},
        progress=progress,
        trace=trace,
    )
    if proof is None:
        plan, interrupted = ask()
    else:
        registry.check_proof(name, asked)
        with proof_file(proof, asked) as file:
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


def _door(solver: registry.Solver) -> Callable[..., tuple[Plan, bool]]:
    if solver.core:
        return partial(native.solve, core=solver.core)
    from memplan.solvers import outside  # loads the referee, which ours do without

    return outside.solve


def _minimize(objective: str | None, problem: Problem) -> bool:
    if objective is None:
        return problem.capacity is None
    if objective not in ("fit", "min_peak"):
        raise MemplanError(f'objective is {shown(objective)}; it must be "fit" or "min_peak"')
    if objective == "fit" and problem.capacity is None:
        raise MemplanError('the objective "fit" needs a capacity; the problem has none')
    return objective == "min_peak"
