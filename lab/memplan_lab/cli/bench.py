"""`memplan-lab bench`: suites x solvers -> tables and files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan_lab.bench import Row

NAME = "bench"
_TIMEOUT = 60.0  # seconds of a solve; some need hours otherwise


def parse_factor(text: str) -> int:
    """Read a capacity as a ratio of the smallest peak, such as 1.1; return it in percent."""
    match = re.fullmatch(r"(\d{1,4})(?:\.(\d\d?))?", text, re.ASCII)
    percent = int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0")) if match else 0
    if percent < 1:
        raise typer.BadParameter(f"{text!r} is not a ratio such as 1.1 or 1.05")
    return percent


def command(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE...", help="Suites of problems; see --list.")
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
            metavar="NAME='COMMAND'",
            help="Another program, with {input}, {capacity} and {output} in its command; or "
            "omnimalloc, or omnimalloc:ALLOCATOR. May be repeated.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="The file or folder of suites that read files.")
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
            help="Stop each solve after this time; by default after 60 seconds, and with --nodes "
            "not at all.",
        ),
    ] = None,
    nodes: options.Nodes = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of each solver.")] = 1,
    seed: options.Seed = 0,
    minimize: options.Minimize = False,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", min=1, help="The minimum number of solves of each case; the median counts."
        ),
    ] = 1,
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
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the suites and exit.")] = False,
) -> None:
    """Run suites of problems through solvers and peers; each run has its own process.

    How far it is, is shown on standard error: a bar, or in files and pipes a line every ten
    seconds.
    """
    if show_list:
        _list()
        return
    if not suites:
        raise typer.BadParameter("name a suite; --list shows them", param_hint="'SUITE...'")
    _check_files(out, figure)
    solvers, commands = _contestants(solver, peer)

    from memplan_lab import bench

    rows: list[Row] = []
    try:
        bench.run(
            suites,
            solvers,
            data=data,
            sizes=None if sizes is None else options.parse_counts(sizes, "--sizes"),
            seeds=seeds,
            limit=limit,
            capacity_percent=capacity_factor,
            objective="min_peak" if minimize else None,
            timeout=_TIMEOUT if timeout is None and nodes is None else timeout,
            nodes=nodes,
            threads=threads,
            seed=seed,
            repeat=repeat,
            commands=commands,
            progress=True,
            on_row=rows.append,
        )
    except KeyboardInterrupt:
        output.message(f"interrupted after {len(rows)} runs; their results follow")
        _report(rows, out, figure, details=details, compare=compare, markdown=markdown)
        raise typer.Exit(output.INTERRUPTED) from None
    _report(rows, out, figure, details=details, compare=compare, markdown=markdown)


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
    from memplan_lab.bench import figures, report

    for path, check in ((out, report.check_file), (figure, figures.check_file)):
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
) -> None:
    from memplan_lab.bench import figures, report

    for case, reason in {row.case: row.error for row in rows if row.status == "skipped"}.items():
        output.message(f"{case} is skipped: {reason}")
    if out is not None:
        report.write(rows, out)
    if figure is not None:
        figures.save(rows, figure)
    if markdown:
        output.line(report.markdown(rows).rstrip())
        return
    console = output.console()
    if details:
        console.print(report.details(rows))
    console.print(report.table(rows))
    if compare:
        console.print(report.comparison(rows))
    output.tell_written(out, figure)


def _list() -> None:
    from memplan_lab.bench.suites import SUITES, VARIANTS

    for name in SUITES:
        output.line(name)
    variants = ", ".join(f"-{name}" for name in VARIANTS)
    output.message(f"append one or more variants to a name: {variants}")
