"""`memplan-lab bench-repack`: repairs of a plan after small changes against fresh solves."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import options, output

NAME = "bench-repack"


def command(
    families: Annotated[
        str, typer.Option("--families", metavar="NAME,NAME,...", help="nn, training.")
    ] = "nn,training",
    buffers: Annotated[int, typer.Option("--buffers", min=1, help="How many are in.")] = 500,
    changed: Annotated[
        int, typer.Option("--changed", min=1, help="How many go, and as many come, at each step.")
    ] = 25,
    steps: Annotated[int, typer.Option("--steps", min=1)] = 50,
    percents: Annotated[
        str,
        typer.Option(
            "--percents",
            metavar="N,N,...",
            help="Capacities, in per cent of the greatest least peak of the steps.",
        ),
    ] = "100,102,105,110",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many sequences.")] = 3,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Change a few of many buffers, many times: time repacking, and fresh solves of the same.

    Times are CPU times of one thread, means and medians over the steps. A repack begins at buffers
    as Python objects; fresh solves at a problem that is there, and at those same objects.
    """
    from memplan_lab.bench import repack

    rows = repack.run(
        families.split(","),
        buffers=buffers,
        changed=changed,
        steps=steps,
        percents=options.parse_counts(percents, "--percents"),
        seeds=seeds,
    )
    if markdown:
        output.line(repack.markdown(rows).rstrip())
    else:
        output.console().print(repack.terminal(rows))
