"""`memplan-lab report`: results of sweeps and benchmarks -> figures and tables, as pages."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from memplan.cli import output

NAME = "report"


def command(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULTS...",
            help="Folders of `memplan-lab sweep`, .csv and .parquet of `memplan-lab bench --out`.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where report.html, report.md and its charts go; an older report is replaced.",
        ),
    ],
) -> None:
    """Write up results: the papers' figures and tables, ablations, failures.

    Needs the extras `plot` and `sweep`.
    """
    from memplan_lab import study

    study.check(out)
    read = study.read(results)
    study.write(read, out, shlex.join(["memplan-lab", NAME, *results, "-o", out]))
    output.line(f"{len(read.runs):,} runs reported in {out}")
