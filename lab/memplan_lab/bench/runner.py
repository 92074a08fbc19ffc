"""Suites x solvers -> rows, each run in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from memplan.base.errors import MemplanError, MissingExtraError
from memplan.problem import Problem
from memplan.solvers import registry
from memplan_lab.bench import exchange, experiment, processes
from memplan_lab.bench.experiment import Arm, Experiment
from memplan_lab.bench.peers import Command, is_omnimalloc
from memplan_lab.bench.rows import COLUMNS, Outcome, Request, Row
from memplan_lab.bench.suites import Case, Options, cases


def run(
    suites: Sequence[str],
    solvers: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    data: Path | None = None,
    sizes: Sequence[int] | None = None,
    seeds: int | None = None,
    limit: int | None = None,
    capacity_percent: int | None = None,
    objective: str | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int = 1,
    seed: int = 0,
    repeat: int = 1,
    commands: Mapping[str, str] | None = None,
    progress: bool = False,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Run every solver on every case.

    Solvers take turns on each case, so that a machine that slows down slows all of them. What
    goes wrong with one run (a crash, a hang, a wrong plan) ends as a row, never the sweep.

    Parameters
    ----------
    suites
        Names of `memplan_lab.bench.suites.SUITES`, with or without a variant behind them.
    solvers
        Names of our own solvers, and of the peers `omnimalloc` or `omnimalloc:ALLOCATOR`.
    names
        Only cases of such names; * is any text.
    data, sizes, seeds, limit, capacity_percent
        Which cases; see `memplan_lab.bench.suites.Options`.
    objective
        `fit` or `min_peak`; None: `fit` where the problem has a capacity.
    timeout
        Seconds for one solve. A run that does not stop by itself is killed some seconds later.
    nodes
        Search nodes for one solve; for our own solvers only.
    threads
        Threads that a solver may use.
    seed
        Of the solvers; the instances have seeds of their own.
    repeat
        Solves in each process; the rows hold median and minimum.
    commands
        Programs to run as well, name -> command line; see `memplan_lab.bench.peers.Command`.
    progress
        Whether to show a bar on standard error.
    on_row
        Called with each row as it comes. A caller that wants the rows so far after an interrupt
        (`KeyboardInterrupt` passes through, with no process left behind) collects them here.

    Returns
    -------
    list of Row
        By suite, case and solver, in the order asked for.

    Raises
    ------
    MemplanError
        Before anything runs: an unknown suite, no files, no solvers, an unusable command line, a
        count below 1.
    """
    if repeat < 1:
        raise MemplanError(f"repeat is {repeat}; it must be at least 1")
    options = Options(data, sizes, seeds, limit, capacity_percent)
    todo = [case for suite in suites for case in cases(suite, options)]
    contestants = _find_contestants(solvers, commands or {})
    settings = Request("", objective or "", timeout, nodes, threads, seed, repeat)
    compared = Experiment(
        "suites",
        "solvers and peers on suites of problems",
        figures={},
        cases=lambda _: (experiment.Case(each.name, partial(_Made, each)) for each in todo),
        arms=lambda _: (
            Arm(name, partial(_run, replace(settings, solver=name), command))
            for name, command in contestants.items()
        ),
        tables=lambda rows, settings: (),
    )
    rows: list[Row] = []

    def take(found: Mapping[str, Any]) -> None:
        rows.append(Row(**{name: found[name] for name in COLUMNS}))
        if on_row:
            on_row(rows[-1])

    try:
        compared.run({"case": names, "limit": None}, take, progress=progress)
    finally:
        processes.close_idle()
    return rows


def _find_contestants(
    solvers: Sequence[str], commands: Mapping[str, str]
) -> dict[str, Command | None]:
    """Return by name what runs: a program, or None for a solver or a library."""
    for name in solvers:
        if not is_omnimalloc(name):
            registry.parse(name)  # a name that is wrong would cost a row for every case
    contestants: dict[str, Command | None] = dict.fromkeys(solvers)
    for name, template in commands.items():
        if name in contestants:
            raise MemplanError(f"peer {name!r} has the name of a solver; choose another name")
        contestants[name] = Command.parse(name, template)
    if not contestants:
        raise MemplanError("there is nothing to compare; name a solver or a peer")
    return contestants


class _Made:
    """A case with its problem, or what kept it from being made."""

    def __init__(self, case: Case) -> None:
        self.case, self.problem = case, Problem([])
        self.status = self.error = ""
        try:
            self.problem = case.make()
        except (ValueError, MemoryError) as error:  # a bad file, or a size that cannot be made
            self.status = "skipped" if isinstance(error, MissingExtraError) else "error"
            self.error = str(error)

    @cached_property
    def packed(self) -> bytes:
        """The problem as bytes, which programs do not need."""
        return exchange.pack(self.problem)


def _run(settings: Request, command: Command | None, made: _Made) -> dict[str, Any]:
    case, problem = made.case, made.problem
    if made.status:
        names = (case.suite, case.name, 0, settings.solver, settings.objective, made.status)
        return asdict(Row(*names, error=made.error))
    fits = problem.capacity is not None
    request = replace(settings, objective=settings.objective or ("fit" if fits else "min_peak"))
    if command is not None:
        outcome = command.run(problem, request)
    else:
        order = processes.make_order(request, len(problem), problem.capacity)
        with processes.borrow() as zygote:
            outcome = zygote.run(processes.Work(order, made.packed))
    return asdict(_make_row(case, problem, request, outcome))


def _make_row(case: Case, problem: Problem, request: Request, outcome: Outcome) -> Row:
    return Row.of(
        outcome.columns(),
        max_load=problem.max_load,
        bound=case.bound(),
        suite=case.suite,
        case=case.name,
        n=len(problem),
        solver=request.solver,
        objective=request.objective,
        wall_min_s=min(outcome.wall, default=None),
        cpu_min_s=min(outcome.cpu, default=None),
        fingerprint=problem.fingerprint,
        timeout_s=request.timeout,
        node_limit=request.nodes,
        seed=request.seed,
    )
