"""`memplan verify-proof`: the independent check of a proof."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import options, output
from memplan.cli.inputs import keep
from memplan.cli.verify import load_valid_plan

NAME = "verify-proof"


def command(
    problem: options.Input,
    proof: Annotated[
        str,
        typer.Argument(metavar="PROOF", help="From `memplan plan --proof`.", callback=keep),
    ],
    plan: Annotated[
        str | None,
        typer.Option("--plan", metavar="PLAN", help="Say also whether this plan is optimal."),
    ] = None,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    dim: options.Dim = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    limit_factor: options.LimitFactor = 1,
) -> None:
    """Check a proof that no plan is better: exit code 0 if it is right, 1 if it is not.

    The check shares no code with any solver. What was proved with --pin, --reserve or --dim is
    checked with the same.
    """
    model = options.Model(dim, include, exclude, limit_factor=limit_factor)
    asked = options.read_input(problem, None, reserve, pin, model)

    from memplan.errors import ProofError
    from memplan.referee import verify_proof
    from memplan.view.units import exact, plural

    peak = None if plan is None else load_valid_plan(asked, plan)[0].peak
    try:
        claim = verify_proof(asked, proof)
    except ProofError as error:
        output.message(f"{proof}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
    length = plural(claim.clauses, "clause")
    output.line(f"proved: no plan has a peak of at most {exact(claim.cap)} ({length})")
    if peak is None:
        return
    if peak > claim.lower_bound:
        least = exact(claim.lower_bound)
        output.line(f"the plan may not be optimal: its peak is {exact(peak)}, not {least}")
        raise typer.Exit(output.INFEASIBLE)
    output.line(f"the plan is optimal: its peak is {exact(peak)}")
