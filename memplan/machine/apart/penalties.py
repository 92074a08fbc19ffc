"""Penalties of pairs of buffers, as a caller or a file gives them."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import numpy as np

from memplan.base.errors import FormatError, MemplanError, ProblemError, quoted, shown, suggest
from memplan.base.files import read_text
from memplan.problem import Problem
from memplan.problem.spans import Spans, spans
from memplan.solvers.apart import Pairs

__all__ = ["Penalties", "may_share", "read_penalties", "take_penalties"]

Penalties = str | os.PathLike[str] | Mapping[tuple[str, str], int]
"""A file in CSV with the columns `first,second,cost`, or the same as a mapping."""

_HEAD: Final = ["first", "second", "cost"]
_TOTAL: Final = 1 << 53  # of all costs


def take_penalties(problem: Problem, penalties: Penalties) -> Pairs:
    """Return the rows of the buffers of each pair, and what the pairs cost.

    Refused are pairs of unknown buffers, of one buffer with itself, named twice, or that hold
    memory at the same time, and costs that are no whole numbers from 0 on.
    """
    if isinstance(penalties, Mapping):
        return _take(problem, [(0, *_check_key(key), cost) for key, cost in penalties.items()])
    name = os.fspath(penalties)
    return _take(problem, _read(name), name)


def read_penalties(problem: Problem, penalties: Penalties) -> dict[tuple[str, str], int]:
    """Return what pairs of buffers cost, by id; raises as `take_penalties`."""
    ids, pairs = problem.ids, take_penalties(problem, penalties)
    rows = zip(*(each.tolist() for each in pairs), strict=True)
    return {(ids[a], ids[b]): cost for a, b, cost in rows}


def may_share(problem: Problem, one: str, other: str) -> bool:
    """Return whether two buffers, by id, never hold bytes at the same moment, nor conflict."""
    a, b = problem.index(one), problem.index(other)
    return b not in problem.conflicts.of(a) and not _hold_together(problem, spans(problem), a, b)


def _take(problem: Problem, rows: list[tuple[int, str, str, object]], name: str = "") -> Pairs:
    held = spans(problem)
    found: dict[tuple[int, int], int] = {}
    for line, a, b, cost in rows:
        try:
            value = _check_cost(a, b, cost)
            pair = _find_pair(problem, held, a, b)
            if pair in found:
                raise MemplanError(f"buffers {quoted(a)} and {quoted(b)} have two penalties")
            found[pair] = value
        except MemplanError as error:
            raise error if not name else FormatError(name, str(error), line=line) from None
    if sum(found.values()) >= _TOTAL:
        raise MemplanError("all penalties together must be below 2^53; use a larger unit")
    table = np.array([(*pair, cost) for pair, cost in found.items()], np.int64).reshape(-1, 3)
    first, second, cost_of_pair = np.ascontiguousarray(table.T)
    return Pairs(first, second, cost_of_pair)


def _check_key(key: object) -> tuple[str, str]:
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(id, str) for id in key):
        return key
    raise MemplanError(f"penalties are of pairs of ids, as ('a', 'b'), but one is of {shown(key)}")


def _check_cost(a: str, b: str, cost: object) -> int:
    value = cost
    if isinstance(cost, str):
        with suppress(ValueError):
            value = int(cost)
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or int(value) < 0:  # type: ignore[call-overload]
        raise MemplanError(
            f"the penalty of {quoted(a)} and {quoted(b)} is {shown(cost)}; it must be a whole "
            "number, 0 or more"
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def _read(name: str) -> list[tuple[int, str, str, object]]:
    """Return the lines of a table, with their numbers."""
    rows = csv.reader(read_text(name).splitlines())
    if [cell.strip() for cell in next(rows, [])] != _HEAD:
        raise FormatError(name, f"the first line must be: {','.join(_HEAD)}", line=1)
    table: list[tuple[int, str, str, object]] = []
    for row in rows:
        if not row:
            continue
        if len(row) != len(_HEAD):
            raise FormatError(
                name, "a line must have two buffers and their cost", line=rows.line_num
            )
        table.append((rows.line_num, row[0], row[1], row[2].strip()))
    return table


def _find_pair(problem: Problem, held: Spans, a: str, b: str) -> tuple[int, int]:
    """Return the rows of two buffers, the lower one first."""
    one, other = sorted(_find_row(problem, id) for id in (a, b))
    if one == other:
        raise MemplanError(f"buffer {quoted(a)} has a penalty with itself; name two buffers")
    if _hold_together(problem, held, one, other):
        raise MemplanError(
            f"buffers {quoted(a)} and {quoted(b)} hold memory at the same time and never share "
            "any; leave out their penalty"
        )
    return one, other


def _find_row(problem: Problem, id: str) -> int:
    try:
        return problem.index(id)
    except ProblemError:
        message = f"there is no buffer {quoted(id)}{suggest(id, problem.ids)}"
        raise MemplanError(message) from None


def _hold_together(problem: Problem, held: Spans, one: int, other: int) -> bool:
    """Return whether both hold bytes at some moment."""
    start, end = problem.start, problem.end
    if max(start[one], start[other]) >= min(end[one], end[other]):
        return False
    mine, theirs = (np.flatnonzero(held.buffer == row).tolist() for row in (one, other))
    return any(
        held.start[i] < held.end[j] and held.start[j] < held.end[i] for i in mine for j in theirs
    )
