"""Blocks of limited size, beside ggml's rule for chunks, on problems of the corpus.

The limits are shares of the least known peak, but at least the largest buffer or group. With
`constrained` the problems get constraints of all kinds, drawn with their name as the seed; ggml's
rule knows none of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from memplan.base.errors import ProblemError
from memplan.memories import Blocks, plan_blocks
from memplan.problem import Problem
from memplan.solvers import solve
from memplan_lab.bench import records

__all__ = ["HEADINGS", "SHARES", "Row", "lines", "measure", "place_in_chunks"]

SHARES: Final = (2, 3, 5, 8)  # of the least peak
_SIZES: Final = range(8, 601)  # buffers of a problem
HEADINGS: Final = (
    *("problems", "runs", "number proved", "bytes proved", "within 1.01 of the bound", "worst"),
    *("blocks", "by ggml's rule", "bytes by ggml's rule", "CPU median", "most"),
)


@dataclass(frozen=True)
class Row:
    """One problem and limit."""

    name: str  # of the problem
    constrained: bool  # whether constraints were drawn for it
    share: int  # the limit is the least peak divided by this, or the largest buffer
    # count, count_bound, total, total_bound: See `memplan.Blocks`.
    count: int
    count_bound: int
    total: int
    total_bound: int
    # The height of each block by ggml's rule; none for a problem with constraints.
    chunks: tuple[int, ...]
    seconds: float  # CPU time of our plan

    @property
    def ratio(self) -> float:
        """The bytes of all blocks, over their bound."""
        return self.total / max(1, self.total_bound)


def measure(problems: int, *, constrained: bool) -> Iterator[Row]:
    """Plan problems of 8 to 600 buffers, from each family of the corpus its share."""
    for record in _draw(problems):
        problem, peak = record.problem, record.best_peak
        if constrained:
            problem = constrain(problem, record.name)
            peak = solve(problem, nodes=10_000, threads=1).peak or 0
        for share in SHARES:
            limit = max(_find_largest(problem), -(-peak // share))
            begun = time.process_time()
            plan = plan_blocks(problem, limit, threads=1)
            seconds = time.process_time() - begun
            chunks = () if constrained else tuple(place_in_chunks(problem, limit))
            yield _make_row(record.name, constrained, share, plan, chunks, seconds)


def _draw(problems: int) -> list[records.Record]:
    corpus, drawn = records.corpus(), problems
    while True:
        sample = corpus.sample(min(drawn, len(corpus)))
        found = [record for record in sample if len(record.problem) in _SIZES]
        if len(found) >= problems or drawn >= len(corpus):
            return found[:problems]
        drawn += max(1, problems - len(found))


def _make_row(
    name: str, constrained: bool, share: int, plan: Blocks, chunks: tuple[int, ...], seconds: float
) -> Row:
    bounds = plan.count_bound, plan.total_bound
    return Row(
        name, constrained, share, plan.count, bounds[0], plan.total, bounds[1], chunks, seconds
    )


def _find_largest(problem: Problem) -> int:
    """Return the most bytes that must be in one block, with what is reserved and pinned."""
    groups = (list(rows) for rows in problem.groups)
    long = [int((problem.lead + problem.size)[rows].max()) for rows in groups]
    highest = max([int(problem.size.max(initial=1)), *long])
    reserved = sum(each.upper for each in problem.reserved)
    pinned = int((problem.pin + problem.size).max(initial=0))
    unit = int(problem.alignment.max(initial=1))
    return max(reserved + unit + highest if reserved else highest, pinned)


def constrain(problem: Problem, seed: str) -> Problem:
    """Return a problem with drawn alignments, gaps, conflicts, groups, pins and reserved bytes."""
    rng = random.Random(seed)
    count = len(problem)
    alignment = [rng.choice((1, 1, 1, 64, 4096)) for _ in range(count)]
    gaps = []
    for row in range(count):
        start, end, size = (int(c[row]) for c in (problem.start, problem.end, problem.size))
        if end - start > 2 and rng.random() < 0.1:
            window = rng.choice(((-1, -1), (0, size // 2)))
            gaps.append((row, start + 1, end - 1, *window))
    rows = rng.sample(range(count), count)
    pairs = np.array([rows[at : at + 2] for at in range(0, min(count - 1, 10), 2)])
    grouped = [] if problem.has_groups else [rows[-2:]]
    for row in grouped[0] if grouped else ():
        alignment[row] = 1
    drawn = Problem.from_arrays(
        problem.start,
        problem.end,
        problem.size,
        ids=problem.ids,
        alignment=alignment if grouped else None,
        gaps=list(np.array(gaps, np.int64).reshape(-1, 5).T),
        conflicts=np.concatenate([problem.conflicts.pairs(), pairs.reshape(-1, 2)]),
        groups=grouped or (problem.group, problem.lead),
        reserved=[(0, 64)],
    )
    for row in rows[10:12]:
        if problem.size[row] and problem.group[row] < 0:
            try:
                drawn = drawn.with_pins({problem.ids[row]: 4096})
            except ProblemError:  # it would meet the other one
                continue
    return drawn


class _Piece(NamedTuple):
    chunk: int
    offset: int
    end: int


def place_in_chunks(problem: Problem, limit: int) -> list[int]:
    """Return the heights of chunks by ggml's rule, as we read it in its pull request 16788.

    In program order each buffer takes the smallest hole that it fits into; else the top of the
    first chunk with room; else a new chunk.
    """
    starts, ends, sizes = (c.tolist() for c in (problem.start, problem.end, problem.size))
    unit = int(problem.alignment.max(initial=1))
    rows = [row for row in range(len(problem)) if sizes[row]]
    events = sorted([(starts[r], 1, r) for r in rows] + [(ends[r], 0, r) for r in rows])
    live: dict[int, _Piece] = {}
    heights: list[int] = []
    for _, begins, row in events:
        if not begins:
            del live[row]
            continue
        size = -(-sizes[row] // unit) * unit
        chunk, offset = _choose(live.values(), heights, size, limit)
        if chunk == len(heights):
            heights.append(0)
        heights[chunk] = max(heights[chunk], offset + size)
        live[row] = _Piece(chunk, offset, offset + size)
    return heights


def _choose(
    live: Iterable[_Piece], heights: Sequence[int], size: int, limit: int
) -> tuple[int, int]:
    """Return the chunk and the offset of the next buffer."""
    holes: list[tuple[int, int, int]] = []
    tops = []
    pieces = sorted(live)
    for chunk, height in enumerate(heights):
        top = 0
        for piece in pieces:
            if piece.chunk == chunk:
                holes.append((piece.offset - top, chunk, top))
                top = piece.end
        holes.append((height - top, chunk, top))
        if top + size <= limit:
            tops.append((chunk, top))
    fitting = [hole for hole in holes if hole[0] >= size]
    if fitting:
        return min(fitting)[1:]
    return tops[0] if tops else (len(heights), 0)


def lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return a line of the table for the problems as they are, and one with constraints."""
    found: list[tuple[str, ...]] = []
    for constrained in (False, True):
        chosen = [row for row in rows if row.constrained == constrained]
        if not chosen:
            continue
        ratios = [row.ratio for row in chosen]
        times = sorted(row.seconds for row in chosen)
        chunks = [each for row in chosen for each in row.chunks]
        by_rule = [sum(row.chunks) / row.total for row in chosen if row.chunks]
        found.append(
            (
                "with constraints" if constrained else "as they are",
                str(len(chosen)),
                _share(row.count == row.count_bound for row in chosen),
                _share(row.total == row.total_bound for row in chosen),
                _share(ratio <= 1.01 for ratio in ratios),
                f"{max(ratios):.4f}",
                str(sum(row.count for row in chosen)),
                str(len(chunks)) if chunks else "–",
                f"{sum(by_rule) / len(by_rule):.2f} x" if by_rule else "–",
                f"{1000 * median(times):.0f} ms",
                f"{times[-1]:.1f} s",
            )
        )
    return found


def _share(of: Iterable[bool]) -> str:
    each = list(of)
    return f"{sum(each)} ({sum(each) / len(each):.1%})"
