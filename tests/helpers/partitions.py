"""Brute force for blocks of limited size: all partitions of small problems, and all offsets."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import oracle

from memplan.base.errors import ProblemError
from memplan.problem import Buffer, Gap, Problem, Reserved

__all__ = ["draw_problem", "find_least"]


def find_least(problem: Problem, limit: int) -> tuple[int, int] | None:
    """Return the least number of blocks and then of bytes; None if there is no plan.

    A block has at most the bytes of the limit, or of the largest item in it.
    """
    pieces = oracle.pieces_of(problem)
    items = [[row for row, _ in piece] for piece in pieces]
    extents = [max(lead + int(problem.size[row]) for row, lead in piece) for piece in pieces]

    @cache
    def height(mask: int) -> int | None:
        rows = sorted(row for at, each in enumerate(items) if mask >> at & 1 for row in each)
        most = max(extents[at] for at in range(len(items)) if mask >> at & 1)
        try:
            part = problem.subset(np.array(rows, np.int64)).with_capacity(max(limit, most))
        except ProblemError:  # a pin is beyond the limit
            return None
        return oracle.minimum_peak(part)

    @cache
    def partition(rest: int) -> tuple[int, int] | None:
        if rest == 0:
            return 0, 0
        first, best = rest & -rest, None
        part = rest
        while part:
            if part & first and (high := height(part)) is not None:
                others = partition(rest ^ part)
                if others is not None:
                    found = others[0] + 1, others[1] + high
                    best = found if best is None else min(best, found)
            part = (part - 1) & rest
        return best

    return partition((1 << len(items)) - 1)


def draw_problem(rng: random.Random) -> Problem:
    """Return a problem of up to five buffers with some of all constraints."""
    wish = {
        name: rng.random() < 0.35 for name in ("align", "pin", "gap", "reserve", "pair", "group")
    }
    buffers = []
    for row in range(rng.randint(1, 5)):
        start = rng.randrange(5)
        end = start + rng.randint(1, 4)
        size = rng.randint(0 if rng.random() < 0.1 else 1, 6)
        gaps: tuple[Gap, ...] = ()
        if wish["gap"] and end - start > 1 and rng.random() < 0.5:
            cut = rng.randrange(start, end)
            window = tuple(sorted((rng.randint(0, size), rng.randint(0, size))))
            gaps = (Gap(cut, cut + 1, window if rng.random() < 0.5 else None),)  # type: ignore[arg-type]
        unit = rng.choice((1, 2, 3, 4)) if wish["align"] else 1
        buffers.append(Buffer(str(row), start, end, size, unit, gaps=gaps))
    ids = [each.id for each in buffers]
    pairs = [rng.sample(ids, 2)] if wish["pair"] and len(ids) > 1 else []
    groups = [rng.sample(ids, 2)] if wish["group"] and len(ids) > 1 else []
    reserved = []
    if wish["reserve"]:
        lower = rng.choice((0, rng.randrange(8)))
        reserved = [Reserved(lower, lower + rng.randint(1, 3))]
    try:
        found = Problem(buffers, reserved=reserved, conflicts=pairs, groups=groups)
        if wish["pin"]:
            for each in rng.sample(buffers, min(len(buffers), 2)):
                found = found.with_pins({each.id: rng.randrange(4) * each.alignment})
    except ProblemError:  # two alignments in a group, or two pins that meet
        return draw_problem(rng)
    return found
