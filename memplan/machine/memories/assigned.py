"""The result: which buffer lies in which memory, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memplan.base.errors import PlanError, quoted
from memplan.machine.memories.memory import Memory
from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.intake import GAP_COLUMNS
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Loaded
from memplan.referee import verify_assigned

__all__ = ["Assigned", "Price", "Stretch", "add_pieces"]


class Price(NamedTuple):
    """What a byte of a memory is worth for some time.

    Attributes
    ----------
    start, end
        From when to when, in the times of the problem.
    saved
        One byte more of the memory would save at most about so much traffic then.
    """

    start: int
    end: int
    saved: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """A buffer whose home is a slow memory is in a fast one for some time.

    Attributes
    ----------
    buffer
        Its id.
    copy
        The id of the piece in the plan of the fast memory.
    memory
        The name of the fast memory.
    start, end
        The piece holds its bytes during `[start, end)`.
    fetched, stored
        Whether its bytes are copied from the home at `start`, and back to it at `end`.
    """

    buffer: str
    copy: str
    memory: str
    start: int
    end: int
    fetched: bool
    stored: bool


@dataclass(frozen=True, repr=False)
class Assigned:
    """Which buffer lies in which memory, and where; the referee has accepted it.

    Attributes
    ----------
    memories
        As given.
    plans
        By memory: the plan of the buffers in it. Offsets begin at its base.
    traffic
        What all accesses cost; a whole number if the costs of the memories are.
    bound
        Proved: no assignment costs less. Where buffers may move, that is of homes with room for
        all.
    status
        `optimal` if the traffic is the bound, else `feasible`.
    problem
        All buffers.
    loaded
        The model that was laid out; `None` for a problem.
    accessed
        By id: how many of its bytes are read, and written, in one run.
    stretches
        The times at which buffers are in a faster memory than their own. Empty unless they may
        move.
    steps
        By id of each buffer that moves: its accesses, as (time, bytes read, bytes written).
    prices
        By memory: when one byte more of it would save traffic, and how much. Empty for a memory
        that has room for all.
    seconds
        Wall time.
    interrupted
        Whether Ctrl-C ended the search; this is the best so far.
    residency
        Whether buffers might move, as asked.
    allowed, apart
        As asked: by id, the memories that a buffer may lie in; and pairs of ids.
    """

    memories: tuple[Memory, ...]
    plans: tuple[Plan, ...]
    traffic: float
    bound: float
    status: Status
    problem: Problem
    loaded: Loaded | None
    accessed: Mapping[str, tuple[int, int]]
    stretches: tuple[Stretch, ...] = ()
    steps: Mapping[str, Sequence[tuple[int, int, int]]] = field(default_factory=dict)
    prices: tuple[tuple[Price, ...], ...] = ()
    seconds: float = 0.0
    interrupted: bool = False
    residency: bool = False
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apart: tuple[tuple[str, str], ...] = ()

    def verify(self) -> float:
        """Check all memories with the referee again, and return what all accesses cost.

        Raises
        ------
        PlanError
            As `memplan.referee.verify_assigned`, and if the cost is not `traffic`.
        """
        traffic = verify_assigned(
            self.problem,
            self.memories,
            self.plans,
            self.allowed,
            self.accessed,
            self.apart,
            self.stretches,
            self.steps,
        )
        if traffic != self.traffic:
            raise PlanError(f"all accesses cost {traffic}, and not {self.traffic} as is said")
        return traffic

    @property
    def gap(self) -> float:
        """How much less traffic there could be at most, as a share."""
        return 1 - self.bound / self.traffic if self.traffic else 0.0

    def memory_of(self, id: str) -> str:
        """Return the name of the memory of a buffer.

        Raises
        ------
        PlanError
            If no memory has such a buffer.
        """
        if id not in self._memories:
            raise PlanError(f"no memory has a buffer {quoted(id)}")
        return self._memories[id]

    def problem_of(self, memory: str) -> Problem:
        """Return what lies in a memory: buffers, and pieces of those that move."""
        number = [each.name for each in self.memories].index(memory)
        where, plan = self.memories[number], self.plans[number]
        stretches = {each.copy: each for each in self.stretches}
        whole = [id for id in plan.ids if id not in stretches]
        part = self.problem.subset([self.problem.index(id) for id in whole])
        moved = [stretches[id] for id in plan.ids if id in stretches]
        if moved:
            pieces = [
                (each.copy, self.problem.index(each.buffer), each.start, each.end) for each in moved
            ]
            part = add_pieces(part, self.problem, pieces)
        return part.with_alignment(where.alignment) if where.alignment > 1 else part

    def count_bytes(self) -> list[tuple[int, int]]:
        """Return by memory the bytes that a run reads and writes there, for copies too."""
        counted = [(0, 0)] * len(self.memories)
        for (number, _), (read, written) in self.count_by_buffer().items():
            counted[number] = counted[number][0] + read, counted[number][1] + written
        return counted

    def count_by_buffer(self) -> dict[tuple[int, str], tuple[int, int]]:
        """Return by number of a memory, and id of a buffer, the bytes that a run touches there."""
        home = {id: number for number, plan in enumerate(self.plans) for id in plan.ids}
        counted = {(home[id], id): both for id, both in self.accessed.items()}
        number_of = {memory.name: number for number, memory in enumerate(self.memories)}

        def add(number: int, id: str, read: int, written: int) -> None:
            before = counted.get((number, id), (0, 0))
            counted[number, id] = before[0] + read, before[1] + written

        for each in self.stretches:
            id, fast, slow = each.buffer, number_of[each.memory], home[each.buffer]
            size = int(self.problem.size[self.problem.index(id)])
            for time, read, written in self.steps[id]:
                if each.start <= time < each.end:
                    add(slow, id, -read, -written)
                    add(fast, id, read, written)
            add(slow, id, size * each.fetched, size * each.stored)
            add(fast, id, size * each.stored, size * each.fetched)
        return counted

    @cached_property
    def _memories(self) -> dict[str, str]:
        pairs = zip(self.memories, self.plans, strict=True)
        return {id: memory.name for memory, plan in pairs for id in plan.ids}

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{memory.name} {plan.peak}"
            for memory, plan in zip(self.memories, self.plans, strict=True)
        )
        return f"<Assigned: {self.status}, {sizes}, traffic {self.traffic}, bound {self.bound}>"


def add_pieces(
    part: Problem, whole: Problem, pieces: Sequence[tuple[str, int, int, int]]
) -> Problem:
    """Return a part of a problem with pieces of its buffers: id, row in the whole, start and end.

    A piece has the size, the alignment and the pin of its buffer, and no neighbours.
    """
    ids, rows, starts, ends = zip(*pieces, strict=True)
    at = np.array(rows, np.int64)

    def both(column: Column, more: object) -> Column:
        joined: Column = np.concatenate([column, np.asarray(more, np.int64)])
        return joined

    none = [NONE] * len(pieces)
    return Problem.from_arrays(
        both(part.start, starts),
        both(part.end, ends),
        both(part.size, whole.size[at]),
        ids=[*part.ids, *ids],
        alignment=both(part.alignment, whole.alignment[at]),
        pin=both(part.pin, whole.pin[at]),
        hint=both(part.hint, none),
        gaps=[getattr(part, name) for name in GAP_COLUMNS],
        reserved=part.reserved,
        conflicts=part.conflicts.pairs(),
        groups=(both(part.group, none), both(part.lead, [0] * len(pieces))),
    )
