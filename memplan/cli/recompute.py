"""`memplan recompute`: which operators to run again, so that a program fits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from memplan.cli import options, output, reading

NAME = "recompute"
EXAMPLES = (
    "memplan recompute model.onnx --dim batch=8 --capacity 64MiB",
    "memplan recompute model.tflite -c 64KiB -o again.json",
)


def command(
    input: options.Input,
    capacity: Annotated[
        int,
        typer.Option(
            "--capacity",
            "-c",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="The most that may be live at one time: 1048576, 1MiB, 96K.",
        ),
    ],
    costs: options.Costs = None,
    spill: options.Spill = None,
    out: Annotated[
        str | None,
        options.write_to("Write the program with its copied operators as a graph in JSON."),
    ] = None,
    dim: options.Dim = None,
    timeout: options.Timeout = None,
    states: options.States = None,
    pure: options.Pure = None,
    as_json: options.AsJson = False,
) -> None:
    """Find operators to run again, so that a program fits, at the least cost.

    A result that is read much later need not be kept: what makes it runs again; or, with --spill,
    it is moved to another memory and back. First the order with the least load is taken. Bounds say
    what every order, all re-runs and moves cost at least.
    """
    output.check_output(out, input, *([costs] if costs else []))
    output.check_suffix(out, {".json": "the program"})
    loaded = reading.read_input(input, options.Model(dim))
    reading.require_unit(capacity, loaded)

    from memplan.levers.rewrite import recompute

    found = recompute(
        loaded, capacity, costs=costs, spill=spill, timeout=timeout, states=states, pure=pure or ()
    )
    if out is not None:
        from memplan.problem import formats
        from memplan.programs.sources.graph_json import write_graph

        formats.write_files({out: write_graph(found.graph).encode()})
    if as_json:
        from memplan.ask.facts import summarise_change

        record: dict[str, Any] = {"seconds": round(found.seconds, 6), "output": out}
        record |= {"notes": [asdict(note) for note in found.loaded.notes]}
        output.line(output.make_json(summarise_change(found) | record))
    else:
        from memplan.view.words import again, parts

        output.console().print(again.describe_recomputed(found))
        if found.loaded.notes:
            output.console().print(parts.render_notes(found.loaded.notes))
        output.tell_written(out)
    if found.interrupted:
        output.message(f"interrupted: {found.status}, the best re-runs so far")
