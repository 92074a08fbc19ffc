"""Calls the solvers of `memplan._core`: converts problems for it, and answers from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from memplan import _core
from memplan.base.errors import FormatError, MemplanError
from memplan.problem import Problem
from memplan.problem.columns import Column, frozen
from memplan.problem.plan import Plan, Status, gap
from memplan.solvers._proof_file import ProofFile

__all__ = [
    "Bound",
    "Options",
    "Outside",
    "Progress",
    "Repacked",
    "Round",
    "Solver",
    "add_rows",
    "core_problem",
    "exact_search",
    "greedy_orders",
    "lower_bound",
    "options",
    "plan_apart",
    "repacker",
    "solve",
    "solvers",
]

# An empty column means that no buffer has this constraint. The core has stronger rules for problems
# without pins, and recognises these by the empty column.
_NO_COLUMN = frozen(np.empty(0, dtype=np.int64))


Outside = _core.Outside
Repacked = _core.Repacked
Solver = _core.Solver

# Name, default and sentence of each option of a native solver.
Options = list[tuple[str, bool | str | list[str], str]]


class Bound(NamedTuple):
    """A lower bound on the peak, and the rule that gave it.

    Attributes
    ----------
    bytes
        No plan has a smaller peak.
    rule
        Which rule gave it.
    section
        The time `(start, end)` at which it is attained, or `None` if no single section attains it.
    """

    bytes: int
    rule: str
    section: tuple[int, int] | None


class Progress(NamedTuple):
    """What is known while a solver runs.

    Attributes
    ----------
    seconds
        Since it began.
    peak
        Of the best plan, in bytes; `None` before there is one.
    lower_bound
        No plan has a smaller peak, in bytes.
    gap
        How far the peak may be from the best, as `Plan.gap`.
    phase
        The part that runs: greedy, exact, prover, ...
    nodes
        As in `Plan.stats`.
    """

    seconds: float
    peak: int | None
    lower_bound: int
    gap: float | None
    phase: str
    nodes: int


class Round(NamedTuple):
    """The result of a round of a solver: one question to one engine, within a slice of the budget.

    Attributes
    ----------
    seconds
        Since the solver began, when the round had ended.
    engine
        The engine that ran: greedy, large, exact, prover, minimalloc, ..., or proof.
    stage
        For greedy and large, the pass or repair; for proof, the attempt; else empty.
    part
        "window" or "kernel" if the question was about a part of the problem; else empty.
    target
        The question, in bytes: is there a plan with at most this peak?
    lower_bound
        The best bound at the end of the round, in bytes; for a part, the bound of the part.
    peak
        The peak of the best plan at the end of the round, in bytes; `None` before there is one.
    nodes
        The cost of the round. The nodes of all rounds except proof add up to `Plan.stats`.
    conflicts
        For the prover, its conflicts; for telamalloc, its backtracks; else 0.
    ended_by
        "plan" (with at most that peak), "refuted", "nodes", "steps" (its own measure of work),
        "time", "interrupt", or "end": nothing was left to try.
    """

    seconds: float
    engine: str
    stage: str
    part: str
    target: int
    lower_bound: int
    peak: int | None
    nodes: int
    conflicts: int
    ended_by: str


def solve(
    problem: Problem,
    *,
    solver: str,
    core: str,
    minimize: bool,
    seconds: float | None,
    nodes: int | None,
    threads: int,
    seed: int,
    options: Mapping[str, object],
    progress: Callable[[Progress], object] | None = None,
    trace: Callable[[Round], object] | None = None,
    proof: ProofFile | None = None,
    outside: Callable[[Mapping[str, object], Problem], Outside] | None = None,
) -> tuple[Plan, bool]:
    """Return the plan of one solver, and whether Ctrl-C cut it short; nothing is checked here.

    `core` is what the core calls the solver. `outside` makes the one that runs in its place, and
    takes the options.
    """
    native = core_problem(problem)
    runs = None if outside is None else outside(options, problem)
    given = dict(options) if runs is None else {}
    watch = None if progress is None else _watch(progress)
    tell = None if trace is None else _tracer(trace)
    log = None if proof is None else proof.temporary
    try:
        answer = _core.solve(
            native, core, minimize, seconds, nodes, threads, seed, given, watch, tell, log, runs
        )
    except ValueError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # the caller's code raised it: a signal handler, `progress` or `trace`
        if proof is not None and proof.temporary in str(error):
            raise FormatError(proof.path, "the file cannot be written") from None
        raise MemplanError(str(error)) from None
    stats: dict[str, object] = {
        "solver": answer.solver,
        "nodes": answer.nodes,
        "restarts": answer.restarts,
        "seconds": dict(answer.seconds),
        "note": answer.note,
    }
    if core == "telamalloc":
        stats["backtracks"] = answer.backtracks
        stats["major_backtracks"] = answer.major_backtracks
    if proof is not None:
        stats["proof"] = proof.keep()
    conflict = answer.conflict
    placed = answer.has_offsets
    plan = Plan.of_checked(
        problem,
        answer.offsets if placed else None,
        status=Status(answer.status),
        peak=answer.peak if placed else None,
        lower_bound=answer.lower_bound,
        capacity=problem.capacity,
        solver=solver,
        stats=stats,
        conflict=[problem.ids[row] for row in conflict.tolist()] if len(conflict) else (),
    )
    return plan, answer.interrupted


def repacker(problem: Problem) -> tuple[_core.Repacker, list[int]]:
    """Return a repacker of the core for the problem's buffers, and their slots."""
    native = _core.Repacker(*_ranges(problem))
    return native, native.add(core_problem(problem))


