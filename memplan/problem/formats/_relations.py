"""Reads and writes conflicts and groups in JSON, as ids of buffers; every conflict once."""

from __future__ import annotations

from typing import Any

from memplan.base.errors import MemplanError, quoted
from memplan.problem import Problem
from memplan.problem.formats._fields import Fields, shown
from memplan.problem.groups import is_contiguous

__all__ = ["read_conflicts", "read_groups", "write_conflicts", "write_groups"]


def read_conflicts(reader: Fields, buffers: list[Any]) -> list[tuple[int, int]]:
    """Return pairs of rows from the arrays of ids that `buffers` may have as `conflicts`."""
    if not any("conflicts" in buffer for buffer in buffers):
        return []
    row_of = _rows_by_id(buffers)
    return [
        (row, other)
        for row, buffer in enumerate(buffers)
        for other in _read_members(
            reader, buffer.get("conflicts", []), f"buffers[{row}].conflicts", row_of
        )
    ]


def read_groups(reader: Fields, groups: object, buffers: list[Any]) -> list[list[int]]:
    """Return the rows of every group; in the file groups are arrays of ids."""
    listed = reader.array(groups, "groups")
    row_of = _rows_by_id(buffers) if listed else {}
    return [_read_members(reader, ids, f"groups[{at}]", row_of) for at, ids in enumerate(listed)]


def write_conflicts(problem: Problem) -> list[list[str]]:
    """Return for every row the ids of later rows that it conflicts with."""
    ids = problem.ids
    found: list[list[str]] = [[] for _ in ids]
    for first, second in problem.conflicts.pairs().tolist():
        found[first].append(ids[second])
    return found


def write_groups(problem: Problem) -> list[list[str]]:
    """Return the ids of every group; refuse one that lost members when a subset was taken."""
    for rows in problem.groups:
        if not is_contiguous(problem, rows):
            raise MemplanError(
                f"{problem.label(rows[0])} is in a group of which this problem has only a part; "
                "it cannot be written"
            )
    return [[problem.ids[row] for row in rows] for rows in problem.groups]


def _rows_by_id(buffers: list[Any]) -> dict[str, int]:
    # Ids that are not strings are left out; `Problem` rejects them later.
    return {b["id"]: row for row, b in enumerate(buffers) if isinstance(b["id"], str)}


def _read_members(reader: Fields, ids: object, where: str, row_of: dict[str, int]) -> list[int]:
    found = []
    for at, name in enumerate(reader.array(ids, where)):
        row = row_of.get(name) if isinstance(name, str) else None
        if row is None:
            what = quoted(name) if isinstance(name, str) else shown(name)
            raise reader.error(f"{where}[{at}] is {what}, which is not the id of a buffer")
        found.append(row)
    return found
