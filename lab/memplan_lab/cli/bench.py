"""`memplan-lab bench`: suites x solvers -> tables and files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan_lab.bench import Row

NAME = "bench"


def command(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE...", help="See --list.")
    ] = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "--solver", help="May be repeated; `auto` if left out. See `memplan solvers`."
        ),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME='COMMAND'",
            help="A program beside ours, with {input}, {capacity} and {output} in its command; "
            "or omnimalloc, or omnimalloc:ALLOCATOR. May be repeated.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="A file or folder, for suites that read some.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="N,N,...", help="Numbers of buffers, where generated."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Instances of each size.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many cases of each suite.")
    ] = None,
    capacity_percent: Annotated[
        int | None,
        typer.Option(
            "--capacity-percent",
            min=1,
            metavar="N",
            help="Capacities of N % of the least peak, proved first; 110 for `models`, elsewhere "
            "the suite's own if left out.",
        ),
    ] = None,
    timeout: options.Timeout = None,
    nodes: options.Nodes = None,
    threads: Annotated[int, typer.Option("--threads", min=1)] = 1,
    seed: options.Seed = 0,
    minimize: options.Minimize = False,
    repeat: Annotated[
        int,
        typer.Option("--repeat", min=1, help="Solves of each case, or more; the median counts."),
    ] = 1,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write all rows: .csv or .parquet."),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Draw run time and success by solver: .png, .svg or .pdf (extra `plot`).",
        ),
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Show every case.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the first solver over each other one.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the suites, and end.")] = False,
) -> None:
    """Run suites of problems through solvers and peers, each run in a process of its own."""
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
            capacity_percent=capacity_percent,
            objective="min_peak" if minimize else None,
            timeout=timeout,
            nodes=nodes,
            threads=threads,
            seed=seed,
            repeat=repeat,
            commands=commands,
            progress=sys.stderr.isatty(),
            on_row=rows.append,
        )
    except KeyboardInterrupt:
        output.message(f"interrupted after {len(rows)} runs, which follow")
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
    """Refuse before hours of work a file that could not be written after them."""
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


def _list() -> None:
    from memplan_lab.bench.suites import SUITES, VARIANTS

    for name in SUITES:
        output.line(name)
    variants = ", ".join(f"-{name}" for name in VARIANTS)
    output.message(f"each of them also with {variants}, or several, behind its name")
