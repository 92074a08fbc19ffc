"""`memplan convert`: problems and plans from one format to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output
from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.problem import Problem

NAME = "convert"


def command(
    input: Annotated[
        str,
        typer.Argument(metavar="IN", help="A problem or a plan: CSV or JSON.", callback=keep),
    ],
    out: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    to: Annotated[
        options.Format | None,
        typer.Option("--to", help="Format of OUT; by default its suffix decides."),
    ] = None,
    dialect: Annotated[
        options.Dialect, typer.Option("--dialect", help="Columns of CSV for lifetimes.")
    ] = options.Dialect.LOWER_UPPER,
    problem: Annotated[
        str | None,
        typer.Option(
            "--problem",
            metavar="FILE",
            help="What a plan is for: JSON plans have no lifetimes.",
            callback=keep,
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="IN is a plan; MiniMalloc's own plans do not say so."),
    ] = False,
) -> None:
    """Write a problem or a plan in another format, without losing anything."""
    output.check_output(out, input, *([problem] if problem else []))

    from memplan import formats
    from memplan.problem import Problem

    what = formats.load_plan(input) if plan or problem else _load(input)
    owner = formats.load(problem) if problem else None
    written = to.literal if to else None
    formats.save(what, out, format=written, dialect=dialect.value, problem=owner)
    as_csv = written == "csv" or (written is None and not out.lower().endswith(".json"))
    if as_csv and isinstance(what, Problem) and what.capacity is not None:
        output.message(f"CSV carries no capacity; give --capacity {what.capacity} with {out}")


def _load(path: str) -> Problem | Plan:
    """Read a problem, or a plan that says that it is one."""
    from memplan import formats
    from memplan.errors import FormatError

    try:
        return formats.load(path)
    except FormatError as error:
        try:
            return formats.load_plan(path)
        except FormatError:
            raise error from None
