"""A memory that buffers may lie in, and checks of those that a caller names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memplan.errors import MemplanError, listed, quoted
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES
from memplan.solvers.limits import check_whole

__all__ = ["Memory", "check_allowed", "check_apart", "check_memories"]

_MOST_COST = 1 << 32  # of one byte


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
        What it costs to read and to write a byte, whole numbers from 0; the same unit for all
        memories, such as cycles.
    alignment
        Every offset is a multiple of it, besides the alignments of the buffers.
    base
        The address of its first byte; a multiple of all alignments.
    """

    name: str
    capacity: int | None = None
    read: int = 1
    write: int = 1
    alignment: int = 1
    base: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise MemplanError("a memory needs a name, which is not empty")
        name = quoted(self.name)
        check_whole(self.read, f"the cost of reading a byte of {name}", 0, _MOST_COST)
        check_whole(self.write, f"the cost of writing a byte of {name}", 0, _MOST_COST)
        check_whole(self.alignment, f"the alignment of {name}", 1, MAX_BYTES)
        check_whole(self.base, f"the base of {name}", 0, MAX_BYTES)
        if self.capacity is not None:
            check_whole(self.capacity, f"the capacity of {name}", 1, MAX_BYTES)


def check_memories(problem: Problem, memories: Sequence[Memory]) -> None:
    """Raise a `MemplanError` if memories contradict each other, or the alignments of buffers."""
    if not memories or not all(isinstance(each, Memory) for each in memories):
        raise MemplanError("memories is a list of memplan.Memory, at least one")
    units = [int(unit) for unit in np.unique(problem.alignment)]
    seen = set()
    for memory in memories:
        name = quoted(memory.name)
        if memory.name in seen:
            raise MemplanError(f"two memories have the name {name}; name them differently")
        seen.add(memory.name)
        for unit in (*units, memory.alignment):
            if memory.base % unit:
                raise MemplanError(
                    f"the base {memory.base} of {name} is no multiple of the alignment {unit}"
                )
        problem.with_alignment(memory.alignment)  # contradicts no pin and no group
    for fast, slow in combinations(memories, 2):
        dearer = fast.read >= slow.read and fast.write >= slow.write
        if dearer and (fast.read, fast.write) != (slow.read, slow.write):
            raise MemplanError(
                f"a byte costs more in {quoted(fast.name)} than in {quoted(slow.name)}, named "
                "after it; name the fastest memory, with the lowest costs, first"
            )


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
