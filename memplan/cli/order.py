"""`memplan order`: the order of operators with the least load, and what any order needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.levers.rewrite import Reordered
    from memplan.programs.sources import Loaded

NAME = "order"
EXAMPLES = (
    "memplan order model.onnx --dim batch=8",
    "memplan order model.tflite --in-place --states 100000",
)


def command(
    input: options.Input,
    model: options.Model,
    timeout: options.Timeout = None,
    states: options.States = None,
    pure: options.Pure = None,
    top: options.Top = 10,
    as_json: options.AsJson = False,
) -> None:
    """Find the order of a program's operators in which the least memory is live at one time.

    Show what moves and why, and the least memory that any order needs. Nothing is written: `memplan
    plan --levers order` plans the best order. Ctrl-C ends the search with the best order so far.
    """
    loaded = reading.read_input(input, model)

    from memplan.levers.rewrite import reorder
    from memplan.programs.sources import measuring

    found = reorder(
        loaded,
        in_place=model.in_place,
        timeout=timeout,
        states=states,
        pure=pure or (),
    )
    beside = measuring.find_beside(loaded.source, Path(input)) if model.runtime else None
    if as_json:
        record = None if beside is None else asdict(beside)
        output.line(output.make_json(_summary(found) | {"beside": record}))
    else:
        from memplan.view.words import orders, parts

        console = output.console()
        console.print(orders.describe_order(found, top, beside))
        if found.loaded.notes:
            console.print(parts.render_notes(found.loaded.notes))
    if found.interrupted:
        output.message(f"interrupted: {found.status}, the best order so far")


def show_loads(
    given: Loaded,
    out: str | None,
    width: float | None,
    terminal: bool,
    in_place: bool,
    **limits: Any,
) -> None:
    """Show the load of a program in its given order, and in the best one that is found."""
    from memplan.levers.rewrite import reorder
    from memplan.solvers.planning import layouts

    found = reorder(given, in_place=in_place, **limits)
    ways = [each.problem for each in layouts(given, in_place=in_place)]
    before, after = min(ways, key=lambda each: each.max_load), found.loaded.problem
    if terminal:
        from memplan.view.words.problems import draw_loads

        output.console().print(draw_loads({"given order": before, "best order": after}))
    if out is not None:
        from memplan.view import load_plot, picture

        picture.write(load_plot.draw_orders(before, after, width=width), out)
        output.tell_written(out)
    if found.interrupted:
        output.message("interrupted: the best order so far is shown")


def summarise(found: Reordered) -> dict[str, Any]:
    """Return what orders need, for scripts; amounts are in bytes."""
    from memplan.ask.facts import summarise_change
    from memplan.levers.rewrite.moves import cut_of

    facts, cut = summarise_change(found), cut_of(found)
    facts.pop("runs")
    seconds = round(found.seconds, 6)
    return facts | {"seconds": seconds, "cut": None if cut is None else asdict(cut)}


def _summary(found: Reordered) -> dict[str, Any]:
    from memplan.levers.rewrite.moves import explain_moves

    moves = explain_moves(found)
    return {
        "source": found.given.source,
        "in_place": found.in_place,
        "operators": len(found.order),
        **summarise(found),
        "moves": None if moves is None else asdict(moves),
        "order": list(found.order),
        "notes": [asdict(note) for note in found.loaded.notes],
    }
