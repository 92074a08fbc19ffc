"""`memplan-lab bench-latency`: PyTorch with a slab, compared with other allocators."""

from __future__ import annotations

import os
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
    str | None, typer.Option("--networks", metavar="NAME,NAME,...", help="Default: all.")
]
Inputs = Annotated[
    str, typer.Option("--inputs", metavar="N,N,...", help="Sides of images, or numbers of tokens.")
]
Batches = Annotated[str, typer.Option("--batches", metavar="N,N,...", help="Batch sizes.")]
Threads = Annotated[
    str, typer.Option("--threads", metavar="N,N,...", help="Numbers of concurrent requests.")
]
Allocators = Annotated[
    list[str] | None,
    typer.Option(
        "--allocator",
        metavar="NAME[='LIBRARY VAR=VALUE']",
        help="glibc, glibc-tuned, or a library to preload with its configuration. Slabs run "
        "under the first one. May be repeated.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds",
        parser=options.parse_seconds,
        metavar="SECONDS",
        help="Measuring time of a process.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write all measurements, as JSON."),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]

_ALLOCATORS = ("glibc", "glibc-tuned")


def command(
    networks: Networks = None,
    inputs: Inputs = "128,256",
    batches: Batches = "1,4,8",
    threads: Threads = "1,2",
    allocator: Allocators = None,
    training: Annotated[
        bool,
        typer.Option("--training", help="Measure training steps, with one request thread."),
    ] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, help="Processes for each allocator and input.")
    ] = 3,
    runs: Annotated[
        int,
        typer.Option(
            "--runs",
            min=1,
            help="Measured inferences in each; fewer (at least 3) within --seconds.",
        ),
    ] = 24,
    seconds: Seconds = 4.0,
    out: Output = None,
    details: Annotated[bool, typer.Option("--details", help="Show networks and cases.")] = False,
    markdown: Markdown = False,
) -> None:
    """Time networks in eager mode and from a slab, under every allocator, in new processes.

    `--details` also shows what the ratio depends on. `memplan-lab report` draws the file of
    `--output`.
    """
    output.check_output(out)

    from memplan_lab.bench import latency
    from memplan_lab.bench.latency import report

    rows, interrupted = measure(
        partial(latency.run, training=training, rounds=rounds, runs=runs),
        *(networks, inputs, batches, "1" if training else _cap(threads), allocator, seconds),
    )
    shown = [report.overview(rows), report.spread(rows)]
    if details:
        shown += [report.decided(rows), report.by_network(rows), report.cases(rows)]
        shown += [report.plans(rows)]
    finish(rows, shown, out, markdown=markdown, interrupted=interrupted)


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


def _cap(threads: str) -> str:
    """Return the numbers of threads without those above the cores of this machine, with a note."""
    counts = options.parse_counts(threads, "--threads")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    capped = list(dict.fromkeys(min(count, cores or 1) for count in counts))
    text = ",".join(map(str, capped))
    if capped != list(counts):
        output.message(f"this machine has {cores} cores; measured threads: {text}")
    return text


def finish(
    rows: Sequence[Row] | Sequence[Contention],
    shown: Iterable[Table],
    out: str | None,
    *,
    markdown: bool,
    interrupted: bool,
) -> None:
    """Write and show the measurements and the failures, and end with the exit code of the run."""
    from memplan_lab.bench.latency import report

    if interrupted:
        output.message(f"interrupted after {len(rows)} processes; their results follow")
    if out is not None:
        report.write(rows, out)
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
