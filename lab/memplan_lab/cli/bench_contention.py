"""`memplan-lab bench-contention`: the cost of memory when requests run in parallel."""

from __future__ import annotations

from memplan.cli import output
from memplan_lab.cli.bench_latency import (
    Allocators,
    Batches,
    Inputs,
    Markdown,
    Networks,
    Output,
    Seconds,
    Threads,
    finish,
    measure,
)

NAME = "bench-contention"


def command(
    networks: Networks = None,
    inputs: Inputs = "128",
    batches: Batches = "1",
    threads: Threads = "1,2,4,8",
    allocator: Allocators = None,
    seconds: Seconds = 3.0,
    out: Output = None,
    markdown: Markdown = False,
) -> None:
    """Profile networks with perf: the share of CPU time spent on memory, and waits for locks.

    Each network runs in eager mode under every allocator, and from a slab under the first one.
    """
    output.check_output(out)

    from memplan_lab.bench.latency import contention, report

    rows, interrupted = measure(
        contention.run, networks, inputs, batches, threads, allocator, seconds
    )
    shown = [report.contention(rows)]
    finish(rows, shown, out, markdown=markdown, interrupted=interrupted)
