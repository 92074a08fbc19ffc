"""Levers: a program becomes another one that computes the same in less memory.

Each lever is one file; `LEVERS` has them in the order in which they are pulled.
"""

from __future__ import annotations

from collections.abc import Iterable

from memplan.base.errors import MemplanError, listed, quoted
from memplan.levers.again import Again, describe_again
from memplan.levers.bands import Bands
from memplan.levers.in_place import InPlace
from memplan.levers.lever import Aim, Candidate, Lever
from memplan.levers.order import Order
from memplan.levers.waits import Waits
from memplan.levers.writers import Comparison, Plain, Variant, Writer, Written, graph_of

__all__ = [
    "LEVERS",
    "Aim",
    "Candidate",
    "Comparison",
    "Lever",
    "Plain",
    "Variant",
    "Writer",
    "Written",
    "describe_again",
    "find_levers",
    "graph_of",
]

# What costs no work comes first; writes over inputs come last, as they are a matter of layout.
LEVERS: tuple[Lever, ...] = (Waits(), Order(), Again(), Bands(), InPlace())


def find_levers(names: Iterable[str | Lever]) -> tuple[Lever, ...]:
    """Return levers by name, in the order in which they are pulled.

    Parameters
    ----------
    names
        "in place", "order", "again", "bands", "waits", with a "-" or "_" for each space if that is
        easier; or levers of the caller's own, which are pulled after these.

    Raises
    ------
    MemplanError
        If there is no such lever.
    """
    known = {lever.name: lever for lever in LEVERS}
    given = [names] if isinstance(names, str) else list(names)
    asked, own = set(), []
    for each in given:
        if not isinstance(each, str):
            own.append(each)
            continue
        name = each.replace("-", " ").replace("_", " ")
        if name not in known:
            raise MemplanError(f"there is no lever {quoted(each)}; they are {listed([*known])}")
        asked.add(name)
    return (*(lever for lever in LEVERS if lever.name in asked), *own)
