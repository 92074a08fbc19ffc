"""`memplan-lab bench-envelopes`: the peaks of exported programs at every size of a range."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan_lab.cli.tables import show_table

NAME = "bench-envelopes"


def command(
    checks: Annotated[
        int,
        typer.Option("--checks", min=1, help="Sizes of each program that get a plan of their own."),
    ] = 40,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Export programs of PyTorch, find their peaks at every size, and compare with own plans."""
    from memplan_lab.bench import envelopes

    rows = [envelopes.measure(name, checks) for name in envelopes.PROGRAMS]
    lines = envelopes.format_rows(rows)
    show_table("Envelopes", envelopes.HEADINGS, lines, markdown=markdown)
