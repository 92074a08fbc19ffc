"""`memplan-lab bench-envelopes`: the peaks of exported programs at every size of a range."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import output

NAME = "bench-envelopes"


def command(
    checks: Annotated[
        int,
        typer.Option("--checks", min=1, help="Sizes of each program that get a plan of their own."),
    ] = 40,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Export programs of PyTorch, find their peaks at every size, and compare with own plans."""
    from memplan_lab.bench import envelopes, tables

    made = list(
        envelopes.format_rows([envelopes.measure(name, checks) for name in envelopes.PROGRAMS])
    )
    if markdown:
        output.line(tables.markdown(envelopes.HEADINGS, made, (0,)))
    else:
        output.console().print(tables.terminal("Envelopes", envelopes.HEADINGS, made, (0,)))
