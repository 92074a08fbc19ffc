"""Compares what is claimed with what is true."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["FalseClaimError", "compare", "must"]

Number = int | float | Fraction


class FalseClaimError(Exception):
    """A claim that is not true."""


def must(is_true: bool, claim: object) -> None:
    """Raise if a claim is not true."""
    if not is_true:
        raise FalseClaimError(str(claim))


def compare(
    what: object, found: Number | None, bound: Number, status: object, true: Number | None
) -> bool:
    """Compare an answer with the least one; return whether it is proved."""
    words = f"{what!r}, but the least is {true}"
    if true is None:
        must(found is None, words)
        return str(status) == "infeasible"
    must(str(status) != "infeasible", words)
    must(bound <= true, words)
    if found is None:
        return False
    must(found >= true, words)
    if str(status) == "optimal":
        must(found == true, words)
    return str(status) == "optimal"
