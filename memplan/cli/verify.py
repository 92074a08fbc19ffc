"""`memplan verify`: the independent check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.problem import Problem

NAME = "verify"


def command(
    problem: options.Input,
    plan: options.PlanInput,
    capacity: options.Capacity = None,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    dim: options.Dim = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    in_place: options.InPlace = False,
) -> None:
    """Check a plan against its problem: exit 0 if it is safe, 1 if it is not.

    The check shares no code with any solver. A plan is checked with the same options that
    it was made with: --pin, --reserve, --dim, ...
    """
    model = options.Model(dim, include, exclude, in_place)
    asked = options.read_problem(problem, capacity, reserve, pin, model)

    from memplan.view.units import exact, plural

    answered = valid_plan(asked, plan)
    limit = "" if asked.capacity is None else f" within {exact(asked.capacity)}"
    output.line(f"OK: {plural(len(asked), 'buffer')}, peak {exact(answered.peak or 0)}{limit}")


def valid_plan(problem: Problem, path: str) -> Plan:
    """Read a plan that the referee lets pass; otherwise say why not, and exit with 1."""
    from memplan import formats
    from memplan.errors import PlanError
    from memplan.verify import verify

    plan = formats.load_plan(path)
    try:
        verify(problem, plan)
    except PlanError as error:
        output.message(f"{path}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
    return plan
