"""One plan for all sizes: offsets that are legal at every size of a range.

Fixed offsets have one order at all sizes. So where two buffers live together, the lower one needs
room for the largest size that it has there, and all sizes with the same lifetimes are one problem:
that of the largest bytes. Where lifetimes depend on the size, the time axes of the scenarios are
laid one behind the other. In each, a buffer holds the largest bytes that it has in it, and nothing
outside of its life there. Every moment of every size is then a moment of this one problem, so its
best plan is the best for all sizes.

    scenario         |--- decode ---|---- prefill ----|
    a buffer            |==|            |=========|      10 bytes, then 40
                               nothing                   a gap between them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.columns import Column
from memplan.problem.spans import spans
from memplan.scenarios.envelope.relations import find_pairs
from memplan.scenarios.envelope.sizes import Scenario, with_sizes

__all__ = ["join_scenarios"]

_MOST_PARTS: Final = 256  # kinds of sizes that one problem has
_MOST_BUFFERS: Final = 4096  # of all kinds together, if there are several


def join_scenarios(scenarios: Sequence[Scenario]) -> Problem:
    """Return one problem whose plans are the fixed offsets that are legal at every size.

    Lifetimes that differ in too many ways are refused.
    """
    parts = [part for scenario in scenarios for part in _find_parts(scenario)]
    if len(parts) > _MOST_PARTS or sum(map(len, parts[1:])) > _MOST_BUFFERS:
        raise MemplanError(
            "lifetimes differ between too many sizes for one plan; ask for fewer sizes"
        )
    kept = _drop_dominated(parts) if len(parts) > 1 else parts
    if len(kept) == 1 and {id for each in parts for id in each.ids} <= set(kept[0].ids):
        return kept[0]
    return _lay_out(kept, parts)


def _find_parts(scenario: Scenario) -> list[Problem]:
    """Return a problem for each set of buffers that hold bytes at the same sizes."""
    found: dict[bytes, Column] = {}
    for _, _, sizes in scenario.chunks():
        held = sizes > 0
        if held.all():
            held = held[:, :1]
        masks, number = np.unique(held, axis=1, return_inverse=True)
        for at, mask in enumerate(masks.T):
            mine = number.ravel() == at if len(masks.T) > 1 else slice(None)
            most = sizes[:, mine].max(axis=1)
            key = mask.tobytes()
            found[key] = np.maximum(found[key], most) if key in found else most
    return [with_sizes(scenario.template, most) for most in found.values()]


def _drop_dominated(parts: Sequence[Problem]) -> list[Problem]:
    """Leave out each part that asks for nothing beyond another one."""
    needs = [_list_needs(part) for part in parts]
    kept: list[int] = []
    for at, need in enumerate(needs):
        others = [*kept, *range(at + 1, len(parts))]
        if not any(_asks_for_all(needs[other], need) for other in others):
            kept.append(at)
    return [parts[at] for at in kept]


class _Needs(NamedTuple):
    """The bytes and the alignment of each buffer, and which may not share addresses."""

    sizes: dict[str, int]
    units: dict[str, int]
    pairs: set[tuple[str, str]]


def _list_needs(part: Problem) -> _Needs:
    ids, held = part.ids, part.size > 0
    rows = np.argwhere(find_pairs(part) & held & held[:, None])
    return _Needs(
        dict(zip(ids, part.size.tolist(), strict=True)),
        dict(zip(ids, part.alignment.tolist(), strict=True)),
        {(ids[a], ids[b]) for a, b in rows.tolist()},
    )


def _asks_for_all(one: _Needs, other: _Needs) -> bool:
    return other.pairs <= one.pairs and all(
        size <= one.sizes.get(id, 0) and one.units.get(id, 0) % other.units[id] == 0
        for id, size in other.sizes.items()
    )


def _lay_out(parts: Sequence[Problem], every: Sequence[Problem]) -> Problem:
    """Lay the times of the parts one behind the other; the buffers are those of `every` part."""
    held: dict[str, list[tuple[int, int, int]]] = {}
    units: dict[str, int] = {}
    for part in every:
        for id, unit in zip(part.ids, part.alignment.tolist(), strict=True):
            units[id] = int(np.lcm(units.get(id, 1), unit))
            held[id] = []
    begin = 0
    for part in parts:
        live = spans(part)
        first = int(live.start.min(initial=0))
        columns = (live.buffer, live.start, live.end)
        for row, start, end in zip(*(each.tolist() for each in columns), strict=True):
            span = (begin + start - first, begin + end - first, int(part.size[row]))
            held[part.ids[row]].append(span)
        begin += int(live.end.max(initial=first)) - first
        for a, b in part.conflicts.pairs().tolist():  # a moment at which both hold their bytes
            for row in (a, b):
                if part.size[row]:
                    held[part.ids[row]].append((begin, begin + 1, int(part.size[row])))
            begin += 1
    return Problem(_make_buffer(id, sorted(each), units[id]) for id, each in held.items())


def _make_buffer(id: str, held: Sequence[tuple[int, int, int]], unit: int) -> Buffer:
    """Return a buffer that holds so many of its bytes at these times, and nothing between them."""
    if not held:
        return Buffer(id, 0, 1, 0, unit)
    most = max(size for _, _, size in held)
    gaps, at = [], held[0][0]
    for start, end, size in held:
        if start > at:
            gaps.append(Gap(at, start))
        if size < most:
            gaps.append(Gap(start, end, (0, size)))
        at = end
    return Buffer(id, held[0][0], at, most, unit, gaps=tuple(gaps))
