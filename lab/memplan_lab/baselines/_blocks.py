"""Blocks of memory one above the other, and buffers that share a block."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memplan.problem import Problem
from memplan.solvers.run import Run

__all__ = ["SharedObject", "align_up", "lay_out", "stack"]


def align_up(offset: int, alignment: int) -> int:
    """Return the first multiple of the alignment that is not below the offset."""
    return -(-offset // alignment) * alignment


def stack(blocks: Iterable[tuple[int, int]], barred: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the offset of every block: above all blocks before it, and in no barred range."""
    ranges = sorted(barred)
    at, top = 0, 0
    for size, alignment in blocks:
        if size == 0:
            yield 0
            continue
        offset = align_up(top, alignment)
        while at < len(ranges) and ranges[at][0] < offset + size:
            offset = max(offset, align_up(ranges[at][1], alignment))
            at += 1
        yield offset
        top = offset + size


@dataclass(slots=True)
class SharedObject:
    """Memory that holds one buffer at a time, as large as the largest of them."""

    size: int = 0  # in bytes
    alignment: int = 1  # the least alignment that is enough for every member
    busy: int = 0  # A bit for every stretch of time, which is set if a member is held then
    rows: list[int] = field(default_factory=list)  # the members

    def add(self, problem: Problem, row: int, busy: int = 0) -> None:
        """Add a buffer, which is held while `busy`."""
        self.size = max(self.size, int(problem.size[row]))
        self.alignment = math.lcm(self.alignment, int(problem.alignment[row]))
        self.busy |= busy
        self.rows.append(row)


def lay_out(run: Run, objects: Iterable[SharedObject], note: str) -> None:
    """Offer the plan with the objects one above the other; other buffers go to offset 0."""
    objects = list(objects)
    barred = ((block.lower, block.upper) for block in run.problem.reserved)
    offsets = [0] * len(run.problem)
    blocks = ((each.size, each.alignment) for each in objects)
    for each, offset in zip(objects, stack(blocks, barred), strict=True):
        for row in each.rows:
            offsets[row] = offset
    run.offer(offsets, f"{note}, {len(objects)} objects")
