"""`memplan-lab bench-ggml`: the compute buffers of ggml with memplan behind its allocator."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import output
from memplan_lab.cli.tables import show_table

if TYPE_CHECKING:
    from memplan_lab.bench.ggml.measure import Row

NAME = "bench-ggml"


def command(
    build: Annotated[
        bool,
        typer.Option(
            "--build", help="Build llama.cpp of the package llama-cpp-python, and run it."
        ),
    ] = False,
    sdist: Annotated[
        Path | None,
        typer.Option(
            "--sdist", help="With --build: its source distribution, instead of a download."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="With --build: the folder to build in, which is kept."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each graph.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Plan recorded graphs of llama.cpp, or build it and compare logits and bytes.

    With --build: minutes, CMake, a C++ compiler and a clone of memplan. No weights are needed:
    small networks with random ones compute logits, and large ones only reserve memory.
    """
    from memplan.base.errors import MemplanError
    from memplan_lab.bench.ggml import measure

    if not build and (sdist or folder):
        raise MemplanError("--sdist and --folder need --build")
    rows = []
    for row in _measure_built(sdist, folder) if build else measure.plan_lists():
        rows.append(row)
        if as_json:
            output.line(json.dumps(asdict(row)))
    if not as_json:
        show_table("ggml", measure.HEADINGS, measure.lines(rows), markdown=markdown)
    if any(row.equal is False or row.bytes > row.host for row in rows):
        raise MemplanError("a row is worse than ggml's own")


def _measure_built(sdist: Path | None, folder: Path | None) -> Iterator[Row]:
    from memplan_lab.bench.ggml import measure
    from memplan_lab.bench.ggml.build import build

    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        program, version = build(folder.resolve(), sdist)
        output.message(f"{version}, on the CPU")
        yield from measure.compute(program, folder)
        yield from measure.reserve(program, folder)
