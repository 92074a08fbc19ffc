"""`memplan-lab bench-latency`: PyTorch with a slab against PyTorch with other allocators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan_lab.bench.latency import Row
    from memplan_lab.bench.latency.contention import Contention
    from memplan_lab.bench.latency.report import Table

NAME = "bench-latency"

# This command and `bench-contention` share these options.
Networks = Annotated[
    str | None, typer.Option("--networks", metavar="NAME,NAME,...", help="All if left out.")
]
Inputs = Annotated[
    str, typer.Option("--inputs", metavar="N,N,...", help="Sides of images, or tokens.")
]
Batches = Annotated[str, typer.Option("--batches", metavar="N,N,...")]
Threads = Annotated[
    str, typer.Option("--threads", metavar="N,N,...", help="Requests served at once.")
]
Allocators = Annotated[
    list[str] | None,
    typer.Option(
        "--allocator",
        metavar="NAME[='LIBRARY VAR=VALUE']",
        help="glibc, glibc-tuned, or a library to preload and how it is configured. May be "
        "repeated; slabs run beside the first.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds", parser=options.parse_seconds, metavar="SECONDS", help="For each process."
    ),
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write all that was measured.")
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]

_ALLOCATORS = ("glibc", "glibc-tuned")


def command(
    networks: Networks = None,
    inputs: Inputs = "128,256",
    batches: Batches = "1,4,8",
    threads: Threads = "1,2",
    allocator: Allocators = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Processes for each allocator and input.")
    ] = 3,
    runs: Annotated[
        int,
        typer.Option(
            "--runs", min=1, help="Measured inferences in each; fewer, but three, in --seconds."
        ),
    ] = 24,
    seconds: Seconds = 4.0,
    json: Json = None,
    details: Annotated[bool, typer.Option("--details", help="Show networks and cases.")] = False,
    markdown: Markdown = False,
) -> None:
    """Time networks eager and through a slab, under every allocator, in fresh processes."""
    output.check_output(json)

    from memplan_lab.bench import latency
    from memplan_lab.bench.latency import report

    rows, interrupted = measure(
        partial(latency.run, rounds=rounds, runs=runs),
        *(networks, inputs, batches, threads, allocator, seconds),
    )
    shown = [report.overview(rows)]
    if details:
        shown += [report.by_network(rows), report.cases(rows), report.plans(rows)]
    finish(rows, shown, json, markdown=markdown, interrupted=interrupted)


def measure(
    run: Callable[..., object],
    networks: str | None,
    inputs: str,
    batches: str,
    threads: str,
    allocators: Sequence[str] | None,
    seconds: float,
) -> tuple[list[Any], bool]:
    """Run with the options of both commands; return its rows, and whether Ctrl-C ended it."""
    from memplan_lab.bench import latency

    rows: list[Any] = []
    try:
        run(
            None if networks is None else networks.split(","),
            sizes=options.parse_counts(inputs, "--inputs"),
            batches=options.parse_counts(batches, "--batches"),
            threads=options.parse_counts(threads, "--threads"),
            allocators=[latency.parse(text) for text in allocators or _ALLOCATORS],
            seconds=seconds,
            progress=sys.stderr.isatty(),
            on_row=rows.append,
        )
    except KeyboardInterrupt:
        return rows, True
    return rows, False


def finish(
    rows: Sequence[Row] | Sequence[Contention],
    shown: Iterable[Table],
    json: str | None,
    *,
    markdown: bool,
    interrupted: bool,
) -> None:
    """Write and show what was measured, say what failed, and end as the run did."""
    from memplan_lab.bench.latency import report

    if interrupted:
        output.message(f"interrupted after {len(rows)} processes; what they measured follows")
    if json is not None:
        report.write(rows, json)
    failed = [row for row in rows if row.error]
    for row in failed:
        output.message(report.failure(row))
    if len(failed) < len(rows):
        if markdown:
            output.line(report.markdown(shown).rstrip())
        else:
            output.console().print(report.terminal(shown))
    if interrupted:
        raise typer.Exit(output.INTERRUPTED)
    if len(failed) == len(rows):
        raise typer.Exit(output.BAD_INPUT)
