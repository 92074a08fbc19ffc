"""Adds listed conflicts and groups to a random problem, at the cost of what contradicts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memplan.base.errors import ProblemError
from memplan.problem import Problem


def relate(
    problem: Problem, conflicts: Sequence[tuple[int, int]], groups: Sequence[Sequence[int]]
) -> Problem:
    """Return a problem with pairs of rows that conflict, and groups of rows.

    Groups at random seldom keep alignments and pins at random. A row that an error names loses
    its own, until there is no error; all others keep theirs.
    """
    rows, ids = list(problem.buffers), problem.ids
    while True:
        try:
            return Problem(
                rows,
                problem.capacity,
                problem.reserved,
                conflicts=[(ids[i], ids[j]) for i, j in conflicts],
                groups=[[ids[row] for row in group] for group in groups],
            )
        except ProblemError as error:
            if error.row is None:
                raise
            lost = {"pin": None} if error.field == "pin" else {"alignment": 1}
            rows[error.row] = replace(rows[error.row], **lost)
