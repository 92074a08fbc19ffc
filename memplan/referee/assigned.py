"""The referee of buffers in several memories: each is in one, where it may be, and placed there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from memplan.base.errors import PlanError, quoted
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee.moves import MemoryClaim, StretchClaim, count_moved, with_pieces
from memplan.referee.plans import verify

__all__ = ["MemoryClaim", "verify_assigned"]


def verify_assigned(
    problem: Problem,
    memories: Sequence[MemoryClaim],
    plans: Sequence[Plan],
    allowed: Mapping[str, Iterable[str]],
    accessed: Mapping[str, tuple[int, int]],
    apart: Iterable[tuple[str, str]] = (),
    stretches: Sequence[StretchClaim] = (),
    steps: Mapping[str, Sequence[tuple[int, int, int]]] | None = None,
) -> float:
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
    stretches
        When buffers are in another memory than their home.
    steps
        By id of a buffer that moves: its accesses, as (time, bytes read, bytes written).

    Returns
    -------
    float
        What all accesses cost, and all copies; an integer if it is a whole number.

    Raises
    ------
    PlanError
        One sentence about the first error.
    """
    if len(memories) != len(plans):
        raise PlanError(f"there are {len(plans)} plans for {len(memories)} memories")
    where = _find_memories(problem, memories, plans, {each.copy for each in stretches})
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
    moved = count_moved(problem, memories, where, allowed, stretches, steps or {})
    for id in moved:
        read, written = (sum(each[side] for each in (steps or {})[id]) for side in (1, 2))
        if accessed[id] != (read, written):
            raise PlanError(f"the accesses of {quoted(id)} are not those of its times")
    for memory, plan in zip(memories, plans, strict=True):
        inside = [row for row, id in enumerate(problem.ids) if where[id] is memory]
        part = problem.subset(np.array(inside, np.int64))
        there = [each for each in stretches if each.memory == memory.name]
        if there:
            part = with_pieces(problem, part, there)
        try:
            verify(part.with_alignment(memory.alignment).with_capacity(memory.capacity), plan)
        except PlanError as error:
            raise PlanError(f"{memory.name}: {error}") from None
    still = (
        accessed[id][0] * Fraction(memory.read) + accessed[id][1] * Fraction(memory.write)
        for id, memory in where.items()
        if id not in moved
    )
    total = sum(moved.values(), Fraction(0)) + sum(still, Fraction(0))
    return total.numerator if total.denominator == 1 else float(total)


def _find_memories(
    problem: Problem,
    memories: Sequence[MemoryClaim],
    plans: Sequence[Plan],
    copies: Collection[str],
) -> dict[str, MemoryClaim]:
    where: dict[str, MemoryClaim] = {}
    for memory, plan in zip(memories, plans, strict=True):
        for id in plan.ids:
            if id in copies:
                continue
            if id in where:
                raise PlanError(
                    f"buffer {quoted(id)} is in {quoted(where[id].name)} and {quoted(memory.name)}"
                )
            where[id] = memory
    for id in problem.ids:
        if id not in where:
            raise PlanError(f"buffer {quoted(id)} is in no memory")
    return where
