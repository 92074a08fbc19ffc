"""The copies of a header in C: buffers that move between memories while the program runs.

net_move(step)                          called before each step: makes and awaits the copies
extern const net_copy net_copies[];     the copies themselves, with when they begin and end
NET_DMA_START(number, to, from, bytes)  begins a copy; memcpy, unless the user has another one
NET_DMA_WAIT(number)                    returns when it is complete
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memplan.base.errors import PlanError
from memplan.machine.memories.copies import Copy
from memplan.programs.sources import Loaded
from memplan.runtimes.c.arrays import Arrays

__all__ = ["Copies"]

# Stores are in front of fetches in the table. Before a step, a piece goes home first, and then
# another one may come to its place.
_MOVE = """\
void {lower}_move(int64_t step) {{
  uint32_t first = 0, end = {upper}_STORE_COUNT, i;
  for (;;) {{
    for (i = first; i < end; ++i) {{
      if ({lower}_copies[i].start == step) {{
        {upper}_DMA_START(i, {lower}_copies[i].to, {lower}_copies[i].from, {lower}_copies[i].bytes);
      }}
    }}
    for (i = first; i < end; ++i) {{
      if ({lower}_copies[i].done == step) {upper}_DMA_WAIT(i);
    }}
    if (end == {upper}_COPY_COUNT) return;
    first = end;
    end = {upper}_COPY_COUNT;
  }}
}}"""


@dataclass(frozen=True, slots=True)
class Copies:
    """What a header says of the copies between its arrays."""

    arrays: Arrays
    upper: str

    def require_steps(self, loaded: Loaded) -> None:
        """Refuse copies in a program whose steps do not run one after the other."""
        graph = loaded.graph
        if self.arrays.stretches and graph is not None and any(o.blocks for o in graph.operators):
            raise PlanError(
                "the program has branches or loops, so copies of its buffers have no fixed steps; "
                "plan it without residency"
            )

    def introduce(self) -> Iterator[str]:
        """Yield what the user has to do."""
        if not self.arrays.stretches:
            return
        upper, lower = self.upper, self.upper.lower()
        yield " *"
        yield f" * Some buffers move: call {lower}_move(step) before each step; the first one is 0."
        yield f" * {upper}_AT_name(step) is where such a tensor lies. Copies are made by memcpy,"
        yield f" * unless you define {upper}_DMA_START(number, to, from, bytes) and"
        yield f" * {upper}_DMA_WAIT(number) where {upper}_DEFINE_ARENA is; steps run between both."

    def define_type(self) -> Iterator[str]:
        """Yield how many copies there are, and the type of one."""
        if not self.arrays.are_several:
            return
        upper, lower, copies = self.upper, self.upper.lower(), self.arrays.copies
        yield f"#define {upper}_COPY_COUNT {len(copies)}u"
        if not copies:
            yield f"#define {lower}_move(step) ((void)(step)) /* nothing moves */"
            yield ""
            return
        yield from (
            f"#define {upper}_STORE_COUNT {sum(each.stores for each in copies)}u",
            f"typedef struct {lower}_copy {{ /* first from a fast memory, then to one */",
            "  unsigned char* to;",
            "  const unsigned char* from;",
            "  uint64_t bytes;",
            "  int64_t start; /* it begins before this step */",
            "  int64_t done;  /* it is complete before this step */",
            f"}} {lower}_copy;",
            "",
        )

    def declare(self) -> Iterator[str]:
        """Yield declarations."""
        if self.arrays.copies:
            yield f"extern const {self._table()};"
            yield f"void {self.upper.lower()}_move(int64_t step);"

    def define_hooks(self) -> Iterator[str]:
        """Yield what a copy is, if the user has not said it."""
        if self.arrays.copies:
            start, wait = f"{self.upper}_DMA_START", f"{self.upper}_DMA_WAIT"
            yield from (
                f"#if !defined({start}) && !defined({wait})",
                "#include <string.h>",
                f"#define {start}(number, to, from, bytes) memcpy((to), (from), (size_t)(bytes))",
                f"#define {wait}(number) ((void)(number))",
                f"#elif !defined({start}) || !defined({wait})",
                f"#error define both {start} and {wait}",
                "#endif",
            )

    def define(self) -> Iterator[str]:
        """Yield definitions."""
        if self.arrays.copies:
            yield f"const {self._table()} = {{"
            yield from map(self._define_copy, self.arrays.copies)
            yield "};"
            yield from _MOVE.format(upper=self.upper, lower=self.upper.lower()).splitlines()

    def _define_copy(self, copy: Copy) -> str:
        arrays, problem, piece = self.arrays, self.arrays.problem, copy.stretch
        places = []
        for row in (problem.index(piece.buffer), problem.index(piece.copy)):
            places.append(f"{arrays.array_of(row).name} + {arrays.offsets[row]}u")
        to, source = places if copy.stores else places[::-1]
        bytes = int(problem.size[problem.index(piece.buffer)])
        return f"    {{{to}, {source}, {bytes}u, {copy.start}, {copy.done}}},"

    def _table(self) -> str:
        lower = self.upper.lower()
        return f"{lower}_copy {lower}_copies[{self.upper}_COPY_COUNT]"
