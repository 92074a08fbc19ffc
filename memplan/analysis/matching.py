"""Matches the buffers of two versions of a program."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from memplan.problem.columns import NONE

__all__ = ["Names", "match_rows"]


class Names(NamedTuple):
    """The properties by which buffers are matched, by row: first ids, then tensors, then shapes."""

    ids: Sequence[str]
    # The names of the tensors that share the buffer's memory, including its id.
    tensors: Sequence[Sequence[str]]
    shapes: Sequence[Hashable] | None  # size, lifetime and maker; `None` if these are not known


def match_rows(before: Names, after: Names) -> list[int]:
    """Return for each row of `after` its row of `before`, or -1; none of `before` occurs twice."""
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
    """Match the remaining rows: pairs that have keys in common with each other and no other row."""
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
