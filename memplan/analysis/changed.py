"""Problems after a change to one buffer."""

from __future__ import annotations

import numpy as np

from memplan.graph.remake import Remake
from memplan.problem import Problem
from memplan.problem.columns import NONE

__all__ = ["halved", "remade"]


def halved(problem: Problem, row: int) -> Problem:
    """Return the problem in which a row holds half of what it held, rounded up, at every time."""
    size, lead = problem.size.copy(), problem.lead.copy()
    size[row] -= size[row] // 2
    fellows = (problem.group == problem.group[row]) & (lead > lead[row])
    lead[fellows] -= problem.size[row] - size[row]  # who lies behind it moves up
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


def remade(problem: Problem, remake: Remake) -> Problem:
    """Return the problem with the two lives of a row; those of graphs have no gaps."""
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
        ids=_again(problem.ids, added),
        alignment=problem.alignment[rows],
        pin=problem.pin[rows],
        hint=problem.hint[rows],
        capacity=problem.capacity,
        reserved=problem.reserved,
        groups=(group, lead),
    )


def _again(ids: tuple[str, ...], added: list[int]) -> list[str]:
    """Return all ids, with new ones for the rows that are there a second time."""
    taken, found = set(ids), list(ids)
    for row in added:
        name = f"{ids[row]} (again)"
        while name in taken:
            name += "+"
        taken.add(name)
        found.append(name)
    return found
