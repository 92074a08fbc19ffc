"""`memplan-lab bench-blocks`: blocks of limited size, what is proved of them, and ggml's rule."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from memplan.cli import output
from memplan_lab.cli.tables import show_table

NAME = "bench-blocks"


def command(
    problems: Annotated[
        int, typer.Option("--problems", min=1, help="The number of problems of the corpus.")
    ] = 50,
    constrained: Annotated[
        bool,
        typer.Option("--constrained", help="Also plan them with drawn constraints of all kinds."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each limit.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Plan problems in blocks of at most 1/2, 1/3, 1/5 and 1/8 of their least peak.

    Without a limit on time; times are CPU times of one thread.
    """
    from memplan_lab.bench import blocks

    rows = []
    for kind in (False, True) if constrained else (False,):
        for row in blocks.measure(problems, constrained=kind):
            rows.append(row)
            if as_json:
                output.line(json.dumps(asdict(row)))
    if as_json:
        return
    show_table("Blocks", blocks.HEADINGS, blocks.lines(rows), markdown=markdown)
