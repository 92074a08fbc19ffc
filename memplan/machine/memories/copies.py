"""When the copies of buffers that move begin, and when they must be complete.

A stretch needs its bytes when it begins, and others may take its place when it ends. Where no other
buffer needs the place before or after, a copy has more time than between two steps: it runs beside
operators. It begins when its place and its source are ready, and must be complete when its place or
what it made is needed. So most copies hide behind operators (double buffering).

        step         3     4     5     6     7     8
        fetch              [-----)                        the place is free since 4
        the stretch              [-----------)            operators 5 and 6 use the piece
        store                                [-----)      another one needs the place at 8
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from memplan.machine.memories.assigned import Assigned, Stretch

__all__ = ["Copy", "list_copies", "widen"]


@dataclass(frozen=True, slots=True)
class Copy:
    """The bytes of a buffer go to a faster memory, or back to their home.

    Attributes
    ----------
    stretch
        Of which stretch.
    stores
        Whether they go back.
    start, done
        It begins before step `start`, and is complete before step `done`. Of all that happens
        before one step, stores come first, and each kind begins before it is waited for.
    """

    stretch: Stretch
    stores: bool
    start: int
    done: int


def list_copies(found: Assigned) -> tuple[Copy, ...]:
    """Return the copies of an assignment, the stores first, and each kind by when it begins."""
    times = _Times(found)
    for most in (1, None):  # one operator for each copy before a copy gets more of them
        for at in range(len(found.stretches)):
            times.widen(at, most)
    return tuple(sorted(times.copies(), key=lambda each: (not each.stores, each.start, each.done)))


def widen(found: Assigned, copies: tuple[Copy, ...]) -> list[Stretch]:
    """Return the stretches with the times of their copies, in which their places are held."""
    first = {each.stretch.copy: each.start for each in copies if not each.stores}
    last = {each.stretch.copy: each.done for each in copies if each.stores}
    return [
        replace(each, start=first.get(each.copy, each.start), end=last.get(each.copy, each.end))
        for each in found.stretches
    ]


class _Times:
    """Which piece of which memory is held when, from the first byte that arrives to the last."""

    def __init__(self, found: Assigned) -> None:
        self._found = found
        problem, pieces = found.problem, found.stretches
        row = {each.copy: at for at, each in enumerate(pieces)}
        self._of: dict[str, list[int]] = {}  # the pieces of a buffer
        for number, each in enumerate(pieces):
            self._of.setdefault(each.buffer, []).append(number)
        held = []
        for number, plan in enumerate(found.plans):
            for id, size in zip(plan.ids, plan.size.tolist(), strict=True):
                at = row.get(id)
                life = problem.buffer(id) if at is None else pieces[at]
                offset = plan.offset(id)
                held.append((number, offset, offset + size, life.start, life.end, at))
        held.sort(key=lambda each: (each[-1] is None, each[-1] or 0))  # row `at` is piece `at`
        columns = np.array([each[:-1] for each in held], np.int64).reshape(-1, 5).T
        self._memory, self._lower, self._upper, self._start, self._end = columns

    def widen(self, at: int, most: int | None) -> None:
        """Let the copies of a piece begin earlier, and end later, by so many steps at most."""
        piece = self._found.stretches[at]
        others = (
            (self._memory == self._memory[at])
            & (self._lower < self._upper[at])
            & (self._lower[at] < self._upper)
        )
        others[at] = False
        start, end = piece.start, piece.end
        if piece.fetched:
            before = others & (self._start < start)
            taken = np.minimum(self._end[before], start).max(initial=self._find_source(at))
            self._start[at] = max(int(taken), start - most if most else int(taken))
        if piece.stored:
            after = others & (self._end > end)
            taken = np.maximum(self._start[after], end).min(initial=self._find_need(at))
            self._end[at] = min(int(taken), end + most if most else int(taken))

    def copies(self) -> Iterator[Copy]:
        """Yield the copies, with the times that they have now."""
        for at, piece in enumerate(self._found.stretches):
            if piece.fetched:
                yield Copy(piece, False, int(self._start[at]), piece.start)
            if piece.stored:
                yield Copy(piece, True, piece.end, int(self._end[at]))

    def _find_source(self, at: int) -> int:
        """Return from when on the home has the bytes that a piece begins with."""
        piece = self._found.stretches[at]
        ready = self._found.problem.buffer(piece.buffer).start
        for time, _, written in self._found.steps[piece.buffer]:
            if time < piece.start and written:
                ready = max(ready, time + 1)
        for other in self._of[piece.buffer]:
            if self._found.stretches[other].end <= piece.start:
                ready = max(ready, int(self._end[other]))
        return ready

    def _find_need(self, at: int) -> int:
        """Return until when the home can wait for the bytes of a piece."""
        piece = self._found.stretches[at]
        needed = max(piece.end, self._found.problem.buffer(piece.buffer).end - 1)
        for time, _, _ in self._found.steps[piece.buffer]:
            if time >= piece.end:
                needed = min(needed, time)
        for other in self._of[piece.buffer]:
            if self._found.stretches[other].start >= piece.end:
                needed = min(needed, int(self._start[other]))
        return needed
