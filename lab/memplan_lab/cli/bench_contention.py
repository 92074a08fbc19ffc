"""`memplan-lab bench-contention`: what memory costs when requests are served side by side."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memplan.cli import options, output
from memplan_lab.cli.bench_latency import (
    ALLOCATORS,
    Allocators,
    Batches,
    Inputs,
    Json,
    Markdown,
    Networks,
    Seconds,
    Threads,
    finish,
)

if TYPE_CHECKING:
    from memplan_lab.bench.latency.contention import Contention

NAME = "bench-contention"


def command(
    networks: Networks = None,
    inputs: Inputs = "128",
    batches: Batches = "1",
    threads: Threads = "1,2,4,8",
    allocator: Allocators = None,
    seconds: Seconds = 3.0,
    json: Json = None,
    markdown: Markdown = False,
) -> None:
    """Profile networks with perf: the share of CPU time that memory takes, and waiting for it.

    Each network runs eager under every allocator, and through a slab under the first.
    """
    output.check_output(json)

    from memplan_lab.bench import latency
    from memplan_lab.bench.latency import contention, report

    rows: list[Contention] = []
    interrupted = False
    try:
        contention.run(
            None if networks is None else networks.split(","),
            sizes=options.parse_counts(inputs, "--inputs"),
            batches=options.parse_counts(batches, "--batches"),
            threads=options.parse_counts(threads, "--threads"),
            allocators=[latency.parse(text) for text in allocator or ALLOCATORS],
            seconds=seconds,
            progress=sys.stderr.isatty(),
            on_row=rows.append,
        )
    except KeyboardInterrupt:
        interrupted = True
    shown = [report.contention(rows)]
    finish(rows, shown, json, markdown=markdown, interrupted=interrupted)
