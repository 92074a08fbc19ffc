"""Small problems in words of their own, and all ways to place them.

The memory at all times is one number: its bit `time * capacity + address` says that the address is
held at that time. So a buffer at an offset is a shifted number, and two buffers collide where both
have a bit. A listed conflict is one more time, at which only its two buffers live.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import memplan as mp

__all__ = ["Case", "Item", "find_least", "fits", "measure"]


@dataclass(frozen=True)
class Item:
    """A buffer: when it lives, how large it is, and what restricts its offset.

    A gap is (start, end, lower, upper): it holds only the bytes from lower to upper meanwhile.
    """

    start: int
    end: int
    size: int
    alignment: int = 1
    pin: int | None = None
    hint: int | None = None
    gaps: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True)
class Case:
    """Buffers, and what ties them, by their numbers.

    A group is (row, lead) of each of its buffers, of which each lies behind the one before.
    """

    items: tuple[Item, ...]
    groups: tuple[tuple[tuple[int, int], ...], ...] = ()
    conflicts: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    reserved: tuple[tuple[int, int], ...] = ()

    def problem(self, capacity: int | None = None) -> mp.Problem:
        """Return the same as memplan takes it; raises `MemplanError` as memplan does."""
        buffers = [
            mp.Buffer(
                str(at),
                each.start,
                each.end,
                each.size,
                each.alignment,
                each.pin,
                each.hint,
                tuple(
                    mp.Gap(start, end, (lower, upper) if lower < upper else None)
                    for start, end, lower, upper in each.gaps
                ),
            )
            for at, each in enumerate(self.items)
        ]
        return mp.Problem(
            buffers,
            capacity=capacity,
            reserved=[mp.Reserved(*each) for each in self.reserved],
            conflicts=[(str(one), str(other)) for one, other in sorted(self.conflicts)],
            groups=[[str(row) for row, _ in group] for group in self.groups],
        )

    def subset(self, rows: Iterable[int]) -> Case:
        """Return some of the buffers, with what ties them."""
        number = {row: at for at, row in enumerate(sorted(rows))}
        return replace(
            self,
            items=tuple(self.items[row] for row in number),
            groups=tuple(
                tuple((number[row], lead) for row, lead in group if row in number)
                for group in self.groups
            ),
            conflicts=frozenset(
                (number[a], number[b]) for a, b in self.conflicts if {a, b} <= number.keys()
            ),
        )

    def list_pieces(self) -> list[tuple[tuple[int, int], ...]]:
        """Return what is placed at once, groups and other buffers, as (row, lead) of each row."""
        grouped = {row for group in self.groups for row, _ in group}
        alone = (((row, 0),) for row in range(len(self.items)) if row not in grouped)
        return [*filter(None, self.groups), *alone]

    def find_group(self, row: int) -> set[int]:
        """Return the rows of the group of a row, or the row alone."""
        of_row = (group for group in self.groups if any(row == each for each, _ in group))
        return {each for group in of_row for each, _ in group} or {row}

    def count_bytes(self) -> int:
        """Return the most bytes that are held at one time."""
        loads = [0] * self.count_times()
        for row in range(len(self.items)):
            for time, bits in self.list_held(row):
                loads[time] += bits.bit_count()
        return max(loads, default=0)

    def count_times(self) -> int:
        """Return how many times there are, those of conflicts too."""
        return self._span()[1] + len(self.conflicts)

    def _span(self) -> tuple[int, int]:
        start = min((each.start for each in self.items), default=0)
        return start, max((each.end for each in self.items), default=0) - start

    def list_held(self, row: int) -> list[tuple[int, int]]:
        """Return (time, bits) for each time, from 0, at which a buffer at offset 0 holds bytes."""
        item, (first, count) = self.items[row], self._span()
        whole = (1 << item.size) - 1
        held = dict.fromkeys(range(item.start, item.end), whole)
        for start, end, lower, upper in item.gaps:
            held |= dict.fromkeys(range(start, end), (1 << upper) - (1 << lower))
        listed = [
            (count + at, whole) for at, pair in enumerate(sorted(self.conflicts)) if row in pair
        ]
        return [(time - first, bits) for time, bits in held.items()] + listed


class _Space:
    """A memory of some bytes, and the offsets that each piece of a case may have in it."""

    def __init__(self, case: Case, capacity: int, alignment: int) -> None:
        self._case, self._capacity, self._alignment = case, capacity, alignment
        self._taken = 0
        for lower, upper in case.reserved:
            self._taken |= (1 << upper) - (1 << lower)
        width = max(1, capacity)
        self.pieces = case.list_pieces()
        self.claims = []
        for piece in self.pieces:
            claim = 0
            for row, lead in piece:
                for time, bits in case.list_held(row):
                    claim |= bits << (time * width + lead)
            self.claims.append(claim)
        self.origins = [
            [
                origin
                for origin in range(capacity + 1)
                if all(self._may_lie(row, origin + lead) for row, lead in piece)
            ]
            for piece in self.pieces
        ]

    def _may_lie(self, row: int, offset: int) -> bool:
        item = self._case.items[row]
        return (
            offset + item.size <= self._capacity
            and offset % lcm(item.alignment, self._alignment) == 0
            and (item.pin is None or item.pin == offset)
            and not (((1 << item.size) - 1) << offset) & self._taken
        )

    def has_place(self) -> bool:
        """Return whether all pieces have a place."""
        order = sorted(range(len(self.pieces)), key=lambda at: len(self.origins[at]))
        seen: set[tuple[int, int]] = set()

        def place(at: int, memory: int) -> bool:
            if at == len(order):
                return True
            if (at, memory) in seen:
                return False
            claim = self.claims[order[at]]
            for origin in self.origins[order[at]]:
                moved = claim << origin
                if not moved & memory and place(at + 1, memory | moved):
                    return True
            seen.add((at, memory))
            return False

        return all(self.origins) and place(0, 0)


def fits(case: Case, capacity: int, alignment: int = 1) -> bool:
    """Return whether all buffers have a place below a capacity, at multiples of an alignment."""
    return _Space(case, capacity, alignment).has_place()


def find_least(case: Case, most: int, alignment: int = 1) -> int | None:
    """Return the least capacity in which all fit; `None` if it is above the most."""
    for capacity in range(case.count_bytes(), most + 1):
        if fits(case, capacity, alignment):
            return capacity
    return None


def measure(case: Case, offsets: Sequence[int], capacity: int, alignment: int = 1) -> int | None:
    """Return what a plan needs, or `None` if it is not legal within a capacity."""
    space, memory = _Space(case, capacity, alignment), 0
    for piece, claim, origins in zip(space.pieces, space.claims, space.origins, strict=True):
        (origin, *others) = {offsets[row] - lead for row, lead in piece}
        if others or origin not in origins or (claim << origin) & memory:
            return None
        memory |= claim << origin
    tops = [offset + each.size for offset, each in zip(offsets, case.items, strict=True)]
    return max(tops, default=0)
