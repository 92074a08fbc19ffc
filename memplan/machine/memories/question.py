"""What is asked: which units there are, what each costs in each memory, and what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from memplan.base.errors import InfeasibleError, MemplanError, listed, quoted
from memplan.machine.memories.assigned import add_pieces
from memplan.machine.memories.memory import Memory
from memplan.machine.memories.moves import Run
from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.loads import available
from memplan.problem.spans import spans

__all__ = ["Item", "Question"]


@dataclass(frozen=True, slots=True)
class Item:
    """What a unit holds at least: so many bytes during `[start, end)`."""

    start: int
    end: int
    bytes: int


class Question:
    """What is asked, by unit: a buffer, or the buffers of a group, which lie in one memory.

    The problem has no capacity, and memories are in the order of their speed. `accessed` is by row
    the bytes that are read, and written; `allowed` by id the names of the memories that the buffer
    may lie in; `apart` has pairs of rows that lie in different memories.
    """

    def __init__(
        self,
        problem: Problem,
        memories: tuple[Memory, ...],
        accessed: Sequence[tuple[int, int]],
        allowed: Mapping[str, tuple[str, ...]],
        apart: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.problem, self.memories = problem, memories
        self._ids = set(problem.ids)
        grouped = {row for rows in problem.groups for row in rows}
        self.units = [*problem.groups]
        self.units += [(row,) for row in range(len(problem)) if row not in grouped]
        unit_of = {row: unit for unit, rows in enumerate(self.units) for row in rows}
        self.apart = sorted({(unit_of[one], unit_of[other]) for one, other in apart})
        for one, other in self.apart:
            if one == other:
                label = quoted(problem.ids[self.units[one][0]])
                raise MemplanError(f"two buffers of the group of {label} cannot be apart")
        self.cost = [self._find_costs(rows, accessed, allowed) for rows in self.units]
        self.items = self._find_items()

    def _find_costs(
        self,
        rows: Sequence[int],
        accessed: Sequence[tuple[int, int]],
        allowed: Mapping[str, tuple[str, ...]],
    ) -> list[int | None]:
        """Return what a unit costs in each memory; `None` where it may not lie."""
        ids, read, written = self.problem.ids, 0, 0
        may = {memory.name for memory in self.memories}
        for row in rows:
            may &= set(allowed.get(ids[row], may))
            read += accessed[row][0]
            written += accessed[row][1]
        if not may:
            raise MemplanError(
                f"the buffers of the group of {quoted(ids[rows[0]])} may lie in no memory together"
            )
        tops = [int(self.problem.size[row]) + max(0, int(self.problem.pin[row])) for row in rows]
        top = max(tops)
        found = [
            int(read * memory.read + written * memory.write)  # the costs are whole numbers
            if memory.name in may and (memory.capacity is None or top <= memory.capacity)
            else None
            for memory in self.memories
        ]
        if found.count(None) == len(found):
            names = listed([memory.name for memory in self.memories if memory.name in may])
            row = rows[tops.index(top)]
            pin = int(self.problem.pin[row])
            label = quoted(ids[row]) + (f", pinned to {pin}," if pin != NONE else "")
            raise InfeasibleError(
                f"buffer {label} needs {top} bytes, and there are fewer in {names}"
            )
        return found

    def _find_items(self) -> list[Item]:
        """Return the most that each unit holds at one time, for as long as it holds so much."""
        held = spans(self.problem)
        of_row: dict[int, list[tuple[int, int, int]]] = {}
        columns = (held.buffer, held.start, held.end, held.upper - held.lower)
        for row, *span in zip(*(each.tolist() for each in columns), strict=True):
            of_row.setdefault(row, []).append((span[0], span[1], span[2]))
        items = []
        for rows in self.units:
            found = [span for row in rows for span in of_row.get(row, [])]
            best = Item(0, 1, 0)
            for start, end in sorted({span[:2] for span in found}):
                inside = [span[2] for span in found if span[0] <= start and end <= span[1]]
                size = sum(inside)
                if size * (end - start) > best.bytes * (best.end - best.start):
                    best = Item(start, end, size)
            items.append(best)
        return items

    def part(self, units: Iterable[int], memory: int, runs: Sequence[Run] = ()) -> Problem:
        """Return the problem of some units in a memory, and of buffers that are there in runs."""
        rows = sorted(row for unit in units for row in self.units[unit])
        where = self.memories[memory]
        part = self.problem.subset(np.array(rows, np.int64))
        if runs:
            pieces = [(self.name_run(run), run.row, run.start, run.end) for run in runs]
            part = add_pieces(part, self.problem, pieces)
        if where.alignment > 1:
            part = part.with_alignment(where.alignment)
        return part.with_capacity(where.capacity)

    def name_run(self, run: Run) -> str:
        """Return the id of what a run holds, which is that of no buffer."""
        name = f"{self.problem.ids[run.row]}@{run.number}"
        while name in self._ids:
            name += "@"
        return name

    def room(self, memory: int) -> tuple[int, int]:
        """Return the bytes that buffers can hold in a memory, and what all sizes are rounded up to.

        Where all offsets are multiples of a number, so is what is left for others above each
        buffer, besides the uppermost one.
        """
        problem, where = self.problem, self.memories[memory]
        if where.capacity is None:
            return int(problem.size.sum()), 1
        if problem.has_windows or problem.has_groups or problem.has_reserved:
            return available(problem.reserved, where.capacity), 1
        common = int(np.gcd.reduce(problem.alignment, initial=0))
        common = lcm(common, where.alignment) or 1  # without buffers it is 0
        return -(-where.capacity // common) * common, common