def add_rows(repacker: _core.Repacker, problem: Problem) -> list[int]:
    """Add the buffers of a problem to a repacker; return their slots."""
    return repacker.add(core_problem(problem))


def lower_bound(problem: Problem) -> Bound:
    """Return the best lower bound on the peak that needs no search."""
    bytes, rule, start, end = _core.lower_bound(core_problem(problem))
    return Bound(bytes, rule, None if start is None or end is None else (start, end))


def set_stopped(stopped: bool) -> None:
    """Say whether all searches that this thread begins end at once, as after Ctrl-C."""
    _core.set_stopped(stopped)


def plan_apart(
    problem: Problem,
    first: Column,
    second: Column,
    cost: Column,
    *,
    seconds: float | None,
    nodes: int | None,
    seed: int,
) -> _core.ApartResult:
    """Return the plan in which pairs of rows that share addresses cost least."""
    return _core.plan_apart(core_problem(problem), first, second, cost, seconds, nodes, seed)


def solvers() -> list[Solver]:
    """Return the solvers of the core, in the order in which they are listed."""
    return _core.solvers()


def options(solver: str) -> Options:
    """Return name, default and sentence of each option of a solver of the core."""
    return _core.options(solver)


def greedy_orders() -> list[str]:
    """Return the names that the option `orders` of greedy may have, in the order of trial."""
    return _core.greedy_orders()


def exact_search() -> Outside:
    """Return the exact search of the core, for a native module that asks it."""
    return _core.exact_search()


def _watch(
    progress: Callable[[Progress], object],
) -> Callable[[float, int | None, int, str, int], None]:
    def watch(seconds: float, peak: int | None, bound: int, phase: str, nodes: int) -> None:
        progress(Progress(seconds, peak, bound, gap(peak, bound), phase, nodes))

    return watch


def _tracer(
    trace: Callable[[Round], object],
) -> Callable[[float, str, str, str, int, int, int | None, int, int, str], None]:
    def tell(
        seconds: float,
        engine: str,
        stage: str,
        part: str,
        target: int,
        bound: int,
        peak: int | None,
        nodes: int,
        conflicts: int,
        ended_by: str,
    ) -> None:
        trace(Round(seconds, engine, stage, part, target, bound, peak, nodes, conflicts, ended_by))

    return tell


def _ranges(problem: Problem) -> tuple[Column, Column]:
    """Return the lower and the upper ends of the reserved ranges."""
    if not problem.reserved:
        return _NO_COLUMN, _NO_COLUMN
    reserved = np.array([(r.lower, r.upper) for r in problem.reserved], dtype=np.int64).T
    lower, upper = np.ascontiguousarray(reserved)
    return lower, upper


def core_problem(problem: Problem) -> _core.Problem:
    """Return a problem as the native modules take it."""
    lower, upper = _ranges(problem)
    return _core.Problem(
        problem.start,
        problem.end,
        problem.size,
        problem.alignment if problem.has_alignment else _NO_COLUMN,
        problem.pin if problem.has_pins else _NO_COLUMN,
        problem.hint if problem.has_hints else _NO_COLUMN,
        problem.gap_buffer,
        problem.gap_start,
        problem.gap_end,
        problem.gap_lower,
        problem.gap_upper,
        lower,
        upper,
        problem.capacity,
        (problem.conflicts.begin, problem.conflicts.other) if problem.has_conflicts else None,
        (problem.group, problem.lead) if problem.has_groups else None,
    )
