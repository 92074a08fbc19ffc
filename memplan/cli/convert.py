"""`memplan convert`: problems and plans from one format to another, and graphs of conflicts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output, reading
from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded

NAME = "convert"
EXAMPLES = (
    "memplan convert problem.csv problem.json",
    "memplan convert model.tflite conflicts.dot",
)

_PICTURES = {".svg": "a picture", ".png": "a picture", ".pdf": "a picture"}
_GRAPHS = {".dot": "the graph", ".gv": "the graph", ".graphml": "the graph"}


class FileFormat(StrEnum):
    """What can be written; DOT and GraphML have the interference graph of a problem."""

    CSV = "csv"
    JSON = "json"
    DOT = "dot"
    GRAPHML = "graphml"


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    also_out: Annotated[str | None, options.write_to("The same as OUT.")] = None
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Format of OUT; by default its suffix decides."),
    ] = None
    dialect: Annotated[
        options.Dialect, typer.Option("--dialect", help="Names of the CSV columns for lifetimes.")
    ] = options.Dialect.LOWER_UPPER
    problem: Annotated[
        str | None,
        typer.Option(
            "--problem",
            metavar="FILE",
            help="The problem of a JSON plan, which has no lifetimes.",
            callback=keep,
        ),
    ] = None
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Read IN as a plan; files of MiniMalloc do not say that they are plans."
        ),
    ] = False


def command(
    input: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="A problem or a plan (CSV or JSON), or a model, trace or graph, whose problem is "
            "written.",
            callback=keep,
        ),
    ],
    out: Annotated[
        str | None,
        typer.Argument(metavar="OUT", help="The file to write; --output names it as well."),
    ] = None,
    *,
    dim: options.Dim = None,
    read: options.Read = None,
    asked: _Asked,
) -> None:
    """Write a problem or a plan in another format, or the graph of buffers that must be apart.

    CSV and JSON store all of a problem or a plan. The interference graph is for other tools: its
    nodes are the buffers and its edges the conflicts. It is written as DOT (.dot, .gv), as GraphML
    (.graphml), or, if the problem is small, as a picture (.svg, .png, .pdf).
    """
    if (out is None) == (asked.also_out is None):
        raise typer.BadParameter("name one file to write: OUT, or --output FILE")
    out = str(asked.also_out if out is None else out)
    output.check_output(out, input, *([asked.problem] if asked.problem else []))
    if asked.format is None:
        output.check_suffix(out, output.PLANS | _GRAPHS | _PICTURES)

    from memplan.base.errors import FormatError
    from memplan.problem import formats
    from memplan.problem.plan import Plan

    drawn = asked.format is None and os.path.splitext(out)[1].lower() in _PICTURES
    output.check_libraries(input, extras=("plot",) * drawn)
    model = options.Model(dim, read=read)
    what = formats.load_plan(input) if asked.plan or asked.problem else _load(input, model)
    owner = formats.load(asked.problem) if asked.problem else None
    kind = asked.format.value if asked.format else formats.choose_format(out)
    written: tuple[str, ...] = (out,)
    if isinstance(what, Plan):
        if drawn or kind in ("dot", "graphml"):
            raise FormatError(
                input, "this is a plan; the interference graph is that of its problem"
            )
        written = formats.save(what, out, format=kind, dialect=asked.dialect.value, problem=owner)
    elif drawn:
        from memplan.view import interference, picture

        picture.write(interference.draw(what.problem), out)
    else:
        formats.save(what, out, format=kind, dialect=asked.dialect.value)
        _tell_lost(what, out, kind)
    for note in () if isinstance(what, Plan) else what.notes:
        output.message(f"note: {note.text}")  # OUT may be the standard output
    output.tell_written(*written)


def _tell_lost(what: Loaded, out: str, kind: str) -> None:
    """Say which limits the new file has no place for."""
    capacity = what.problem.capacity
    if kind == "csv" and capacity is not None:
        output.message(f"CSV has no place for the capacity; use --capacity {capacity} with {out}")
    if what.block_limit is not None:
        output.message(
            "a problem has no place for the host's limit on blocks; use --block-limit "
            f"{what.block_limit} with {out}"
        )


def _load(path: str, model: options.Model) -> Loaded | Plan:
    """Read the problem of a file, or a plan that says that it is one."""
    from memplan.base.errors import FormatError
    from memplan.problem import formats
    from memplan.programs import sources

    try:
        format = sources.detect(path)
        if format in ("csv", "json"):
            return sources.of_problem(formats.load(path), format)
    except FormatError:
        plan = reading.find_plan(path)
        if plan is None:
            raise
        return plan
    return reading.read_input(path, model=model)
