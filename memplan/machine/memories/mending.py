"""Mends one memory window by window, where a choice was not placed as a whole.

A window of time is around a unit that was chosen and has no place. What lies across its ends keeps
its place; all else that lives inside is chosen and placed once more. What does not fit there is
refused; after some attempts a part of the memory is left free too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from memplan.machine.memories.filling import Filling
from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.solvers.refereed import find_plan

__all__ = ["mend_memory"]

_WIDTHS: Final = (30, 60, 120, 200)  # units that begin in a window
_LEFT_FREE: Final = (0, 0, 400, 200, 100, 50, 25, 12)  # by attempt: one part of so many; 0 is none
_MOST_WINDOWS: Final = 40  # that are not mended
_NODES: Final = 10_000  # of a choice, and of a plan


def mend_memory(
    filling: Filling,
    choose: Callable[..., tuple[int, Column]],
    room: tuple[int, int],
    offset: Column,
    chosen: Sequence[int],
    needed: Sequence[int],
    nodes: int,
    seconds: Callable[[], float | None],
) -> Column:
    """Return offsets of units that are worth at least as much together; -1 is outside.

    `choose` returns what items are worth most together, as `machine.memories.search.choose_items`.
    `room` is the bytes that units can hold, and what all sizes are rounded up to. `offset` has -1
    for units that are not there, `chosen` should be there, and `needed` must stay. The nodes are
    for one choice or plan; `seconds` returns how much time is left.
    """
    return _Mending(filling, choose, room, offset, needed, min(nodes, _NODES), seconds).mend(chosen)


class _Mending:
    def __init__(
        self,
        filling: Filling,
        choose: Callable[..., tuple[int, Column]],
        room: tuple[int, int],
        offset: Column,
        needed: Sequence[int],
        nodes: int,
        seconds: Callable[[], float | None],
    ) -> None:
        self._filling, self._offset = filling, offset.copy()
        self._choose_items = choose
        self._room, unit = room
        self._held = -(-filling.size // unit) * unit
        self._needed = np.zeros(len(offset), np.uint8)
        self._needed[np.array(needed, np.int64)] = 1
        self._nodes, self._seconds = nodes, seconds

    def mend(self, chosen: Sequence[int]) -> Column:
        """Go through the memory with wider and wider windows."""
        start = self._filling.start
        order = np.argsort(start, kind="stable")
        rank = np.argsort(order, kind="stable")
        missing = sorted(chosen, key=lambda unit: int(rank[unit]))
        left = _MOST_WINDOWS
        for width in _WIDTHS:
            until = start.min(initial=0)  # the end of the last window that was not mended
            for unit in missing:
                if self._offset[unit] >= 0 or start[unit] < until:
                    continue
                if left == 0 or self._seconds() == 0.0:
                    return self._offset
                at = int(rank[unit])
                near = order[max(0, at - width // 2) : at + width // 2 + 1]
                begin = int(start[near].min())
                end = int(max(self._filling.end[unit], start[near].max() + 1))
                if not self._improve(begin, end):
                    until, left = end, left - 1
        return self._offset

    def _improve(self, begin: int, end: int) -> bool:
        """Choose and place what lives inside a window; return whether it is worth more now."""
        filling, offset = self._filling, self._offset
        inside = (begin <= filling.start) & (filling.end <= end) & (filling.start < filling.end)
        free = np.flatnonzero(inside & (filling.worth > 0))
        if len(free) == 0:
            return False
        fixed = (filling.start < end) & (begin < filling.end) & (offset >= 0)
        fixed[free] = False
        units = np.append(free, np.flatnonzero(fixed))
        start, stop = np.maximum(filling.start[units], begin), np.minimum(filling.end[units], end)
        worth = int(filling.worth[free[offset[free] >= 0]].sum())
        refused: list[list[int]] = []
        for part in _LEFT_FREE:
            bytes = self._room // part if part else 0
            chosen = self._choose(units, len(free), start, stop, bytes, worth, refused)
            if chosen is None:
                return False
            keep = np.append(chosen, np.arange(len(free), len(units)))
            pin = np.where(keep < len(free), NONE, offset[units[keep]])
            asked = Problem.from_arrays(
                start[keep],
                stop[keep],
                filling.size[units[keep]],
                alignment=filling.unit[units[keep]],
                pin=pin,
            ).with_capacity(filling.capacity)
            plan = find_plan(
                asked, objective="fit", nodes=self._nodes, timeout=self._seconds(), threads=1
            )
            if plan.offsets is not None:
                offset[free] = -1
                offset[units[keep]] = plan.offsets
                return True
            refused.append(chosen.tolist())
        return False

    def _choose(
        self,
        units: Column,
        free: int,
        start: Column,
        end: Column,
        unused: int,
        worth: int,
        refused: list[list[int]],
    ) -> Column | None:
        """Return which of the first units to take beside the others, if they are worth more."""
        held, must = self._held[units], self._needed[units]
        must[free:] = 1
        gain = np.where(np.arange(len(units)) < free, self._filling.worth[units], 0)
        # What is left free is one more item, as long as the window.
        rest = Problem.from_arrays(start[free:], end[free:], held[free:]).max_load
        unused = max(0, min(unused, self._room - rest))
        gained, chosen = self._choose_items(
            np.append(start, start.min()),
            np.append(end, end.max()),
            np.append(held, unused),
            np.append(gain, 0),
            np.append(must, np.uint8(1)),
            self._room,
            refused,
            self._seconds(),
            self._nodes,
        )
        return chosen[chosen < free] if gained > worth else None
