"""`memplan solvers`: who can do what."""

from __future__ import annotations

from memplan.cli import output

NAME = "solvers"


def command() -> None:
    """List the solvers, the constraints that each supports, and the extra that it needs."""
    from memplan.solvers import registry
    from memplan.view.words import solvers as words

    console = output.console()
    for title, baselines in (("Solvers", False), ("\nBaselines, to compare with", True)):
        rows = [
            (
                solver.name,
                solver.summary + (f" (pip install '{solver.extra}')" if solver.extra else ""),
                [constraint in solver.supports for constraint in registry.CONSTRAINTS],
            )
            for solver in registry.SOLVERS.values()
            if solver.is_baseline == baselines
        ]
        console.print(title, style="bold")
        console.print(words.solver_table(rows, registry.CONSTRAINTS))
