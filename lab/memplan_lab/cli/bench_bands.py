"""`memplan-lab bench-bands`: networks in bands, in TensorFlow Lite Micro."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from memplan.base.errors import MemplanError
from memplan.cli import options, output
from memplan_lab.cli.tables import show_table

NAME = "bench-bands"


def command(
    network: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NETWORK...", help="Networks of the suite, or .tflite files; default: all."
        ),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option("--size", min=1, help="Pixels; default: 96, 160 and 224. May be repeated."),
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(
            "--max-extra-macs",
            parser=options.parse_share,
            metavar="SHARE",
            help="The most work that bands may add; default: 10% and 30%. May be repeated.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each row.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Compute networks in bands, run them in TFLM, and compare arena, time and outputs.

    The networks of the suite are int8, with random weights.
    """
    from memplan_lab.bench import bands

    rows = []
    try:
        for name, data in bands.iterate_files(network or [], size or bands.SIZES):
            for most in share or bands.SHARES:
                row = bands.measure(name, data, most)
                rows.append(row)
                if as_json:
                    output.line(json.dumps(asdict(row)))
    except OSError as error:
        raise MemplanError(f"{error.filename}: {error.strerror}") from None
    if as_json:
        return
    lines = bands.format_rows(rows)
    show_table("Networks in bands", bands.HEADINGS, lines, markdown=markdown)
