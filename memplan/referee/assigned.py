"""The referee of buffers in several memories: each is in one, where it may be, and placed there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from memplan.errors import PlanError, quoted
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.referee.plans import verify

__all__ = ["MemoryClaim", "verify_assigned"]


class MemoryClaim(Protocol):
    """What the referee has to know of a memory; see `memplan.Memory`."""

    @property
    def name(self) -> str:
        """For errors."""

    @property
    def capacity(self) -> int | None:
        """In bytes; `None` for no limit."""

    @property
    def read(self) -> int:
        """What reading a byte costs."""

    @property
    def write(self) -> int:
        """What writing a byte costs."""

    @property
    def alignment(self) -> int:
        """What every offset is a multiple of."""


def verify_assigned(
    problem: Problem,
    memories: Sequence[MemoryClaim],
    plans: Sequence[Plan],
    allowed: Mapping[str, Iterable[str]],
    accessed: Mapping[str, tuple[int, int]],
    apart: Iterable[tuple[str, str]] = (),
) -> int:
    """Check that every buffer is placed in one memory, and that each plan is valid there.

    Parameters
    ----------
    problem
        All buffers.
    memories, plans
        A plan for each memory.
    allowed
        By id: the memories that a buffer may lie in, by name; all for other ids.
    accessed
        By id: how many of its bytes are read, and written.
    apart
        Pairs of ids that lie in different memories.

    Returns
    -------
    int
        What all accesses cost.

    Raises
    ------
    PlanError
        One sentence about the first error.
    """
    if len(memories) != len(plans):
        raise PlanError(f"there are {len(plans)} plans for {len(memories)} memories")
    where = _find_memories(problem, memories, plans)
    for id, names in allowed.items():
        if where[id].name not in set(names):
            raise PlanError(f"buffer {quoted(id)} may not lie in {quoted(where[id].name)}")
    for one, other in apart:
        if where[one] is where[other]:
            raise PlanError(
                f"buffers {quoted(one)} and {quoted(other)} are both in {quoted(where[one].name)}, "
                "but must be apart"
            )
    for rows in problem.groups:
        if len({where[problem.ids[row]].name for row in rows}) > 1:
            raise PlanError(f"the group of {quoted(problem.ids[rows[0]])} is in two memories")
    for memory, plan in zip(memories, plans, strict=True):
        inside = [row for row, id in enumerate(problem.ids) if where[id] is memory]
        part = problem.subset(np.array(inside, np.int64)).with_alignment(memory.alignment)
        try:
            verify(part.with_capacity(memory.capacity), plan)
        except PlanError as error:
            raise PlanError(f"{memory.name}: {error}") from None
    return sum(
        accessed[id][0] * memory.read + accessed[id][1] * memory.write
        for id, memory in where.items()
    )


def _find_memories(
    problem: Problem, memories: Sequence[MemoryClaim], plans: Sequence[Plan]
) -> dict[str, MemoryClaim]:
    where: dict[str, MemoryClaim] = {}
    for memory, plan in zip(memories, plans, strict=True):
        for id in plan.ids:
            if id in where:
                raise PlanError(
                    f"buffer {quoted(id)} is in {quoted(where[id].name)} and {quoted(memory.name)}"
                )
            where[id] = memory
    for id in problem.ids:
        if id not in where:
            raise PlanError(f"buffer {quoted(id)} is in no memory")
    return where
