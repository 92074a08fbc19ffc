"""`memplan bands`: what a program needs if its large tensors are computed in bands."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output
from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.levers.rewrite.bands import Frontier, Uncut
    from memplan.programs.sources import Loaded

NAME = "bands"
EXAMPLES = (
    "memplan bands model.tflite",
    "memplan bands model.tflite -o frontier.html",
)


def command(
    input: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A model (.tflite, .onnx, .pt2), or a graph in JSON that says which rows "
            "operators need. `-` is standard input.",
            callback=keep,
        ),
    ],
    out: Annotated[
        str | None,
        options.write_to(
            "Draw arena against work: a page (.html), or a picture (.png, .svg, .pdf)."
        ),
    ] = None,
    dim: options.Dim = None,
    top: options.Top = 10,
    as_json: options.AsJson = False,
) -> None:
    """Find how far the arena shrinks if large tensors are computed one band of rows at a time.

    Each line is a program in bands; no other one needs less memory for as little work. Work counts
    repeated multiplications and copied elements. Nothing is written: `memplan apply --bands` writes
    the file.
    """
    output.check_output(out, input)
    form = output.choose_drawing(out, input)

    from memplan.levers.rewrite.bands import find_frontier
    from memplan.programs.sources import measuring

    loaded, uncut = load_program(input, options.Model(dim))
    found = find_frontier(uncut)
    beside, notes = measuring.find_beside(loaded.source, Path(input)), loaded.notes
    if as_json:
        record = None if beside is None else asdict(beside)
        added = {"beside": record, "notes": [asdict(note) for note in notes]}
        output.line(output.make_json(_summarise(found) | added))
    else:
        from memplan.view.words import bands, parts

        output.console().print(bands.describe_frontier(found, top, beside))
        if notes:
            output.console().print(parts.render_notes(notes))
    if out is not None:
        from memplan.problem.formats import write_text
        from memplan.view import frontier, picture

        if form == "html":
            write_text(out, frontier.html(found, title=Path(input).name))
        else:
            picture.write(frontier.draw(found), out)
        if not as_json:
            output.tell_written(out)


def load_program(input: str, model: options.Model) -> tuple[Loaded, Uncut]:
    """Return a model, and what is known of its operators: they say which rows they need."""
    from memplan.base.errors import MemplanError
    from memplan.programs.graph.pictures import UNKNOWN_ROWS
    from memplan.programs.sources import detect
    from memplan.runtimes.choosing import choose_writer

    kind = detect(input)
    writer = choose_writer(Path(input), options=model.reading(), fused=False)
    given = writer.open()
    uncut = writer.uncut(given)
    if all(each.why_whole == UNKNOWN_ROWS for each in uncut.operators):
        fields = '; "reads" of a graph JSON says it' if kind == "graph" else ""
        raise MemplanError(
            f"{input}: it is not known of any operator which rows of its inputs it needs{fields}"
        )
    return given.loaded, uncut


def _summarise(found: Frontier) -> dict[str, Any]:
    """Return the facts for scripts; amounts are in bytes."""
    return {
        "macs": found.uncut.macs,
        "complete": found.is_complete,
        "points": [
            {
                "arena": point.arena,
                "load": point.load,
                "overhead": point.overhead,
                "extra": round(found.extra(point), 6),
                "regions": [
                    asdict(region) | {"kept": sorted(region.kept)} for region in point.regions
                ],
            }
            for point in found.points
        ],
        "whole": [
            {"operator": operator.name, "why": operator.why_whole}
            for operator in found.uncut.operators
            if operator.why_whole
        ],
    }
