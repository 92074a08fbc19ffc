"""The ground that a proof stands on: which offsets are legal, who conflicts with whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import gcd

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.spans import spans

__all__ = ["NO_CAP", "Ground", "next_peak"]

NO_CAP = 10**19  # above all that a proof can say


def next_peak(problem: Problem, cap: int) -> int:
    """Return the least peak that a best plan can have, if none has a peak of at most `cap`."""
    ground = Ground(problem)
    ground.look_at(ground.live, NO_CAP)
    if cap < ground.idle_peak():
        return ground.idle_peak()
    step = gcd(*ground.grid.values()) or 1
    return (cap // step + 1) * step


class Ground:
    """The rows that a proof looks at: their legal offsets, and who conflicts with whom.

    Parameters
    ----------
    problem
        Without windows.

    Attributes
    ----------
    size
        In bytes, of every row that is looked at; see `look_at`.
    component
        By row: one that a chain of conflicts leads to, the same for all of them.
    grid
        By component: offsets can be taken to be multiples of so many bytes.
    free
        By component: whether each of these multiples is a legal offset of every row.
    part
        By row that was not laid at the bottom, as `component`: what is connected without those.

    Notes
    -----
    Let all rows fall on what lies below them, the lowest first: every offset becomes a sum of
    sizes, rounded up to alignments on the way, and no peak rises. So offsets can be taken to be
    multiples of what divides every size, if every alignment divides it and nothing else restricts
    offsets.
    """

    def __init__(self, problem: Problem) -> None:
        self._bytes: list[int] = problem.size.tolist()
        self._pin: list[int] = problem.pin.tolist()
        self._alignment: list[int] = problem.alignment.tolist()
        self._blocks = [(block.lower, block.upper) for block in problem.reserved]
        self._live: dict[int, list[tuple[int, int]]] = {}
        held = spans(problem)
        columns = (held.buffer.tolist(), held.start.tolist(), held.end.tolist())
        for row, start, end in zip(*columns, strict=True):
            self._live.setdefault(row, []).append((start, end))
        self.size: dict[int, int] = {}
        self.component: dict[int, int] = {}
        self.grid: dict[int, int] = {}
        self.free: dict[int, bool] = {}
        self.part: dict[int, int] = {}
        self._around: dict[int, list[frozenset[int]]] = {}

    @property
    def live(self) -> Collection[int]:
        """All rows that ever hold memory."""
        return self._live.keys()

    def look_at(self, rows: Collection[int], cap: int) -> None:
        """Add rows, by themselves, for plans with a peak of at most `cap`.

        Conflicts with rows that were added before are left out, which is right in a proof: a plan
        of all of them is one of these.
        """
        component = _components({row: self._live[row] for row in rows})
        grid: dict[int, int] = {}
        for row, first in component.items():
            grid[first] = gcd(grid.get(first, 0), self._bytes[row])
        free = dict.fromkeys(grid, all(lower >= cap for lower, _ in self._blocks))
        for row, first in component.items():
            # A pin at 0 says nothing of a row that has no room to lie elsewhere.
            loose = self._pin[row] == NONE or (
                self._pin[row] == 0 and self.room(row, cap) < grid[first]
            )
            free[first] = free[first] and loose and grid[first] % self._alignment[row] == 0
        self.size.update((row, self._bytes[row]) for row in component)
        self.component.update(component)
        self.part.update(component)
        self.free.update(free)
        self.grid.update((first, step if free[first] else 1) for first, step in grid.items())

    def conflict(self, one: int, other: int) -> bool:
        """Whether two rows hold memory at the same time, and are looked at together."""
        return self.component[one] == self.component[other] and any(
            start < until and since < end
            for start, end in self._live[one]
            for since, until in self._live[other]
        )

    def lay(self, row: int) -> list[int]:
        """Take a row out of its part, which may fall apart; return the rest of it."""
        rest = self.others(row)
        del self.part[row]
        self.part.update(_components({each: self._live[each] for each in rest}))
        return rest

    def others(self, row: int) -> list[int]:
        """Return the other rows of the same part."""
        return [each for each in self.part if self.part[each] == self.part[row] and each != row]

    def cliques(self, rows: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the largest sets of these rows that are looked at and live together."""
        found: set[int] = set()
        for component, time in {
            (self.component[row], start) for row in rows for start, _ in self._live[row]
        }:
            members = 0
            for at, row in enumerate(rows):
                if self.component[row] == component and self._is_live(row, time):
                    members |= 1 << at
            found.add(members)
        largest = (each for each in found if not any(each & ~o == 0 for o in found - {each}))
        return [tuple(row for at, row in enumerate(rows) if each >> at & 1) for each in largest]

    def around(self, row: int) -> list[frozenset[int]]:
        """Return the largest sets of all rows that are looked at and live together with a row."""
        if row not in self._around:
            near = [each for each in self.size if self.conflict(row, each)]
            sets = {frozenset(clique) for clique in self.cliques(near) if row in clique}
            self._around[row] = sorted(sets, key=sorted)
        return self._around[row]

    def _is_live(self, row: int, time: int) -> bool:
        return any(start <= time < end for start, end in self._live[row])

    def room(self, row: int, cap: int) -> int:
        """Return the greatest offset at which a row ends at or below `cap`."""
        return cap - self._bytes[row]

    def idle_peak(self) -> int:
        """Return up to where those rows reach in bytes, at the least, that never hold memory."""
        idle = (row for row in range(len(self._bytes)) if row not in self._live)
        return max((self._lift(row, 0) + self._bytes[row] for row in idle), default=0)

    def lift(self, row: int, offset: int) -> int:
        """Return the least legal offset at or above this one."""
        number = self.component[row]
        if self.free[number]:
            return -(-offset // self.grid[number]) * self.grid[number]
        return self._lift(row, offset)

    def _lift(self, row: int, offset: int) -> int:
        if self._pin[row] != NONE:
            return max(offset, self._pin[row])  # above its pin no offset is legal: no matter which
        size, alignment = self._bytes[row], self._alignment[row]
        offset = -(-offset // alignment) * alignment
        for lower, upper in self._blocks:
            if size and lower < offset + size and offset < upper:
                offset = -(-upper // alignment) * alignment
        return offset

    def sink(self, row: int, offset: int) -> int:
        """Return the greatest legal offset at or below this one; below 0 for none."""
        number = self.component[row]
        if self.free[number]:
            return offset // self.grid[number] * self.grid[number]
        if self._pin[row] != NONE:
            return min(offset, self._pin[row])
        size, alignment = self._bytes[row], self._alignment[row]
        offset = offset // alignment * alignment
        for lower, upper in reversed(self._blocks):
            if lower < offset + size and offset < upper:
                offset = (lower - size) // alignment * alignment
        return offset

    def interchangeable(self, one: int, other: int, cap: int) -> bool:
        """Whether two rows that conflict can change places in every plan up to `cap`."""
        if self._choice(one, cap) != self._choice(other, cap):
            return False
        rest = (row for row in self.size if row not in (one, other))
        return all(self.conflict(one, row) == self.conflict(other, row) for row in rest)

    def _choice(self, row: int, cap: int) -> tuple[int, ...]:
        """Return the size of a row, and all that decides its legal offsets."""
        least, greatest = self.lift(row, 0), self.sink(row, self.room(row, cap))
        # Between the two it is a matter of alignment, unless offsets are free or none is between.
        alone = self.free[self.component[row]] or least >= greatest
        return self._bytes[row], least, greatest, 1 if alone else self._alignment[row]


def _components(live: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, int]:
    """Return by row one of the rows of its component, the same for all of them."""
    component = {row: row for row in live}

    def first(row: int) -> int:
        while component[row] != row:
            row = component[row]
        return row

    end, before = None, 0  # of all spans so far the greatest end, and whose it is
    for start, until, row in sorted((*span, row) for row, held in live.items() for span in held):
        if end is not None and start < end:
            component[first(row)] = first(before)
        if end is None or until > end:
            end, before = until, row
    return {row: first(row) for row in component}
