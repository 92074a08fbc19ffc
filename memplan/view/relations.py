"""Constraints other than lifetimes, in words: pins, conflicts, groups, reserved ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from memplan.base.errors import quoted
from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.groups import is_contiguous
from memplan.view.units import exact, plural

__all__ = ["count_relations", "list_reasons"]

T = TypeVar("T")

_MOST = 5  # of a kind; the others are counted


def count_relations(problem: Problem) -> list[tuple[str, str]]:
    """Return how many explicit conflicts and groups there are; nothing where there are none."""
    found = []
    if problem.has_conflicts:
        found.append(("conflicts", f"{plural(len(problem.conflicts), 'pair')} beside lifetimes"))
    if problem.has_groups:
        members = int((problem.group != NONE).sum())
        longest = int((problem.lead + problem.size)[problem.group != NONE].max())
        found.append(
            (
                "groups",
                f"{plural(len(problem.groups), 'group')} of "
                f"{plural(members, 'buffer')}, the longest {exact(longest)}",
            )
        )
    return found


def list_reasons(problem: Problem) -> list[str]:
    """Return a sentence for each thing that may make a plan impossible although the load is low.

    The problem has the buffers in question alone.
    """
    pinned = np.flatnonzero(problem.pin != NONE).tolist()
    pairs = problem.conflicts.pairs()
    gapped = np.isin(pairs, problem.gap_buffer).any(axis=1)
    apart = pairs[~_meet(problem, *pairs.T) | gapped].tolist()
    groups = [rows for rows in problem.groups if len(rows) > 1]
    return [
        *_tell_first(
            pinned, lambda row: f"{_quote_name(problem, row)} is pinned at {problem.pin[row]:,}."
        ),
        *_tell_first(apart, lambda pair: _describe_conflict(problem, *pair)),
        *_tell_first(groups, lambda rows: _describe_group(problem, rows)),
        *_describe_reserved(problem),
    ]


def _meet(problem: Problem, rows: Column, others: Column) -> npt.NDArray[np.bool_]:
    start, end = problem.start, problem.end
    meet: npt.NDArray[np.bool_] = (start[rows] < end[others]) & (start[others] < end[rows])
    return meet


def _describe_conflict(problem: Problem, row: int, other: int) -> str:
    meet = _meet(problem, np.array([row]), np.array([other])).all()
    how = "also in their gaps" if meet else "though their lifetimes do not meet"
    return f"{_quote_name(problem, row)} and {_quote_name(problem, other)} conflict {how}."


def _describe_group(problem: Problem, rows: Sequence[int]) -> str:
    some, last = (
        [_quote_name(problem, row) for row in rows[:-1][:_MOST]],
        _quote_name(problem, rows[-1]),
    )
    if len(rows) - 1 > _MOST:
        some.append(f"{len(rows) - 1 - _MOST:,} more")
    how = "lie one behind the other" if is_contiguous(problem, rows) else "are parts of one group"
    length = int((problem.lead + problem.size)[list(rows)].max())
    return f"{', '.join(some)} and {last} {how}: {exact(length)} from end to end."


def _describe_reserved(problem: Problem) -> list[str]:
    """Return how long a piece can be, if reserved ranges cut the addresses."""
    if not problem.has_reserved or problem.capacity is None:
        return []
    ends = [0, *(min(block.upper, problem.capacity) for block in problem.reserved)]
    starts = [*(min(block.lower, problem.capacity) for block in problem.reserved), problem.capacity]
    longest = max(start - end for end, start in zip(ends, starts, strict=True))
    return [f"Reserved ranges leave at most {exact(longest)} in one piece."]


def _tell_first(what: Sequence[T], tell: Callable[[T], str]) -> list[str]:
    more = len(what) - _MOST
    return [*map(tell, what[:_MOST]), *([f"{more:,} more of this kind."] if more > 0 else [])]


def _quote_name(problem: Problem, row: int) -> str:
    return quoted(problem.ids[row])
