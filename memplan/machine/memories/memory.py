"""A memory that buffers may lie in, and checks of those that a caller names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import gcd, lcm

import numpy as np

from memplan.base.errors import MemplanError, ProblemError, listed, quoted
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES
from memplan.solvers.limits import check_number, check_whole

__all__ = [
    "Cost",
    "Memory",
    "as_number",
    "check_allowed",
    "check_apart",
    "check_memories",
    "check_places",
    "with_whole_costs",
]

Cost = float | Fraction  # of one byte; a `Memory` holds whole numbers and fractions
_MOST_COST = 1 << 32
_DIGITS = 6  # of a cost that is a float


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory that buffers may lie in.

    Attributes
    ----------
    name
        For people, and in the result.
    capacity
        In bytes; `None` for no limit.
    read, write
        What it costs to read and to write a byte, from 0; the same unit for all memories, such as
        cycles or nanoseconds. Of a float, six digits count; a `Fraction` is exact.
    alignment
        Every offset is a multiple of it, besides the alignments of the buffers.
    base
        The address of its first byte; a multiple of all alignments.
    assumed
        Whether the costs are a guess, because none were given.
    block
        The most bytes of one block of it, where it is not one piece; `None` for no limit.
    """

    name: str
    capacity: int | None = None
    read: Cost = 1
    write: Cost = 1
    alignment: int = 1
    base: int = 0
    assumed: bool = False
    block: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise MemplanError("a memory needs a name, which is not empty")
        name = quoted(self.name)
        for field, verb in (("read", "reading"), ("write", "writing")):
            cost = _check_cost(getattr(self, field), f"the cost of {verb} a byte of {name}")
            object.__setattr__(self, field, cost)
        check_whole(self.alignment, f"the alignment of {name}", 1, MAX_BYTES)
        check_whole(self.base, f"the base of {name}", 0, MAX_BYTES)
        if self.capacity is not None:
            check_whole(self.capacity, f"the capacity of {name}", 1, MAX_BYTES)
        if self.block is not None:
            check_whole(self.block, f"the largest block of {name}", 1, MAX_BYTES)


def _check_cost(given: Cost, name: str) -> Cost:
    """Return a whole number, or a fraction."""
    cost = check_number(given, name, 0, _MOST_COST)
    if isinstance(given, float):
        cost = Fraction(f"{given:.{_DIGITS}g}")
    return cost.numerator if cost.denominator == 1 else cost


def as_number(exact: Cost) -> float:
    """Return an integer where a number is whole, and else the nearest float."""
    exact = Fraction(exact)
    return exact.numerator if exact.denominator == 1 else float(exact)


def with_whole_costs(memories: Sequence[Memory]) -> tuple[tuple[Memory, ...], Fraction]:
    """Return memories whose costs are whole numbers, and the unit in which they are counted.

    A unit that is too small for the search is refused.
    """
    costs = [Fraction(cost) for each in memories for cost in (each.read, each.write)]
    parts = lcm(*(cost.denominator for cost in costs))
    unit = Fraction(gcd(*(int(cost * parts) for cost in costs)) or 1, parts)
    whole = [int(cost / unit) for cost in costs]
    if max(whole) > _MOST_COST:
        raise MemplanError("the costs of the memories differ too much; write fewer digits")
    pairs = zip(memories, whole[::2], whole[1::2], strict=True)
    return tuple(replace(each, read=read, write=write) for each, read, write in pairs), unit


def check_memories(memories: Sequence[Memory]) -> None:
    """Raise a `MemplanError` if memories contradict each other."""
    if not memories or not all(isinstance(each, Memory) for each in memories):
        raise MemplanError("memories is a list of memplan.Memory, at least one")
    seen = set()
    for memory in memories:
        if memory.name in seen:
            name = quoted(memory.name)
            raise MemplanError(f"two memories have the name {name}; name them differently")
        seen.add(memory.name)
    for fast, slow in combinations(memories, 2):
        dearer = fast.read >= slow.read and fast.write >= slow.write
        if dearer and (fast.read, fast.write) != (slow.read, slow.write):
            raise MemplanError(
                f"a byte costs more in {quoted(fast.name)} than in {quoted(slow.name)}, named "
                "after it; name the fastest memory, with the lowest costs, first"
            )


def check_places(
    problem: Problem, memories: Sequence[Memory], allowed: Mapping[str, Iterable[str]]
) -> None:
    """Raise a `MemplanError` if a buffer cannot lie in a memory in which it may lie.

    That is because of the alignment or the base of the memory, which contradicts the alignment, the
    pin or the group of the buffer.
    """
    for memory in memories:
        barred = {problem.index(id) for id, names in allowed.items() if memory.name not in names}
        barred.update(row for rows in problem.groups if barred & {*rows} for row in rows)
        part, name = problem, quoted(memory.name)
        if barred:
            part = problem.subset([row for row in range(len(problem)) if row not in barred])
        for unit in (*(int(unit) for unit in np.unique(part.alignment)), memory.alignment):
            if memory.base % unit:
                raise MemplanError(
                    f"the base {memory.base} of {name} is no multiple of the alignment {unit}"
                )
        try:
            part.with_alignment(memory.alignment)
        except ProblemError as error:
            raise MemplanError(
                f"memory {name}: {error}; say where the buffer may lie, or change the alignment"
            ) from None


def check_allowed(
    problem: Problem, memories: Sequence[Memory], allowed: Mapping[str, Iterable[str]] | None
) -> dict[str, tuple[str, ...]]:
    """Return which memories each of some buffers may lie in, by name."""
    names = [memory.name for memory in memories]
    found = {}
    for id, given in (allowed or {}).items():
        problem.index(id)
        if isinstance(given, str):
            given = (given,)
        found[id] = tuple(given)
        for name in found[id]:
            if name not in names:
                raise MemplanError(
                    f"buffer {quoted(id)} may lie in {quoted(name)}, but the memories are "
                    f"{listed(names)}"
                )
        if not found[id]:
            raise MemplanError(f"buffer {quoted(id)} may lie in no memory; name at least one")
    return found


def check_apart(problem: Problem, apart: Iterable[tuple[str, str]]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of rows that must lie in different memories, each once."""
    found = set()
    for pair in apart:
        if isinstance(pair, str) or len(tuple(pair)) != 2:
            raise MemplanError("apart is a list of pairs of buffers, such as ('a', 'b')")
        first, second = sorted(problem.index(id) for id in pair)
        if first == second:
            raise MemplanError(
                f"buffer {quoted(problem.ids[first])} cannot be in another memory than itself"
            )
        found.add((first, second))
    return tuple(sorted(found))
