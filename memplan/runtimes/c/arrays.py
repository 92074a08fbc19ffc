"""The arrays of a header in C: one arena, or an array for each of several memories.

Arrays of memories are in sections of their own, ".bss.sram" and ".bss.psram", which a linker script
can place. Without such a script they are ordinary variables.

A buffer that moves has further rows, one for each piece of it in a faster memory. They hold their
places while copies of them run, so that the assertions are about copies too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memplan.machine.memories import Assigned, Stretch
from memplan.machine.memories.copies import Copy, list_copies, widen
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee import verify
from memplan.referee.assigned import verify_assigned
from memplan.referee.moves import with_pieces
from memplan.runtimes.c import names as c
from memplan.runtimes.c.neighbours import Below, find_neighbours

__all__ = ["Array", "Arrays", "align_array"]


@dataclass(frozen=True, slots=True)
class Array:
    """One of the arrays."""

    # Of the constants for its properties: "NET_ARENA_" and "", or "NET_MEMORY_" and "_sram".
    prefix: str
    end: str
    name: str  # in C
    rows: tuple[int, ...]  # the buffers in it, by row of the problem
    size: int  # in bytes
    alignment: int

    def macro(self, what: str) -> str:
        """Return the constant for a property."""
        return f"{self.prefix}{what}{self.end}"

    def declare(self) -> str:
        """Return its declaration; C has no arrays of size 0, so an empty one gets one byte."""
        return f"unsigned char {self.name}[{self.macro('SIZE') if self.size else '1'}]"


@dataclass(frozen=True)
class Arrays:
    """All arrays of a header."""

    arrays: tuple[Array, ...]  # one arena, or one array for each memory
    problem: Problem  # its buffers, and behind them their pieces
    offsets: list[int]  # by row of the problem, in its array
    words: str  # how much memory there is, for people
    are_several: bool  # whether there is an array for each memory
    stretches: tuple[Stretch, ...] = ()  # by row behind the buffers: when a piece is used
    copies: tuple[Copy, ...] = ()  # see `memplan.machine.memories.copies`

    @classmethod
    def of(cls, problem: Problem, plan: Plan | Assigned, upper: str) -> Arrays:
        """Return the arrays of a plan; a `PlanError` says why the referee does not accept it."""
        lower = upper.lower()
        if isinstance(plan, Plan):
            verify(problem, plan)
            optimal = " (optimal)" if plan.peak == plan.lower_bound else ""
            rows = tuple(range(len(problem)))
            unit = align_array(problem.alignment)
            size, text = plan.peak or 0, f"{plan.peak} bytes{optimal}"
            if plan.shared is not None:
                size = plan.shared.arena
                text = f"{plan.peak} of the {size} bytes of an arena for several programs"
            arena = Array(f"{upper}_ARENA_", "", f"{lower}_arena", rows, size, unit)
            offsets = [plan.offset(id) for id in problem.ids]
            return cls((arena,), problem, offsets, text, False)
        verify_assigned(
            problem, plan.memories, plan.plans, {}, plan.accessed, (), plan.stretches, plan.steps
        )
        copies = list_copies(plan)
        if plan.stretches:
            problem = with_pieces(problem, problem, widen(plan, copies))
        names = [memory.name for memory in plan.memories]
        made: list[Array] = []
        places: dict[int, int] = {}
        for end, memory, part in zip(
            c.make_identifiers(names), plan.memories, plan.plans, strict=True
        ):
            rows = tuple(problem.index(id) for id in part.ids)
            if plan.stretches:  # the pieces hold their places for longer than the referee saw
                there = problem.subset(np.array(rows, np.int64))
                verify(there, Plan.of(there, [part.offset(id) for id in there.ids]))
            places |= {row: part.offset(problem.ids[row]) for row in rows}
            unit = align_array((*problem.alignment[list(rows)], memory.alignment))
            name = f"{lower}_memory_{end}"
            made.append(Array(f"{upper}_MEMORY_", f"_{end}", name, rows, part.peak or 0, unit))
        words = [
            f"{array.size} bytes of {c.escape_comment(name)}"
            for array, name in zip(made, names, strict=True)
        ]
        offsets = [places[row] for row in range(len(problem))]
        text = " and ".join(words)
        return cls(tuple(made), problem, offsets, text, True, plan.stretches, copies)

    def array_of(self, row: int) -> Array:
        """Return the array that a buffer lies in."""
        return self._array_by_row[row]

    @cached_property
    def _array_by_row(self) -> dict[int, Array]:
        return {row: array for array in self.arrays for row in array.rows}

    def find_neighbours(self) -> Iterator[Below]:
        """Yield the pairs of buffers that are enough to check, array by array."""
        for array in self.arrays:
            part = self.problem.subset(np.array(array.rows, np.int64))
            at = [self.offsets[row] for row in array.rows]
            for pair in find_neighbours(part, at):
                below, above = array.rows[pair.below], array.rows[pair.above]
                yield pair._replace(below=below, above=above)

    def define_sections(self) -> Iterator[str]:
        """Yield a macro for each of several arrays, with which it is defined."""
        if not self.are_several:
            return
        for array in self.arrays:
            macro = array.macro("SECTION")
            yield from (
                f"#ifndef {macro}",
                "#if defined(__GNUC__) && defined(__ELF__)",
                f'#define {macro} __attribute__((section(".bss.{array.end[1:]}")))',
                "#else",
                f"#define {macro}",
                "#endif",
                "#endif",
            )
        yield ""

    def name_section(self, array: Array) -> str:
        """Return the macro that an array is defined with, if there is one."""
        return f"{array.macro('SECTION')} " if self.are_several else ""


def align_array(units: Iterable[int]) -> int:
    """Return the alignment of an array whose buffers have these: C has only powers of two."""
    return max((int(unit) & -int(unit) for unit in units), default=1)
