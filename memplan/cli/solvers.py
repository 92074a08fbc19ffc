"""`memplan solvers`: what each solver can do, and which options it has."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import output

NAME = "solvers"
EXAMPLES = (
    "memplan solvers",
    "memplan solvers exact",
)


def command(
    solver: Annotated[
        str | None,
        typer.Argument(metavar="SOLVER", help="List the options of this solver instead."),
    ] = None,
) -> None:
    """List the solvers, the constraints that each supports, and the extra that it needs."""
    from memplan.solvers import registry
    from memplan.view.words import solvers as words

    console = output.console()
    if solver is not None:
        name, _ = registry.parse(solver)
        console.print(words.option_table(name, registry.options_of(name)))
        return
    for title, baselines in (("Solvers", False), ("\nBaselines, to compare with", True)):
        rows = [
            (
                each.name,
                each.summary + (f" (pip install '{each.extra}')" if each.extra else ""),
                [constraint in each.supports for constraint in registry.CONSTRAINTS],
            )
            for each in registry.SOLVERS.values()
            if each.is_baseline == baselines
        ]
        console.print(title, style="bold")
        console.print(words.solver_table(rows, registry.CONSTRAINTS))
    console.print("\n`memplan solvers SOLVER` lists the options of a solver.")
