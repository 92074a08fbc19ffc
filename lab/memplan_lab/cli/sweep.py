"""`memplan-lab sweep`: problems x solvers, on all CPUs or a cluster, into a folder of Parquet."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output
from memplan.problem.plan import Status

if TYPE_CHECKING:
    from memplan_lab.sweep import Effort, Result

NAME = "sweep"


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a sweep as Ctrl-C does."""


def command(
    suite: Annotated[
        list[str],
        typer.Option("--suite", help="A suite; see `memplan-lab bench --list`. May be repeated."),
    ],
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="RESULTS", help="The folder for the results.")
    ],
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver",
            help="A solver, with options as in telamalloc:learned=on; see `memplan solvers`. "
            "Default: auto. May be repeated.",
        ),
    ] = None,
    capacity_factor: Annotated[
        list[str] | None,
        typer.Option(
            "--capacity-factor",
            metavar="RATIO",
            help="Capacity as a ratio of the smallest known peak, or, where none is known, of the "
            "problem's own capacity or a lower bound. The default is none: minimize the peak. May "
            "be repeated.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            "-t",
            parser=options.parse_seconds,
            metavar="SECONDS",
            help="Limit of each solve.",
        ),
    ] = 60.0,
    nodes: options.Nodes = None,
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="local, or the address of a Dask scheduler such as tcp://host:8786.",
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Local processes; default: one for each CPU."),
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory limit of each task.")
    ] = "4GiB",
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="Choose this many problems by the seed."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the solvers and the sample.")
    ] = 0,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="The number of runs of each task.")
    ] = 1,
    data: Annotated[
        str | None, typer.Option("--data", help="The file or folder of suites that read files.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the sweep in the folder.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            help="At the end, report the results in this folder, as `memplan-lab report` does.",
        ),
    ] = None,
) -> None:
    """Run a suite of problems through solvers, on all CPUs or on a cluster.

    Each solve has its own process with limits on time, search nodes and memory. A task that fails
    is tried once more. Results are appended to a folder of Parquet files as they arrive, so an
    interrupted sweep continues with --resume.
    """
    from memplan_lab import sweep
    from memplan_lab.cli import report as reporting

    if report is not None:
        reporting.check(report)
    settings = sweep.Settings(
        suites=suite,
        solvers=solver or ["auto"],
        capacities=capacity_factor or ["none"],
        timeout=timeout,
        node_limit=nodes,
        memory=options.parse_bytes(memory),
        seed=seed,
        repeat=repeat,
        sample=sample,
        data=data,
    )
    shown = _Shown()
    try:
        with _sigterm(), shown.bar() as (on_begin, on_result):
            effort = sweep.run(
                settings,
                out,
                scheduler=scheduler,
                workers=workers,
                resume=resume,
                command=["memplan-lab", *sys.argv[1:]],
                on_begin=on_begin,
                on_result=on_result,
            )
    except KeyboardInterrupt as interrupt:
        _report_interrupt(shown, out)
        code = output.TERMINATED if isinstance(interrupt, _Terminated) else output.INTERRUPTED
        raise typer.Exit(code) from None
    _summary(out, effort)
    if report is not None:
        reporting.write([out], report)


@contextmanager
def _sigterm() -> Iterator[None]:
    def terminate(_: int, __: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Shown:
    """Shows how far the sweep is: as counts, and on a terminal as a bar."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0
        self._failed = 0

    @contextmanager
    def bar(self) -> Iterator[tuple[Callable[[int, int], None], Callable[[Result], None]]]:
        """Yield two functions: one to call at the start, and one to call with each row."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            *(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
            *(TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.description}")),
        )
        console = Console(stderr=True)
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            task = progress.add_task("starting workers", total=None)

            def on_begin(total: int, done: int) -> None:
                self.total, self.done = total, done
                progress.update(task, total=total, completed=done, description="")

            def on_result(result: Result) -> None:
                self.done += 1
                self._failed += result.status == "failed"
                failed = f", {self._failed} failed" if self._failed else ""
                what = f"{result.instance} · {result.solver}{failed}"
                progress.update(task, completed=self.done, description=what)

            yield on_begin, on_result


def _report_interrupt(shown: _Shown, out: str) -> None:
    if shown.total is None:
        output.message("interrupted before the first task")
        return
    output.message(
        f"interrupted after {shown.done} of {shown.total} tasks, which are in {out}; "
        "add --resume to the same command to continue"
    )


_STATUSES = (*Status, "unsupported", "invalid", "failed")


def _summary(out: str, effort: Effort) -> None:
    from memplan.view.units import plural, seconds
    from memplan_lab.bench import tables
    from memplan_lab.sweep import read

    rows = read(out).select(["solver", "options", "status", "wall_s"]).to_pylist()
    statuses = [each for each in _STATUSES if any(row["status"] == each for row in rows)]
    by_solver: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_solver.setdefault(":".join(filter(None, (row["solver"], row["options"]))), []).append(
            row
        )
    lines = []
    for name, of_it in sorted(by_solver.items()):
        count = Counter(row["status"] for row in of_it)
        solving = sum(row["wall_s"] or 0.0 for row in of_it)
        counts = [str(count[status] or tables.DASH) for status in statuses]
        lines.append((name, str(len(of_it)), *counts, seconds(solving)))
    headings = ("solver", "tasks", *statuses, "solving")
    output.console().print(tables.Shown(out, headings, lines).terminal())
    if effort.overhead is None:
        return
    output.message(
        f"{plural(effort.ran, 'task')}, {plural(effort.runs, 'run')}: "
        f"{seconds(effort.solve_s)} of solving in "
        f"{seconds(effort.wall_s)} x {plural(effort.threads, 'worker')}, "
        f"an overhead of {effort.overhead:.1%}"
    )
