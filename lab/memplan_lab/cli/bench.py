"""`memplan-lab bench`: suites × solvers, and every other experiment -> tables and files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.base.errors import MemplanError
from memplan.cli import options, output
from memplan_lab.bench.suites import parse_factor

if TYPE_CHECKING:
    from memplan_lab.bench import Row
    from memplan_lab.bench.experiment import Experiment
    from memplan_lab.bench.tables import Shown

NAME = "bench"
_TIMEOUT = 60.0  # seconds of a solve of a suite; some need hours otherwise


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Suites of problems, or one experiment; see --list."
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option("--case", help="Only cases of this name; * is any text. May be repeated."),
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver", help="A solver; see `memplan solvers`. Default: auto. May be repeated."
        ),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME[='COMMAND']",
            help="Another planner. For suites a program, with {input}, {capacity} and {output} in "
            "its command; or omnimalloc, or omnimalloc:ALLOCATOR. May be repeated.",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="The file or folder of what reads files.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="N,N,...", help="Numbers of buffers of generated suites."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="The number of instances of each size.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="The maximum number of cases of each suite."),
    ] = None,
    capacity_factor: Annotated[
        int | None,
        typer.Option(
            "--capacity-factor",
            parser=parse_factor,
            metavar="RATIO",
            help="Set capacities to this ratio of the smallest peak, which is proved first. "
            "Default: 1.1 for `models`, the suite's own elsewhere.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            "-t",
            parser=options.parse_seconds,
            metavar="SECONDS",
            help="Stop each solve after this time; in suites by default after 60 seconds, and with "
            "--nodes not at all.",
        ),
    ] = None,
    nodes: options.Nodes = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads of each solver; default: 1.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of the solvers; default: 0.")
    ] = None,
    minimize: options.Minimize = False,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat", min=1, help="The minimum number of solves of each case; the median counts."
        ),
    ] = None,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME[=VALUE]",
            help="A setting of the experiment; `bench NAME --list` shows them. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all rows: .csv or .parquet."),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Draw run time and share solved by solver: .png, .svg or .pdf (extra `plot`).",
        ),
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Show every case.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare the first solver with each other one.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each row, and no table.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    show_list: Annotated[
        bool,
        typer.Option("--list", help="List suites and experiments, or cases and settings of one."),
    ] = False,
) -> None:
    """Run suites of problems through solvers and peers, or another experiment.

    Each solve of a suite has its own process. How far it is, is shown on standard error: a bar, or
    in files and pipes a line every ten seconds.
    """
    from memplan_lab.bench import experiments

    asked = list(names or ())
    for_suites = {
        "--solver": solver is not None,
        "--sizes": sizes is not None,
        "--seeds": seeds is not None,
        "--capacity-factor": capacity_factor is not None,
        "--threads": threads is not None,
        "--seed": seed is not None,
        "--minimize": minimize,
        "--repeat": repeat is not None,
        "--figure": figure is not None,
        "--compare": compare,
    }
    if any(name in experiments.NAMES for name in asked):
        if len(asked) > 1:
            raise MemplanError("an experiment runs by itself: name one, or suites of problems")
        output.refuse_given(for_suites, f"it is for suites of problems, and {asked[0]} is none")
        given = {
            "case": case,
            "peer": peer,
            "data": data,
            "limit": limit,
            "timeout": timeout,
            "nodes": nodes,
        }
        _run_experiment(
            asked[0], given, own or (), out, details, as_json, markdown, show_list=show_list
        )
        return
    if show_list:
        _list()
        return
    if not asked:
        raise typer.BadParameter("name a suite; --list shows them", param_hint="'NAME...'")
    output.refuse_given({"--set": bool(own)}, "it is for experiments, and suites have options")
    _check_files(out, figure)
    solvers, commands = _contestants(solver, peer)

    from memplan_lab import bench

    rows: list[Row] = []

    def on_row(row: Row) -> None:
        rows.append(row)
        if as_json:
            output.line(json.dumps(asdict(row)))

    interrupted = False
    try:
        bench.run(
            asked,
            solvers,
            names=case,
            data=None if data is None else Path(data),
            sizes=None if sizes is None else options.parse_counts(sizes, "--sizes"),
            seeds=seeds,
            limit=limit,
            capacity_percent=capacity_factor,
            objective="min_peak" if minimize else None,
            timeout=_TIMEOUT if timeout is None and nodes is None else timeout,
            nodes=nodes,
            threads=threads or 1,
            seed=seed or 0,
            repeat=repeat or 1,
            commands=commands,
            progress=True,
            on_row=on_row,
        )
    except KeyboardInterrupt:
        interrupted = True
        output.message(f"interrupted after {len(rows)} runs; their results follow")
    _report(rows, out, figure, details=details, compare=compare, markdown=markdown, quiet=as_json)
    if interrupted:
        raise typer.Exit(output.INTERRUPTED)


def _run_experiment(
    name: str,
    given: dict[str, Any],
    own: Sequence[str],
    out: str | None,
    details: bool,
    as_json: bool,
    markdown: bool,
    *,
    show_list: bool,
) -> None:
    from memplan_lab.bench import experiments, files

    experiment = experiments.find(name)
    settings = experiment.settle(given, own)
    if show_list:
        _describe(experiment)
        return
    if out is not None:
        files.check_file(out)
        output.check_output(out)
    rows: list[dict[str, Any]] = []

    def on_row(row: dict[str, Any]) -> None:
        rows.append(row)
        if as_json:
            output.line(json.dumps(row))

    interrupted = False
    try:
        experiment.run(settings, on_row, progress=True)
    except KeyboardInterrupt:
        interrupted = True
        output.message(f"interrupted after {len(rows)} rows; their results follow")
    if out is not None:
        files.write(rows, out, experiment.figures)
    if not as_json:
        _print(experiment.show(rows, settings, details=details), markdown=markdown)
        output.tell_written(out)
    if interrupted:
        raise typer.Exit(output.INTERRUPTED)
    if experiment.wrong is not None and (sentence := experiment.wrong(rows)):
        raise MemplanError(sentence)


def _print(tables: Iterable[Shown], *, markdown: bool) -> None:
    """Print tables on the terminal, or in Markdown, where a title stands if there are several."""
    made = list(tables)
    if not markdown:
        for table in made:
            output.console().print(table.terminal())
        return
    parts = [f"**{table.title}**\n\n" * (len(made) > 1) + table.markdown() for table in made]
    output.line("\n".join(parts).rstrip())


def _describe(experiment: Experiment) -> None:
    """Print what an experiment measures, and what may be chosen."""
    output.line(f"{experiment.name}: {experiment.about}")
    takes = [f"--{name}" for name in experiment.takes]
    output.line(f"options: {', '.join([*takes, '--output', '--details', '--json', '--markdown'])}")
    if experiment.peers:
        output.line(f"peers: {', '.join(experiment.peers)}")
    for name, setting in experiment.own.items():
        value = "" if setting.default is False else "=" + _tell(setting.default)
        output.line(f"--set {name}{value}: {setting.about}")
    for name, about in experiment.figures.items():
        output.line(f"{name}: {about}")


def _tell(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _contestants(
    solver: Sequence[str] | None, peer: Sequence[str] | None
) -> tuple[list[str], dict[str, str]]:
    """Return our solvers and the libraries by name, and the programs with their commands."""
    names = list(solver or ["auto"])
    commands: dict[str, str] = {}
    for text in peer or ():
        name, equals, template = text.partition("=")
        if equals:
            commands[name] = template
        elif name.partition(":")[0] == "omnimalloc":
            names.append(name)
        else:
            raise typer.BadParameter(
                f"{text!r} is neither NAME='COMMAND' nor omnimalloc", param_hint="'--peer'"
            )
    return names, commands


def _check_files(out: str | None, figure: str | None) -> None:
    """Check before hours of work that the files can be written afterwards."""
    from memplan_lab.bench import figures, files

    for path, check in ((out, files.check_file), (figure, figures.check_file)):
        if path is not None:
            check(path)
            output.check_output(path)


def _report(
    rows: Sequence[Row],
    out: str | None,
    figure: str | None,
    *,
    details: bool,
    compare: bool,
    markdown: bool,
    quiet: bool,
) -> None:
    from memplan_lab.bench import figures, report

    for case, reason in {row.case: row.error for row in rows if row.status == "skipped"}.items():
        output.message(f"{case} is skipped: {reason}")
    if out is not None:
        report.write(rows, out)
    if figure is not None:
        figures.save(rows, figure)
    if not quiet:
        shown = [*(report.details(rows) if details and not markdown else ()), *report.table(rows)]
        shown += report.comparison(rows) if compare else ()
        _print([report.in_one(rows)] if markdown else shown, markdown=markdown)
        output.tell_written(out, figure)


def _list() -> None:
    from memplan_lab.bench import experiments
    from memplan_lab.bench.suites import SUITES, VARIANTS

    for name in SUITES:
        output.line(name)
    variants = ", ".join(f"-{name}" for name in VARIANTS)
    output.message(f"append one or more variants to a name: {variants}")
    for name in experiments.NAMES:
        output.line(f"{name}: {experiments.find(name).about}")
