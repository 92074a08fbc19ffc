"""`memplan tradeoff`: what less memory costs in more work."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.levers.pipeline import Tradeoff, TradeoffPoint
    from memplan.levers.rewrite.bands import Frontier, Uncut
    from memplan.programs.sources import Loaded

NAME = "tradeoff"
EXAMPLES = (
    "memplan tradeoff model.onnx --dim batch=8",
    "memplan tradeoff model.tflite -o tradeoff.html",
)

_POINTS = 8


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    out: Annotated[
        str | None,
        options.write_to(
            "Draw memory against work: a page (.html), or a picture (.png, .svg, .pdf)."
        ),
    ] = None
    points: Annotated[
        int,
        typer.Option("--points", min=1, max=1000, help="How many sizes are tried with each lever."),
    ] = _POINTS
    levers: Annotated[
        str | None,
        typer.Option(
            "--levers",
            metavar="bands",
            help="Only programs in bands of rows, each with its load, its copies and its regions.",
        ),
    ] = None


def command(
    input: options.Input,
    *,
    costs: options.Costs = None,
    spill: options.Spill = None,
    in_place: options.InPlace = False,
    dim: options.Dim = None,
    pure: options.Pure = None,
    limits: options.Limits,
    as_json: options.AsJson = False,
    top: options.Top = 10,
    asked: _Asked,
) -> None:
    """Show what less memory costs in more work, and what is proved of that.

    Another order of operators costs nothing; re-runs and bands of rows repeat work, and --spill
    moves tensors. Each line is a program with a verified plan that no other one beats in both.
    `memplan fit INPUT SIZE` writes it. Without --timeout or --nodes, each search ends after 1,000
    nodes.
    """
    output.check_output(asked.out, input, *([costs] if costs else []))
    form = output.choose_drawing(asked.out, input)
    if asked.levers is not None:
        given = {
            "--costs": costs is not None,
            "--spill": spill is not None,
            "--in-place": in_place,
            "--pure": bool(pure),
            "--points": asked.points != _POINTS,
            "--timeout": limits.timeout is not None,
            "--nodes": limits.nodes is not None,
        }
        output.refuse_given(given, "it says nothing about bands alone")
        if asked.levers != "bands":
            message = f"{asked.levers!r} has no tradeoff of its own; only bands have"
            raise typer.BadParameter(message, param_hint="'--levers'")
        _show_bands(input, asked.out, form, dim, top, as_json=as_json)
        return
    loaded = reading.read_input(input, options.Model(dim))

    from memplan.levers.pipeline import tradeoff

    moves: dict[str, Any] = {"in_place": in_place, "costs": costs, "spill": spill}
    found = tradeoff(loaded, points=asked.points, pure=pure or (), **moves, **vars(limits))
    if as_json:
        output.line(output.make_json(_summarise(found)))
    else:
        from memplan.view.words.tradeoff import describe_tradeoff

        output.console().print(describe_tradeoff(found))
    if asked.out is not None:
        _draw(found, asked.out, form, Path(input).name)
        output.tell_written(*[asked.out] * (not as_json))
    if found.interrupted:
        output.message("interrupted: the points so far are shown")


def _draw(found: Tradeoff, out: str, form: str | None, title: str) -> None:
    """Draw memory against work, as a page or as a picture."""
    from memplan.problem.formats import write_text
    from memplan.view import picture
    from memplan.view.page.tradeoff import html
    from memplan.view.tradeoff import draw

    if form == "html":
        write_text(out, html(found, title=title))
    else:
        picture.write(draw(found), out)


def _summarise(found: Tradeoff) -> dict[str, Any]:
    """Return the facts for scripts: bytes, and shares of the work of one plain run."""
    return {
        "given": found.given.arena,
        "points": [_summarise_point(found, point) for point in found.points],
        "limits": [
            {
                "capacity": limit.capacity,
                "bound": round(found.share_of(limit.bound), 9),
                "order_bound": round(found.share_of(limit.order_bound), 9),
                "impossible": limit.is_impossible,
            }
            for limit in found.limits
        ],
        "floor": {"bytes": found.floor, "operator": found.floor_operator},
        "least": {"bytes": found.least, "why": found.why},
        "gains_nothing": found.gains_nothing,
        "no_bands": found.no_bands,
        "picoseconds": found.plain,
        "interrupted": found.interrupted,
        "seconds": round(found.seconds, 6),
        "notes": [asdict(note) for note in found.notes],
    }


def _summarise_point(found: Tradeoff, point: TradeoffPoint) -> dict[str, Any]:
    bands, again = point.draft.point, point.again
    return {
        "arena": point.arena,
        "extra": round(point.extra, 9),
        "bound": None if point.bound is None else round(point.bound, 9),
        "order_bound": None if point.order_bound is None else round(point.order_bound, 9),
        "levers": list(point.levers),
        "runs": None if again is None else list(again.runs),
        "moved": None if again is None else list(again.moved),
        "regions": None
        if bands is None
        else [asdict(region) | {"kept": sorted(region.kept)} for region in bands.regions],
        "extra_macs": None
        if bands is None or found.frontier is None
        else round(found.frontier.extra(bands), 9),
    }


def _show_bands(
    input: str,
    out: str | None,
    form: str | None,
    dim: list[str] | None,
    top: int,
    *,
    as_json: bool,
) -> None:
    """Show how far the arena shrinks if large tensors are computed one band of rows at a time.

    Each line is a program in bands; no other one needs less memory for as little work. Work counts
    repeated multiplications and copied elements.
    """
    from memplan.levers.rewrite.bands import find_frontier
    from memplan.programs.sources import measuring
    from memplan.solvers.stopping import stoppable

    loaded, uncut = _load_program(input, options.Model(dim))
    with stoppable() as stop:
        found = find_frontier(uncut)
    beside, notes = measuring.find_beside(loaded.source, Path(input)), loaded.notes
    if as_json:
        record = None if beside is None else asdict(beside)
        added = {"interrupted": stop.is_set, "notes": [asdict(note) for note in notes]}
        output.line(output.make_json(_summarise_bands(found) | {"beside": record} | added))
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
    output.tell_interrupted(stop.is_set, "the best so far")


def _load_program(input: str, model: options.Model) -> tuple[Loaded, Uncut]:
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


def _summarise_bands(found: Frontier) -> dict[str, Any]:
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
