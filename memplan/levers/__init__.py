"""Levers: a program becomes another one that computes the same in less memory.

Each lever is one file; `LEVERS` has them in the order in which they are pulled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memplan.base.errors import MemplanError, quoted
from memplan.levers.again import Again, describe_again
from memplan.levers.bands import Bands
from memplan.levers.in_place import InPlace
from memplan.levers.lever import Aim, Candidate, Lever
from memplan.levers.order import Order
from memplan.levers.unread import Unread
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
    "find_lever",
    "find_levers",
    "graph_of",
]

# What costs no work comes first; writes over inputs come last, as they are a matter of layout.
GROUP: Final = "memplan.levers"  # of entry points
LEVERS: tuple[Lever, ...] = (Unread(), Waits(), Order(), Again(), Bands(), InPlace())


def find_levers(names: Iterable[str | Lever]) -> tuple[Lever, ...]:
    """Return levers by name, in the order in which they are pulled.

    Parameters
    ----------
    names
        Those of `LEVERS`, with a "-" or "_" for each space if that is easier; those of other
        packages, by the entry points `memplan.levers`; or levers of the caller's own, which are
        pulled after these.

    Raises
    ------
    MemplanError
        If there is no such lever.
    """
    known = _list_known()
    given = [names] if isinstance(names, str) else list(names)
    asked, own = set(), []
    for each in given:
        if not isinstance(each, str):
            own.append(each)
            continue
        name = each.replace("-", " ").replace("_", " ")
        if name not in known:
            raise MemplanError(_explain_unknown(each, known))
        asked.add(name)
    return (*(lever for lever in known.values() if lever.name in asked), *own)


def find_lever(name: str, own: Iterable[Lever] = ()) -> Lever:
    """Return the lever of a step by its name: one of the caller's own, or a known one.

    Raises
    ------
    MemplanError
        If there is none.
    """
    known = _list_known() | {lever.name: lever for lever in own}
    if name not in known:
        raise MemplanError(_explain_unknown(name, known))
    return known[name]


def _explain_unknown(name: str, known: Iterable[str]) -> str:
    return f"there is no lever {quoted(name)}; they are {', '.join(map(quoted, known))}"


def _list_known() -> dict[str, Lever]:
    """Return all levers by name: those of memplan, then those of other packages."""
    from importlib.metadata import entry_points

    found = {lever.name: lever for lever in LEVERS}
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            lever = entry.load()
        except Exception as error:  # the import of another package may raise any exception
            raise MemplanError(
                f"the lever {quoted(entry.name)} of another package cannot be loaded: "
                f"{type(error).__name__}: {str(error)[:150]}"
            ) from error
        if not hasattr(lever, "list_candidates"):
            raise MemplanError(f"{entry.value} is declared as a lever, but is no memplan lever")
        found.setdefault(lever.name, lever)
    return found
