"""`memplan-lab bench-penalties`: what plans cost in which sharing costs."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import output

NAME = "bench-penalties"


def command(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder benchmarks of dsa-solver.")
    ],
    lifted: Annotated[
        bool, typer.Option("--lifted", help="MiniMalloc's problems, lifted to penalties.")
    ] = False,
    unequal: Annotated[
        bool, typer.Option("--unequal", help="Pairs cost 1 to 9 in turn, not what files say.")
    ] = False,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="Nodes for each memory of a file.")
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Print a line for each file.")] = False,
) -> None:
    """Plan all problems with penalties of a folder, and print what they cost and what is proved.

    Budgets are in nodes, so that costs and bounds are the same on each machine; times are of CPU.
    """
    from memplan_lab.bench.penalties import find_files, measure_file, summarise_costs

    rows = []
    for path in find_files(folder, lifted):
        row = measure_file(path, nodes, unequal)
        rows.append(row)
        if details or lifted:
            output.line(
                f"{row.name}: cost {row.cost:,}, bound {row.bound:,}, {row.status}, "
                f"without penalties {row.plain:,}, {row.pairs:,} pairs, {row.seconds:.2f} s"
            )
    for label, value in summarise_costs(rows):
        output.line(f"{label}: {value}")
