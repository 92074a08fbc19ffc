"""Which buffer of one problem is which of another, when programs change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from memplan.problem.columns import NONE

__all__ = ["Names", "matched"]


class Names(NamedTuple):
    """What buffers are known by, by row.

    Attributes
    ----------
    ids
        First of all by these.
    tensors
        Then by the names of what shares their memory, of which the id is one.
    shapes
        Then by what they look like; `None` where that is not known.
    """

    ids: Sequence[str]
    tensors: Sequence[Sequence[str]]
    shapes: Sequence[Hashable] | None


def matched(before: Names, after: Names) -> list[int]:
    """Return for each row after its row before, or -1; no row before is there twice."""
    row_of = {id: row for row, id in enumerate(before.ids)}
    found = [row_of.get(id, NONE) for id in after.ids]
    _join(found, before.tensors, after.tensors)
    if before.shapes is not None and after.shapes is not None:
        _join(found, [[shape] for shape in before.shapes], [[shape] for shape in after.shapes])
    return found


def _join(
    found: list[int],
    before: Sequence[Iterable[Hashable]],
    after: Sequence[Iterable[Hashable]],
) -> None:
    """Match rows that are left over, where each has keys in common with the other one alone."""
    taken = set(found)
    with_key: dict[Hashable, list[int]] = defaultdict(list)
    for row, keys in enumerate(before):
        if row not in taken:
            for key in keys:
                with_key[key].append(row)
    partners = {
        row: {other for key in keys for other in with_key.get(key, ())}
        for row, keys in enumerate(after)
        if found[row] == NONE
    }
    claims = Counter(other for others in partners.values() for other in others)
    for row, others in partners.items():
        if len(others) == 1 and claims[min(others)] == 1:
            found[row] = min(others)
