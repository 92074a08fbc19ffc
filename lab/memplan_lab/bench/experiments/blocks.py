"""Blocks of limited size, beside ggml's rule for chunks, on problems of the corpus.

The limits are shares of the least known peak, but at least the largest buffer or group. With
`constrained` the problems get constraints of all kinds, drawn with their name as the seed; ggml's
rule knows none of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from statistics import mean, median
from typing import Any, Final, NamedTuple

import numpy as np

from memplan.base.errors import ProblemError
from memplan.machine.blocks import plan_blocks
from memplan.problem import Problem
from memplan.solvers import solve
from memplan_lab.bench import records
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Row,
    Setting,
    Settings,
    Table,
    read_count,
    tell,
)

SHARES: Final = (2, 3, 5, 8)  # of the least peak
_SIZES: Final = range(8, 601)  # buffers of a problem


def _list_cases(settings: Settings) -> Iterator[Case]:
    for constrained in (False, True) if settings["constrained"] else (False,):
        kind = "with constraints" if constrained else "as they are"
        for record in _draw(settings["problems"]):
            yield Case(record.name, partial(_make, record, constrained), {"kind": kind})


def _make(record: records.Record, constrained: bool) -> tuple[Problem, int, bool]:
    """Return a problem and its least known peak, and whether it has constraints."""
    if not constrained:
        return record.problem, record.best_peak, False
    problem = constrain(record.problem, record.name)
    return problem, solve(problem, nodes=10_000, threads=1).peak or 0, True


def _draw(problems: int) -> list[records.Record]:
    corpus, drawn = records.corpus(), problems
    while True:
        sample = corpus.sample(min(drawn, len(corpus)))
        found = [record for record in sample if len(record.problem) in _SIZES]
        if len(found) >= problems or drawn >= len(corpus):
            return found[:problems]
        drawn += max(1, problems - len(found))


def measure(case: tuple[Problem, int, bool]) -> Iterator[dict[str, Any]]:
    """Plan a problem in blocks of each limit, and by ggml's rule if it has no constraints."""
    problem, peak, constrained = case
    for share in SHARES:
        limit = max(_find_largest(problem), -(-peak // share))
        begun = time.process_time()
        plan = plan_blocks(problem, limit, threads=1)
        seconds = time.process_time() - begun
        yield {
            "share": share,
            "count": plan.count,
            "count_bound": plan.count_bound,
            "total": plan.total,
            "total_bound": plan.total_bound,
            "chunks": [] if constrained else place_in_chunks(problem, limit),
            "seconds": seconds,
        }


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


def _ratio(row: Row) -> float:
    """Return the bytes of all blocks, over their bound."""
    return float(row["total"] / max(1, row["total_bound"]))


def _share(facts: list[bool]) -> str:
    return f"{sum(facts)} ({sum(facts) / len(facts):.1%})"


TABLE = Table(
    "Blocks",
    (
        Column("problems", "{kind}"),
        Column("runs", tell("{}", len, "share")),
        Column("number proved", tell("{}", _share, lambda row: row["count"] == row["count_bound"])),
        Column("bytes proved", tell("{}", _share, lambda row: row["total"] == row["total_bound"])),
        Column("within 1.01 of the bound", tell("{}", _share, lambda row: _ratio(row) <= 1.01)),
        Column("worst", tell("{:.4f}", max, _ratio)),
        Column("blocks", tell("{}", sum, "count")),
        Column("by ggml's rule", tell("{}", sum, lambda row: len(row["chunks"]) or None)),
        Column(
            "bytes by ggml's rule",
            tell("{:.2f} x", mean, lambda row: sum(row["chunks"]) / row["total"] or None),
        ),
        Column("CPU median", tell("{:.0f} ms", median, lambda row: 1000 * row["seconds"])),
        Column("most", tell("{:.1f} s", max, "seconds")),
    ),
    by=("kind",),
)

EXPERIMENT = Experiment(
    "blocks",
    "blocks of at most 1/2, 1/3, 1/5 and 1/8 of the least peak, beside ggml's rule",
    figures={
        "share": "the limit is the least peak divided by this, or the largest buffer",
        "count": "blocks, and `count_bound` that every plan needs",
        "total": "bytes of all blocks, and `total_bound` that every plan needs",
        "chunks": "bytes of each block by ggml's rule",
        "seconds": "CPU time of our plan, in one thread without a limit",
    },
    cases=_list_cases,
    arms=lambda _: [Arm("memplan", measure)],
    tables=lambda rows, _: [TABLE],
    own={
        "problems": Setting(50, "problems of the corpus with 8 to 600 buffers", read_count),
        "constrained": Setting(False, "also plan them with drawn constraints of all kinds"),
    },
)
