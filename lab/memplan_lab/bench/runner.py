"""Suites x solvers -> rows, each run in a fresh process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from memplan.errors import MemplanError, MissingExtraError
from memplan.problem import Problem
from memplan.solvers import registry
from memplan_lab.bench import exchange
from memplan_lab.bench.bar import Step, bar, no_step
from memplan_lab.bench.child import ChildError, ask
from memplan_lab.bench.peers import Command, is_omnimalloc
from memplan_lab.bench.rows import Outcome, Request, Row
from memplan_lab.bench.suites import Case, Options, cases

_WORKER = (sys.executable, "-m", "memplan_lab.bench.worker")

# What a worker may take beyond its timeouts: to start, to read, to check.
_GRACE = 10.0
_GRACE_PER_BUFFER = 2e-5

Runner = Callable[[Problem, Request], Outcome]


def run(
    suites: Sequence[str],
    solvers: Sequence[str],
    *,
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
        Programs to run beside them, name -> command line; see `memplan_lab.bench.peers.Command`.
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
        raise MemplanError(f"repeat is {repeat}; solve at least once")
    options = Options(data, sizes, seeds, limit, capacity_percent)
    todo = [case for suite in suites for case in cases(suite, options)]
    runners = _runners(solvers, commands or {})
    settings = Request("", "", objective or "", timeout, nodes, threads, seed, repeat)
    rows: list[Row] = []
    with bar(len(todo) * len(runners)) if progress else nullcontext(no_step) as step:
        for case in todo:
            for row in _case_rows(case, runners, settings, step):
                rows.append(row)
                if on_row:
                    on_row(row)
    return rows


def _runners(solvers: Sequence[str], commands: Mapping[str, str]) -> dict[str, Runner]:
    for name in solvers:
        if not is_omnimalloc(name):
            registry.parse(name)  # a name that is wrong would cost a row for every case
    runners: dict[str, Runner] = dict.fromkeys(solvers, _in_worker)
    for name, template in commands.items():
        if name in runners:
            raise MemplanError(f"peer {name!r} has the name of a solver; give it another")
        runners[name] = _as_command(Command.parse(name, template))
    if not runners:
        raise MemplanError("there is nothing to compare; name a solver or a peer")
    return runners


def _case_rows(
    case: Case, runners: Mapping[str, Runner], settings: Request, step: Step
) -> Iterator[Row]:
    try:
        problem = case.make()
    except (ValueError, MemoryError) as error:  # a bad file, or a size that cannot be made
        status = "skipped" if isinstance(error, MissingExtraError) else "error"
        for solver in runners:
            step(case.name)
            yield Row(
                case.suite, case.name, 0, solver, settings.objective, status, error=f"{error}"
            )
        return
    fits = problem.capacity is not None
    objective = settings.objective or ("fit" if fits else "min_peak")
    with TemporaryDirectory(prefix="memplan-bench-") as folder:
        file = Path(folder) / "problem.npz"
        exchange.write(problem, file)
        for solver, runner in runners.items():
            step(f"{case.suite} · {case.name} · {solver}")
            request = replace(settings, problem=str(file), solver=solver, objective=objective)
            yield _row(case, problem, request, runner(problem, request))


def _row(case: Case, problem: Problem, request: Request, outcome: Outcome) -> Row:
    bound = max(problem.max_load, outcome.lower_bound or 0)
    ratio = None
    if outcome.peak is not None:
        ratio = outcome.peak / bound if bound else 1.0
    return Row(
        suite=case.suite,
        case=case.name,
        n=len(problem),
        solver=request.solver,
        objective=request.objective,
        status=outcome.status,
        peak=outcome.peak,
        max_load=problem.max_load,
        lower_bound=bound,
        ratio=ratio,
        wall_s=outcome.wall_s,
        cpu_s=outcome.cpu_s,
        wall_min_s=min(outcome.wall, default=None),
        cpu_min_s=min(outcome.cpu, default=None),
        peak_rss_mib=outcome.peak_rss_mib,
        nodes=outcome.nodes,
        restarts=outcome.restarts,
        error=outcome.error,
    )


def _as_command(command: Command) -> Runner:
    def run_command(problem: Problem, request: Request) -> Outcome:
        return command.run(
            problem,
            objective=request.objective,
            timeout=request.timeout,
            threads=request.threads,
            seed=request.seed,
            repeat=request.repeat,
        )

    return run_command


def patience(request: Request, n: int) -> float | None:
    """Return the seconds after which a run on `n` buffers hangs; None where it has no limit."""
    if request.timeout is None:
        return None
    return request.repeat * request.timeout * 1.05 + _GRACE + _GRACE_PER_BUFFER * n


def _in_worker(problem: Problem, request: Request) -> Outcome:
    try:
        # Threads that NumPy starts and nobody asked for would count as CPU time of the solver.
        environment = {"OPENBLAS_NUM_THREADS": "1"}
        answer = ask(
            _WORKER,
            asdict(request),
            timeout=patience(request, len(problem)),
            environment=environment,
        )
    except ChildError as error:
        return Outcome("killed" if error.killed else "error", error=str(error))
    return Outcome(**answer)
