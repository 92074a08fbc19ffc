"""Changes one buffer of a problem, or what fused operators store."""

from __future__ import annotations

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.programs.graph.fusion import Fusion
from memplan.programs.graph.remake import Remake

__all__ = ["fuse", "halve", "remake_row"]


def halve(problem: Problem, row: int) -> Problem:
    """Return the problem in which a row holds half of what it held, rounded up, at every time."""
    size, lead = problem.size.copy(), problem.lead.copy()
    size[row] -= size[row] // 2
    fellows = (problem.group == problem.group[row]) & (lead > lead[row])
    lead[fellows] -= problem.size[row] - size[row]  # the members behind it move closer
    lower, upper = problem.gap_lower.copy(), problem.gap_upper.copy()
    own = (problem.gap_buffer == row) & (lower != NONE)
    held = (upper - lower)[own]
    lower[own] //= 2
    upper[own] = lower[own] + held - held // 2
    return Problem.from_arrays(
        problem.start,
        problem.end,
        size,
        ids=problem.ids,
        alignment=problem.alignment,
        pin=problem.pin,
        hint=problem.hint,
        gaps=[problem.gap_buffer, problem.gap_start, problem.gap_end, lower, upper],
        capacity=problem.capacity,
        reserved=problem.reserved,
        conflicts=problem.conflicts,
        groups=(problem.group, lead),
    )


def remake_row(problem: Problem, remake: Remake) -> Problem:
    """Return the problem in which a row is dropped and made again: it becomes two buffers.

    The problem must have no gaps, as those of graphs have none.
    """
    row, again = remake.row, remake.again
    added = [row, *remake.extra]
    start = problem.start + (problem.start >= again)
    end = problem.end + (problem.end > again)
    end[list(remake.kept)] = again + 1
    start = np.append(start, [again] * len(added))
    end = np.append(end, [int(end[row]), *[again + 1] * len(remake.extra)])
    end[row] = remake.dropped
    rows = np.append(np.arange(len(problem)), added)
    group, lead = problem.group[rows], problem.lead[rows]
    group[len(problem) :], lead[len(problem) :] = NONE, 0
    return Problem.from_arrays(
        start,
        end,
        problem.size[rows],
        ids=_add_ids(problem.ids, added),
        alignment=problem.alignment[rows],
        pin=problem.pin[rows],
        hint=problem.hint[rows],
        capacity=problem.capacity,
        reserved=problem.reserved,
        groups=(group, lead),
    )


def fuse(problem: Problem, *fusions: Fusion) -> Problem:
    """Return the problem in which the steps of each fusion are one, and its rows are not stored.

    The fusions must not share a step. The problem must have no gaps, as those of graphs have none.
    It is refused if pinned buffers that are needed in the same step then overlap.
    """
    freed = [row for each in fusions for row in each.rows]
    rest = problem.subset(np.delete(np.arange(len(problem)), freed))
    joined = np.zeros(int(problem.end.max(initial=0)) + 1, dtype=np.int64)
    for each in fusions:
        joined[each.start + 1 : each.end] = 1  # these steps join the one before
    step = np.append(np.arange(len(joined)) - np.cumsum(joined), -1)  # time -1 stays
    return Problem.from_arrays(
        step[rest.start],
        step[rest.end - 1] + 1,
        rest.size,
        ids=rest.ids,
        alignment=rest.alignment,
        pin=rest.pin,
        hint=rest.hint,
        capacity=rest.capacity,
        reserved=rest.reserved,
        conflicts=rest.conflicts,
        groups=(rest.group, rest.lead),
    )


def _add_ids(ids: tuple[str, ...], added: list[int]) -> list[str]:
    """Return all ids, followed by new ones for the added copies of rows."""
    taken, found = set(ids), list(ids)
    for row in added:
        name = f"{ids[row]} (again)"
        while name in taken:
            name += "+"
        taken.add(name)
        found.append(name)
    return found
