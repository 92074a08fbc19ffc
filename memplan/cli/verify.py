"""`memplan verify`: the independent check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.problem import Problem
    from memplan.sources import Loaded

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
    limit_factor: options.LimitFactor = 1,
) -> None:
    """Check a plan against its problem: exit code 0 if it is safe, 1 if it is not.

    The check shares no code with any solver. A plan is checked with the same options that
    it was made with: --pin, --reserve, --dim, ...
    """
    model = options.Model(dim, include, exclude, in_place, limit_factor=limit_factor)
    loaded = options.read_input(problem, capacity, reserve, pin, model)

    from memplan.view.words.plans import verified

    answered, asked = load_valid_plan(loaded, plan, in_place)
    output.console().print(verified(asked, answered))


def load_valid_plan(loaded: Loaded, path: str, in_place: bool = False) -> tuple[Plan, Problem]:
    """Read a plan that the referee lets pass, and return it with the problem that it is for.

    For a plan that it rejects, say why, and exit with 1.
    """
    from memplan import formats
    from memplan.errors import PlanError
    from memplan.planning import layout_of

    plan = formats.load_plan(path)
    try:
        return plan, layout_of(loaded, plan, in_place=in_place).problem
    except PlanError as error:
        output.message(f"{path}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
