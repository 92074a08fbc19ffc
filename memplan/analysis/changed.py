"""Changes one buffer of a problem."""

from __future__ import annotations

import numpy as np

from memplan.graph.remake import Remake
from memplan.problem import Problem
from memplan.problem.columns import NONE

__all__ = ["halve", "remake_row"]


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
