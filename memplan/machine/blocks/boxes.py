"""What the heights of blocks can be: boxes, which are tightened and cut until one plan is proved.

Heights fall, h1 >= h2 >= ... A box has a least and a greatest value of each. At a moment, a block
of height h holds a sum of some live sizes, at most h; so with `room(h)` for the greatest such sum,

    h_k >= load - sum of room(cap_i) over the other blocks       at each moment

and of what is live at one moment and of which any two exceed cap_1, each has a block of its own. To
be better than the best plan, a height is also at most what the least others leave of its bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import gcd
from typing import Final, NamedTuple

import numpy as np

from memplan.machine.blocks.bounds import Moment, far_apart

__all__ = ["Box", "Boxes"]

_MOST_SUMS: Final = 1 << 20  # of a moment; above, a block holds any number of bytes
_MOST_MOMENTS: Final = 256
_TURNS: Final = 30


class Box(NamedTuple):
    """The least and the greatest height of each block, in falling order."""

    low: tuple[int, ...]
    cap: tuple[int, ...]

    @property
    def least(self) -> int:
        """The fewest bytes of all blocks."""
        return sum(self.low)


class Boxes:
    """Tightens boxes by what is live at moments of `list_moments`; the unit divides all heights."""

    def __init__(self, moments: Sequence[Moment], unit: int) -> None:
        self._unit = unit
        self._moments = moments[:_MOST_MOMENTS]
        self._sums = [_list_sums(each) for each in self._moments]

    def tighten(self, box: Box, most: int) -> Box | None:
        """Return what is left of a box if all blocks have at most `most` bytes; None if nothing."""
        low, cap = list(box.low), list(box.cap)
        for _ in range(_TURNS):
            before = [*low, *cap]
            if not self._tighten_once(low, cap, most):
                return None
            if [*low, *cap] == before:
                break
        return Box(tuple(low), tuple(cap))

    def _tighten_once(self, low: list[int], cap: list[int], most: int) -> bool:
        unit, spare = self._unit, most - sum(low)
        for k in range(len(cap)):
            cap[k] = min(cap[k], low[k] + spare, cap[k - 1] if k else cap[k]) // unit * unit
        for moment, sums in zip(self._moments, self._sums, strict=True):
            for rank, size in enumerate(far_apart(moment.sizes, cap[0])):
                if rank == len(low):
                    return False
                low[rank] = max(low[rank], size)
            rooms = [_at_most(sums, each) for each in cap]
            missing = moment.load - sum(rooms)
            if missing > 0:
                return False
            for k, room in enumerate(rooms):
                if missing + room > low[k]:
                    low[k] = max(low[k], _at_least(sums, missing + room))
        for k in range(len(low) - 1, -1, -1):
            low[k] = max(low[k], low[k + 1] if k + 1 < len(low) else 0)
            low[k] = -(-low[k] // unit) * unit
        return sum(low) <= most and all(a <= b for a, b in zip(low, cap, strict=True))


def _list_sums(moment: Moment) -> list[int] | None:
    """Return all sums of some of the sizes, rising; None if they are too many."""
    unit = gcd(*(int(each) for each in moment.sizes))
    if moment.load // unit > _MOST_SUMS:
        return None
    sums = 1
    for each in moment.sizes.tolist():
        sums |= sums << (each // unit)
    bits = np.frombuffer(sums.to_bytes(sums.bit_length() // 8 + 1, "little"), np.uint8)
    found: list[int] = (np.flatnonzero(np.unpackbits(bits, bitorder="little")) * unit).tolist()
    return found


def _at_most(sums: list[int] | None, bytes: int) -> int:
    """Return the greatest sum that is at most `bytes`."""
    return bytes if sums is None else sums[bisect_right(sums, bytes) - 1]


def _at_least(sums: list[int] | None, bytes: int) -> int:
    """Return the least sum that is at least `bytes`."""
    return bytes if sums is None else sums[bisect_left(sums, bytes)]
