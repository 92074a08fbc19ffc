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


def verify(loaded: Loaded, folder: str, plans: Mapping[str, Plan]) -> None:
    """Check the plans of all blocks in a folder; say why, and exit with 1, if one is wrong."""
    from memplan.base.errors import PlanError
    from memplan.referee import verify_blocks
    from memplan.view.units import exact, plural

    in_order = [plans[path] for path in sorted(plans, key=lambda path: (len(path), path))]
    limit = min(map(_read_limit, in_order))
    try:
        total = verify_blocks(loaded.problem, limit, in_order)
    except PlanError as error:
        output.message(f"{folder}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
    blocks = plural(len(plans), "block")
    high = sum((plan.peak or 0) > limit for plan in in_order)
    most = f", {high} above" if high else " of at most"
    output.line(f"valid: {blocks}{most} {exact(limit)}, {exact(total)} in all")
