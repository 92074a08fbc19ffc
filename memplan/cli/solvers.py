"""`memplan solvers`: who can do what."""

from __future__ import annotations

from memplan.cli import output

NAME = "solvers"


def command() -> None:
    """List the solvers and the constraints that each supports."""
    from memplan.solvers import registry
    from memplan.view import text

    rows = [
        (
            name,
            solver.summary,
            [constraint in solver.supports for constraint in registry.CONSTRAINTS],
        )
        for name, solver in registry.SOLVERS.items()
    ]
    output.console().print(text.solver_table(rows, registry.CONSTRAINTS))
