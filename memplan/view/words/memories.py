"""What would lie outside a memory that is too small, and what a little more of it would save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from memplan.view.units import exact

if TYPE_CHECKING:
    from memplan.machine.memories import Assigned
    from memplan.machine.memories.assigned import Price

__all__ = ["describe_outside", "save_by_more"]

_MORE = 1024
_MOST_SPANS = 3


def describe_outside(found: Assigned) -> Text:
    """Return what a second memory would have to serve, and when more of the first one helps.

    In what was found, accesses to the first memory cost nothing, and a byte of the second costs 1.
    """
    total = sum(read + written for read, written in found.accessed.values())
    proof = "proved: no choice has less"
    if found.traffic > found.bound:
        proof = f"no choice has less than {exact(int(found.bound))}"
    words = (
        f"With a second memory, {exact(int(found.traffic))} of {exact(total)} that a run reads and "
        f"writes would be there; {proof}."
    )
    spans = save_by_more(found.prices[0])
    if spans:
        saved = round(sum(price.saved for price in spans))
        times = ", ".join(f"{each.start} to {each.end}" for each in spans[:_MOST_SPANS])
        more = f" and at {len(spans) - _MOST_SPANS} more" if len(spans) > _MOST_SPANS else ""
        words += (
            f" 1 KiB more here saves at most about {exact(saved)} of it, at times {times}{more}."
        )
    return Text(words)


def save_by_more(prices: Sequence[Price]) -> list[Price]:
    """Return what one KiB more saves, by stretches of time without a break, the most first."""
    found: list[Price] = []
    for price in prices:
        saved = _MORE * price.saved
        if found and found[-1].end == price.start:
            saved += found[-1].saved
            price = price._replace(start=found.pop().start)
        found.append(price._replace(saved=saved))
    return sorted(found, key=lambda each: (-each.saved, each.start))
