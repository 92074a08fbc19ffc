"""`memplan plan --block-limit`: buffers in blocks of limited size, and the check of their plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from memplan.cli import output, reading

if TYPE_CHECKING:
    from memplan.memories import Blocks
    from memplan.problem.plan import Plan
    from memplan.sources import Loaded

__all__ = ["SETTLED", "plan", "refuse_alone", "report", "verify"]

SETTLED = frozenset({"block-limit"})  # the codes of notes of an input that blocks make untrue


def plan(loaded: Loaded, limit: int, folder: str | None, **search: Any) -> Blocks:
    """Plan blocks of at most so many bytes, if the folder can hold their plans."""
    output.check_folder(folder)
    reading.require_unit(limit, loaded)
    from memplan.memories import plan_blocks

    return plan_blocks(loaded, limit, **search)


def report(
    found: Blocks, loaded: Loaded, folder: str | None, *, as_json: bool, quiet: bool
) -> None:
    """Print what blocks need, and write their plans into the folder as "block-N.plan.json"."""
    from memplan import formats
    from memplan.formats.json import write_plan

    files: list[str] = []
    if folder is not None:
        files = [
            os.path.join(folder, f"block-{n}{reading.PLAN_SUFFIX}")
            for n in range(1, found.count + 1)
        ]
        left = sorted({*_list_files(folder)} - {*files})
        if left:
            raise typer.BadParameter(
                f"{left[0]} is there, and is none of these {found.count} blocks; give another "
                "folder",
                param_hint="'--output'",
            )
        rows = zip(files, found.plans, strict=True)
        formats.write_files({path: write_plan(plan).encode() for path, plan in rows})
    if as_json:
        output.line(output.make_json(_summarise(found, loaded, files)))
    elif not quiet:
        from memplan.view.words import blocks, parts

        output.console().print(blocks.describe_blocks(found))
        if found.notes:
            output.console().print(parts.render_notes(found.notes))
        output.tell_written(*files)
    output.tell_interrupted(found.interrupted, found.status)


def _summarise(found: Blocks, loaded: Loaded, files: list[str]) -> dict[str, Any]:
    return {
        "source": loaded.source,
        "status": str(found.status),
        "interrupted": found.interrupted,
        "limit": found.limit,
        "count": found.count,
        "count_bound": found.count_bound,
        "total": found.total,
        "total_bound": found.total_bound,
        "capacity": found.problem.capacity,
        "blocks": [
            {
                "peak": plan.peak,
                "buffers": len(plan.ids),
                "output": files[number] if files else None,
            }
            for number, plan in enumerate(found.plans)
        ],
        "notes": [asdict(note) for note in found.notes],
        "seconds": round(found.seconds, 6),
    }


def _list_files(folder: str) -> list[str]:
    """Return the plans of blocks in a folder, which may be new."""
    return [
        os.path.join(folder, name)
        for name in (os.listdir(folder) if os.path.isdir(folder) else ())
        if name.startswith("block-") and name.endswith(reading.PLAN_SUFFIX)
    ]


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
