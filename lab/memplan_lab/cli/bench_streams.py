"""`memplan-lab bench-streams`: tables 1 to 4 of SOMAS, for networks on parallel streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from memplan.base.errors import MemplanError, listed, quoted
from memplan.cli import output
from memplan.graph import Graph

NAME = "bench-streams"


def command(
    network: Annotated[
        list[str] | None,
        typer.Option("--network", help="bert_base, pangu_8b, ...; default: all. May be repeated."),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.0, help="Seconds for each solve.")
    ] = 10.0,
    out: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the results to FILE (.csv or .parquet), for `memplan-lab report`.",
        ),
    ] = None,
) -> None:
    """Measure safety and offsets of training steps, as tables 1 to 4 of SOMAS; print Markdown.

    All twelve networks take about five minutes of CPU time. Needs the extra `torch`.
    """
    from memplan_lab.bench import report, somas
    from memplan_lab.bench.models.training import TRAINED
    from memplan_lab.study import markdown, results
    from memplan_lab.study import somas as tables

    chosen = network or list(somas.NETWORKS)
    for name in chosen:
        if name not in somas.NETWORKS:
            known = listed(list(somas.NETWORKS), quote=False)
            raise MemplanError(f"there is no network {quoted(name)}; choose {known}")
    if out is not None:
        report.check_file(out)
    graphs = {somas.NETWORKS[name]: partial(_capture, TRAINED[name]) for name in chosen}
    rows = list(somas.measure(graphs, timeout=timeout))
    if out is not None:
        report.write(rows, out)
    runs = list(results.fold(rows))
    made = [
        (title, section)
        for title, make in tables.SECTIONS.items()
        if (section := make(runs)) is not None
    ]
    output.line(markdown.page("SOMAS", made).rstrip())


def _capture(make: Callable[[], Any]) -> Graph:
    from memplan.extensions.streams.training import training_step

    return training_step(*make(), streams="category")
