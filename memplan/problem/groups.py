"""Contiguous groups: buffers that are adjacent, even if their lifetimes differ.

Groups are stored as two columns: for every buffer the number of its group, and its distance in
bytes from the first member of the group. So a subset of a group keeps its distances:

    group a b c, 10 + 4 + 6 bytes       group  0  0  0
                                        lead   0 10 14
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from memplan.base.errors import ProblemError
from memplan.problem.columns import MAX_BYTES, NONE, Column, Label, filled, frozen, whole_number

if TYPE_CHECKING:
    from memplan.problem import Problem

GROUP_COLUMNS = ("group", "lead")


def take_groups(
    groups: Iterable[Iterable[int]] | tuple[Column, Column] | None, size: Column, label: Label
) -> tuple[Column, Column]:
    """Return the columns `group` (-1: in none) and `lead`, from lists of rows or from columns."""
    # Two arrays with a value per row must be columns: as two groups they would list rows twice.
    if (
        isinstance(groups, tuple)
        and len(groups) == len(GROUP_COLUMNS)
        and all(isinstance(one, np.ndarray) and one.shape == size.shape for one in groups)
    ):
        return cast("tuple[Column, Column]", groups)
    if groups is None:
        return filled(len(size), NONE), filled(len(size), 0)
    group, lead = np.full(len(size), NONE, np.int64), np.zeros(len(size), np.int64)
    for number, members in enumerate(groups):
        behind = 0
        for member in members:
            row = whole_number(member, f"groups[{number}]", "groups")
            if not 0 <= row < len(size):
                raise ProblemError(
                    f"groups[{number}]: {row} must be a row between 0 and {len(size) - 1}",
                    field="groups",
                )
            if group[row] != NONE:
                twice = "twice in the group" if group[row] == number else "in two groups"
                raise ProblemError(f"{label(row)} is {twice}", row=row, field="groups")
            if behind > MAX_BYTES:
                raise ProblemError(
                    f"{label(row)}: its group is longer than 2^62 bytes", row=row, field="groups"
                )
            group[row], lead[row] = number, behind
            behind += int(size[row])
    return frozen(group), frozen(lead)


def list_groups(problem: Problem) -> list[list[int]]:
    """Return the rows of every group, by its number, in the order of their addresses.

    If several have the same address, all but the last are empty.
    """
    rows = np.flatnonzero(problem.group != NONE)
    has_bytes = problem.size[rows] > 0
    order = rows[np.lexsort((rows, has_bytes, problem.lead[rows], problem.group[rows]))]
    cuts = np.flatnonzero(np.diff(problem.group[order])) + 1
    return [part.tolist() for part in np.split(order, cuts)] if len(order) else []


def restrict_groups(group: Column, lead: Column, chosen: Column) -> tuple[Column, Column]:
    """Return both columns for the chosen rows; the rest of a group keeps its distances."""
    number, behind = group[chosen], lead[chosen].copy()
    inside = number != NONE
    if not inside.any():
        return filled(len(chosen), NONE), filled(len(chosen), 0)
    _, dense = np.unique(number[inside], return_inverse=True)
    least = np.full(int(dense.max()) + 1, MAX_BYTES)
    np.minimum.at(least, dense, behind[inside])
    renumbered = np.full(len(chosen), NONE, np.int64)
    renumbered[inside] = dense
    behind[inside] -= least[dense]
    return frozen(renumbered), frozen(behind)


def check_groups(problem: Problem) -> None:
    """Check that the alignments and pins of the members of a group do not contradict each other.

    In practice one of two alignments divides the other. Otherwise an offset for both is hard to
    find, and the group is rejected.
    """
    for rows in problem.groups:
        unit = problem.alignment[list(rows)]
        strictest = rows[int(unit.argmax())]
        for row in rows:
            _check_alignment(problem, strictest, row)
        pinned = [row for row in rows if problem.pin[row] != NONE]
        for row in pinned[1:]:
            apart = int(problem.lead[row] - problem.lead[pinned[0]])
            if problem.pin[row] - problem.pin[pinned[0]] != apart:
                raise ProblemError(
                    f"{problem.label(row)}: its pin {problem.pin[row]} must be {apart} bytes "
                    f"behind that of {problem.label(pinned[0])} ({problem.pin[pinned[0]]}), which "
                    "is in the same group",
                    row=row,
                    field="pin",
                )


def _check_alignment(problem: Problem, strictest: int, row: int) -> None:
    most, unit = int(problem.alignment[strictest]), int(problem.alignment[row])
    apart = int(problem.lead[row] - problem.lead[strictest])
    if most % unit:
        raise ProblemError(
            f"{problem.label(row)}: alignments {unit} and {most} in one group are not supported; "
            "one must divide the other",
            row=row,
            field="alignment",
        )
    if apart % unit:
        side = "behind" if apart > 0 else "before"
        raise ProblemError(
            f"{problem.label(row)}: in its group it lies {abs(apart)} bytes {side} "
            f"{problem.label(strictest)}, so that both cannot be aligned (to {unit} and {most}); "
            "make the sizes between them multiples of the alignment",
            row=row,
            field="groups",
        )


def is_contiguous(problem: Problem, rows: Sequence[int]) -> bool:
    """Return whether members (by address) are adjacent, without a hole, from lead 0 on."""
    lead, size = (column[list(rows)] for column in (problem.lead, problem.size))
    return bool(lead[0] == 0 and (lead[1:] == (lead + size)[:-1]).all())
