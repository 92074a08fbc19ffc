"""The facts of a problem that a proof uses: legal offsets, and which buffers conflict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import gcd

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.spans import spans

__all__ = ["NO_CAP", "Ground", "next_peak"]

NO_CAP = 10**19  # above all numbers that a proof can contain


def next_peak(problem: Problem, cap: int) -> int:
    """Return the least peak that an optimal plan can have if every peak is above `cap`."""
    ground = Ground(problem)
    ground.look_at(ground.live, NO_CAP)
    if cap < ground.idle_peak():
        return ground.idle_peak()
    step = gcd(*ground.grid.values()) or 1
    return (cap // step + 1) * step


class Ground:
    """The rows that a proof is about: their legal offsets, and which of them conflict.

    The problem has no windows. Let all rows fall until they rest on what lies below them, the
    lowest first. Then every offset is a sum of sizes, rounded up to alignments on the way, and no
    peak has risen. So offsets can be assumed to be multiples of the greatest common divisor of the
    sizes, if every alignment divides that and nothing else restricts offsets.
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
        self.size: dict[int, int] = {}  # by row of the proof (see `look_at`), in bytes
        # By row: a row that stands for its component. Rows that a chain of conflicts connects are
        # in one component.
        self.component: dict[int, int] = {}
        self.grid: dict[int, int] = {}  # by component: offsets can be assumed to be multiples of it
        self.free: dict[int, bool] = {}  # by component: each of these is legal for every row
        # As `component`, but without the rows that were moved to the bottom.
        self.part: dict[int, int] = {}
        self._around: dict[int, list[frozenset[int]]] = {}

    @property
    def live(self) -> Collection[int]:
        """All rows that hold memory at some time."""
        return self._live.keys()

    def look_at(self, rows: Collection[int], cap: int) -> None:
        """Make the proof about these rows too, for plans with a peak of at most `cap`.

        Conflicts with rows that were added before are ignored. A proof may ignore them, because a
        plan of all rows is also a plan with fewer conflicts.
        """
        component = _find_components({row: self._live[row] for row in rows})
        grid: dict[int, int] = {}
        for row, first in component.items():
            grid[first] = gcd(grid.get(first, 0), self._bytes[row])
        free = dict.fromkeys(grid, all(lower >= cap for lower, _ in self._blocks))
        for row, first in component.items():
            # A pin at 0 is no restriction if the row has no room elsewhere.
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
        """Return whether two rows were added together and hold memory at the same time."""
        return self.component[one] == self.component[other] and any(
            start < until and since < end
            for start, end in self._live[one]
            for since, until in self._live[other]
        )

    def lay(self, row: int) -> list[int]:
        """Remove a row from its part, which may split; return the rest of the part."""
        rest = self.others(row)
        del self.part[row]
        self.part.update(_find_components({each: self._live[each] for each in rest}))
        return rest

    def others(self, row: int) -> list[int]:
        """Return the other rows of the same part."""
        return [each for each in self.part if self.part[each] == self.part[row] and each != row]

    def cliques(self, rows: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the maximal sets of these rows that are in one component and live at one time."""
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
        """Return the maximal sets of rows that are live at one time and contain this row."""
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
        """Return a lower bound, in bytes, on the ends of the rows that never hold memory."""
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
            return max(offset, self._pin[row])  # above the pin none is legal; any value will do
        size, alignment = self._bytes[row], self._alignment[row]
        offset = -(-offset // alignment) * alignment
        for lower, upper in self._blocks:
            if size and lower < offset + size and offset < upper:
                offset = -(-upper // alignment) * alignment
        return offset

    def sink(self, row: int, offset: int) -> int:
        """Return the greatest legal offset at or below this one; less than 0 if there is none."""
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
        """Return whether two conflicting rows can be exchanged in every plan up to `cap`."""
        if self._choice(one, cap) != self._choice(other, cap):
            return False
        rest = (row for row in self.size if row not in (one, other))
        return all(self.conflict(one, row) == self.conflict(other, row) for row in rest)

    def _choice(self, row: int, cap: int) -> tuple[int, ...]:
        """Return a key that is equal for rows with equal sizes and equal legal offsets."""
        least, greatest = self.lift(row, 0), self.sink(row, self.room(row, cap))
        # The alignment matters only if offsets are not free and there is more than one.
        alone = self.free[self.component[row]] or least >= greatest
        return self._bytes[row], least, greatest, 1 if alone else self._alignment[row]


def _find_components(live: Mapping[int, Sequence[tuple[int, int]]]) -> dict[int, int]:
    """Return for each row the row that stands for its component."""
    component = {row: row for row in live}

    def first(row: int) -> int:
        while component[row] != row:
            row = component[row]
        return row

    end, before = None, 0  # the greatest end of all spans so far, and the row of that span
    for start, until, row in sorted((*span, row) for row, held in live.items() for span in held):
        if end is not None and start < end:
            component[first(row)] = first(before)
        if end is None or until > end:
            end, before = until, row
    return {row: first(row) for row in component}
