"""`memplan view`: the picture of a plan."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import options, output

NAME = "view"


def command(
    problem: options.Input,
    plan: options.PlanInput,
    out: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf."),
    ],
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    dim: options.Dim = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    in_place: options.InPlace = False,
) -> None:
    """Draw a plan: time to the right, addresses upwards. Needs the extra `plot`."""
    output.check_output(out, problem, plan)
    model = options.Model(dim, include, exclude, in_place)
    asked = options.read_problem(problem, None, reserve, pin, model)

    from memplan import formats
    from memplan.view import plot

    plot.save(asked, formats.load_plan(plan), out)
