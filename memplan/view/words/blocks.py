"""Blocks of limited size, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.view.units import exact, percent, seconds
from memplan.view.words.parts import list_facts, make_table

if TYPE_CHECKING:
    from memplan.machine.blocks import Blocks

__all__ = ["describe_blocks"]


def describe_blocks(found: Blocks) -> RenderableType:
    """Return how many blocks are needed and how large they are, beside what is proved."""
    fewest = found.count == found.count_bound
    least = found.total == found.total_bound
    count = "proved: no plan has fewer" if fewest else f"at least {found.count_bound}"
    total = "proved: no plan has less" if least else f"at least {exact(found.total_bound)}"
    high = sum((plan.peak or 0) > found.limit for plan in found.plans) or "none"
    facts = [
        ("blocks", f"{found.count:,}, {high} above {exact(found.limit)}; {count}"),
        ("in all", f"{exact(found.total)}; {total}{'' if least else ' in as many blocks'}"),
        ("search", seconds(found.seconds)),
    ]
    table = make_table("block", "buffers", "needs", "of the limit")
    for number, plan in enumerate(found.plans, 1):
        peak = plan.peak or 0
        table.add_row(str(number), f"{len(plan.ids):,}", exact(peak), percent(peak, found.limit))
    return Group(list_facts(facts), Text(), table)
