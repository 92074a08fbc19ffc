"""`memplan verify` on plans of blocks, as `memplan plan --block-limit` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from memplan.cli import output

if TYPE_CHECKING:
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded

__all__ = ["refuse_alone", "verify"]


def refuse_alone(plan: Plan, path: str) -> None:
    """Refuse the plan of one block where all are needed."""
    if "blocks" in plan.stats:
        raise typer.BadParameter(
            f"{path} is one of {plan.stats['blocks']} blocks; give the folder of all of them",
            param_hint="'PLAN'",
        )


def _read_limit(plan: Plan) -> int:
    """Return the limit on blocks that the plan of a block says."""
    limit = plan.stats.get("limit", plan.capacity)
    return limit if isinstance(limit, int) else plan.peak or 0


def verify(loaded: Loaded, folder: str, plans: Mapping[str, Plan], *, in_place: bool) -> None:
    """Check the plans of all blocks in a folder; say why, and exit with 1, if one is wrong.

    They are of one of the layouts of the program.
    """
    from memplan.base.errors import PlanError
    from memplan.referee import verify_blocks
    from memplan.solvers.planning import layouts
    from memplan.view.units import exact, plural

    in_order = [plans[path] for path in sorted(plans, key=lambda path: (len(path), path))]
    limit = min(map(_read_limit, in_order))
    total, wrong = None, None
    for layout in layouts(loaded, in_place=in_place):
        try:
            total = verify_blocks(layout.problem, limit, in_order)
        except PlanError as error:
            wrong = wrong or error
        else:
            break
    if total is None:
        output.message(f"{folder}: {wrong}")
        raise typer.Exit(output.INFEASIBLE)
    blocks = plural(len(plans), "block")
    high = sum((plan.peak or 0) > limit for plan in in_order)
    most = f", {high} above" if high else " of at most"
    output.line(f"valid: {blocks}{most} {exact(limit)}, {exact(total)} in all")
