"""Converts what a caller passes for a problem: ids, gaps, capacity, reserved ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError, quoted, shown
from memplan.problem import checks
from memplan.problem.buffer import Buffer, Gap, Reserved
from memplan.problem.columns import NONE, Column, Label, filled, frozen, int_column, whole_number
from memplan.problem.conflicts import Conflicts

GAP_COLUMNS = ("gap_buffer", "gap_start", "gap_end", "gap_lower", "gap_upper")


def take_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids as a tuple of distinct strings."""
    # tolist() turns NumPy's strings into Python's.
    names = tuple(ids.tolist() if isinstance(ids, np.ndarray) else ids)
    checks.check_ids(names)
    return names


def take_capacity(capacity: int | None) -> int | None:
    """Return a capacity as an int that is in range."""
    checked = None if capacity is None else whole_number(capacity, "capacity", "capacity")
    checks.check_capacity(checked)
    return checked


def take_reserved(blocks: Iterable[Reserved | tuple[int, int]]) -> tuple[Reserved, ...]:
    """Return reserved ranges sorted and disjoint."""
    pairs = []
    for block in blocks:
        pair = (block.lower, block.upper) if isinstance(block, Reserved) else block
        lower, upper = _pair(pair, "a reserved range", "reserved")
        pairs.append(
            (
                whole_number(lower, "the lower end of a reserved range", "reserved"),
                whole_number(upper, "the upper end of a reserved range", "reserved"),
            )
        )
    ordered = tuple(Reserved(lower, upper) for lower, upper in sorted(pairs))
    checks.check_reserved(ordered)
    return ordered


def take_conflicts(pairs: Conflicts | npt.ArrayLike | None, count: int) -> Conflicts:
    """Return a relation between `count` rows."""
    if pairs is None:
        return Conflicts.none(count)
    if not isinstance(pairs, Conflicts):
        return Conflicts.of_pairs(count, pairs)
    if len(pairs.begin) != count + 1:
        raise ProblemError(
            f"conflicts has {len(pairs.begin) - 1} rows for {count} buffers", field="conflicts"
        )
    return pairs


def rows_of(
    lists: Iterable[Iterable[str]], buffers: Sequence[Buffer], field: str
) -> list[list[int]]:
    """Turn lists of ids (of conflicts or groups) into lists of rows."""
    named = [list(ids) for ids in lists]
    row_of = {str(buffer.id): row for row, buffer in enumerate(buffers)} if named else {}
    for at, ids in enumerate(named):
        for name in ids:
            if name not in row_of:
                raise ProblemError(
                    f"{field}[{at}] lists {quoted(str(name))}, which is no buffer's id", field=field
                )
    return [[row_of[name] for name in ids] for ids in named]


def gap_columns(buffers: Sequence[Buffer]) -> list[list[int]] | None:
    """Flatten the gaps of `Buffer` objects into five columns; `None` if there are no gaps."""
    columns: list[list[int]] = [[], [], [], [], []]
    for row, buffer in enumerate(buffers):
        for gap in buffer.gaps:
            what = f"buffer {quoted(str(buffer.id))}"
            if not isinstance(gap, Gap):
                raise ProblemError(f"{what}: {shown(gap)} is not a Gap", row=row, field="gaps")
            window = (NONE, NONE)
            if gap.window is not None:
                window = _pair(gap.window, f"{what}: the window of a gap", "gaps")
            for column, value in zip(columns, (row, gap.start, gap.end, *window), strict=True):
                column.append(value)
    return columns if columns[0] else None


def take_gaps(gaps: Sequence[npt.ArrayLike] | None, count: int, label: Label) -> list[Column]:
    """Check the five gap columns of a caller and return them sorted by (buffer, start)."""
    if gaps is None:
        return [filled(0, NONE)] * 5
    if len(gaps) != 5:
        raise ProblemError(
            f"gaps has {len(gaps)} columns; it must have five: buffer, start, end, lower, upper",
            field="gaps",
        )
    owner = int_column(gaps[0], "gaps: buffer", lambda at: f"gap number {at}")
    if len(owner) and not (owner.min() >= 0 and owner.max() < count):
        raise ProblemError(f"gaps: buffer must be a row between 0 and {count - 1}", field="gaps")
    columns = [owner]
    for values, name in zip(gaps[1:], ("start", "end", "lower", "upper"), strict=True):
        columns.append(int_column(values, f"gap {name}", label, owner))
        if len(columns[-1]) != len(owner):
            raise ProblemError(
                f"gaps: {name} has {len(columns[-1])} values for {len(owner)} gaps", field="gaps"
            )
    order = np.lexsort((columns[1], owner))
    return [frozen(column[order]) for column in columns]


def take_rows(rows: npt.ArrayLike, count: int) -> Column:
    """Return the chosen rows as a column, each below `count`."""
    chosen = int_column(rows, "rows", lambda at: f"number {at}")
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < count):
        raise ProblemError(f"rows to choose must be between 0 and {count - 1}")
    return chosen


def restrict_gaps(gaps: Sequence[Column], rows: Column) -> list[npt.NDArray[np.int64]]:
    """Return the gap columns, sorted by buffer, of these rows alone, numbered in this order."""
    first = np.searchsorted(gaps[0], rows)
    count = np.searchsorted(gaps[0], rows, side="right") - first
    owner = np.repeat(np.arange(len(rows)), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return [owner, *(column[first[owner] + within] for column in gaps[1:])]


@lru_cache(maxsize=4)  # a repacker asks for the same again and again
def blank_columns(count: int) -> dict[str, object]:
    """Return the attributes of a problem without hints, gaps, conflicts and groups."""
    none = filled(count, NONE)
    columns = {"hint": none, "group": none, "lead": filled(count, 0)}
    return columns | dict.fromkeys(GAP_COLUMNS, filled(0, 0)) | {"conflicts": Conflicts.none(count)}


def _pair(value: tuple[int, int], what: str, field: str) -> tuple[int, int]:
    try:
        lower, upper = value
    except (TypeError, ValueError):
        raise ProblemError(f"{what} must be a pair (lower, upper)", field=field) from None
    return lower, upper
