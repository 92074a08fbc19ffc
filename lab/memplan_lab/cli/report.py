"""`memplan-lab report`: results of sweeps and benchmarks -> figures and tables, as pages."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from memplan.cli import output

NAME = "report"


def command(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULTS...",
            help="Folders of `memplan-lab sweep`, .csv and .parquet files of `memplan-lab bench`, "
            "and .json files of `learn figures`.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="The folder for report.html, report.md and its charts; replaces an older report.",
        ),
    ],
) -> None:
    """Report results: the papers' figures and tables, ablations, failures.

    Needs the extras `plot` and `sweep`.
    """
    check(out)
    write(results, out)


def check(out: str) -> None:
    """Fail early if no report can be written there, or none can be drawn."""
    from memplan_lab import study

    study.check(out)


def write(results: Sequence[str], out: str) -> None:
    """Report results in a folder, and say so."""
    from memplan_lab import study

    read = study.read(results)
    study.write(read, out, shlex.join(["memplan-lab", NAME, *results, "-o", out]))
    latencies = f" and {len(read.latency):,} latencies" if read.latency else ""
    output.line(f"{len(read.runs):,} runs{latencies} reported in {out}")
