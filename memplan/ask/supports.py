"""What does not combine, and why: one row for each pair, with its reason as a sentence.

Refusals of `memplan.plan` and of the command are made from these rows, and so are the table of the
documentation and the help. A pair without a row works by composition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from memplan.base.errors import MemplanError

__all__ = ["IDEAS", "REASONS", "explain_pair", "refuse_pairs"]

# What a question may be made of: levers, scenarios, and what a machine is made of.
IDEAS: Final = (
    *("in place", "order", "again", "bands", "waits"),
    *("memories", "in turn", "blocks", "penalties", "sizes", "paths"),
)

REASONS: Final = {
    frozenset({"blocks", "penalties"}): "the number of blocks and the cost of sharing have no "
    "common unit, and buffers in different blocks never share",
    frozenset({"waits", "order"}): "an order is one sequence of all operators, and streams that "
    "wait have several",
    frozenset({"waits", "again"}): "operators run again in one sequence, and streams that wait "
    "have several",
    frozenset({"waits", "bands"}): "bands are computed in one sequence, and streams that wait have "
    "several",
    frozenset({"waits", "in place"}): "what waits for what is found for the layout without writes "
    "over inputs",
    frozenset({"waits", "sizes"}): "what waits for what is found for the buffers of one size",
    frozenset({"waits", "paths"}): "a path is chosen in one sequence of operators, and streams "
    "that wait have several",
    **{
        frozenset({"paths", each}): "the plans of all paths of a program are of one arena, in "
        "which nothing moves when a run continues with that of its path"
        for each in ("memories", "in turn", "blocks", "penalties", "sizes")
    },
    frozenset({"bands", "sizes"}): "pictures are cut for one size",
}


def explain_pair(one: str, other: str) -> str:
    """Return why two ideas do not combine; empty if they do."""
    return REASONS.get(frozenset({one, other}), "")


def _list_refused(ideas: Iterable[str]) -> Iterator[str]:
    asked = list(dict.fromkeys(ideas))
    for at, one in enumerate(asked):
        for other in asked[:at]:
            reason = explain_pair(one, other)
            if reason:
                yield f"{other} and {one} do not combine: {reason}"


def refuse_pairs(ideas: Iterable[str]) -> None:
    """Refuse ideas of which two do not combine, with the reason of the first such pair."""
    for reason in _list_refused(ideas):
        raise MemplanError(f"{reason}; leave one of them out")
