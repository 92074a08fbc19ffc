"""`memplan-lab bench-repack`: repairs of a plan after small changes, and fresh solves."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import output
from memplan_lab.cli.bench import parse_factor

NAME = "bench-repack"


def command(
    family: Annotated[
        list[str] | None,
        typer.Option("--family", help="nn or training; default: both. May be repeated."),
    ] = None,
    buffers: Annotated[int, typer.Option("--buffers", min=1, help="The number of buffers.")] = 500,
    changed: Annotated[
        int, typer.Option("--changed", min=1, help="Buffers that are replaced at each step.")
    ] = 25,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of a sequence.")] = 50,
    capacity_factor: Annotated[
        list[int] | None,
        typer.Option(
            "--capacity-factor",
            parser=parse_factor,
            metavar="RATIO",
            help="Capacity as a ratio of the largest optimal peak of all steps; default: 1, 1.02, "
            "1.05 and 1.1. May be repeated.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="The number of sequences.")] = 3,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Replace a few of many buffers again and again; compare repacking with fresh solves.

    Times are CPU times of one thread, as means and medians over the steps. A repack starts from
    Python objects of buffers. Fresh solves start from a finished problem, and from such objects.
    """
    from memplan_lab.bench import repack

    rows = repack.run(
        family or ["nn", "training"],
        buffers=buffers,
        changed=changed,
        steps=steps,
        percents=capacity_factor or [100, 102, 105, 110],
        seeds=seeds,
    )
    if markdown:
        output.line(repack.markdown(rows).rstrip())
    else:
        output.console().print(repack.terminal(rows))
