"""`memplan-lab bench-tinygrad`: networks in tinygrad, with its own plans and with memplan's."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from memplan.cli import output
from memplan_lab.cli.tables import show_table

NAME = "bench-tinygrad"


def command(
    check: Annotated[
        bool,
        typer.Option("--check", help="Run small networks on the CPU, and compare their outputs."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each network.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Plan eight networks in tinygrad, beside its own allocator; nothing is computed.

    With --check, run five of them on the CPU instead, as small ones, with both planners; the exit
    code is 1 if an output differs.
    """
    from memplan_lab.bench import tinygrad

    asked = tinygrad.check(tinygrad.CHECKED) if check else tinygrad.measure(list(tinygrad.MODELS))
    rows = []
    for row in asked:
        rows.append(row)
        if as_json:
            output.line(json.dumps(row))
    if not as_json:
        _show(rows, check, markdown)
    if not all(row.get("equal", True) for row in rows):
        raise typer.Exit(output.INFEASIBLE)


def _show(rows: list[dict[str, Any]], check: bool, markdown: bool) -> None:
    from memplan_lab.bench import tinygrad

    if check:
        shown = [(row["name"], "equal" if row["equal"] else "different") for row in rows]
        show_table("tinygrad", ("network", "outputs and weights"), shown, markdown=markdown)
    else:
        show_table("tinygrad", tinygrad.HEADINGS, tinygrad.lines(rows), markdown=markdown)
