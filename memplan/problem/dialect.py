"""The column names and cell texts of MiniMalloc's tables, shared by CSV files and data frames.

A lifetime is half-open in the columns `lower` and `upper`. In a column `end` the end is inclusive,
and then the ends of gaps are inclusive too. The meaning of a column does not depend on other
columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memplan.base.errors import ProblemError, quoted
from memplan.problem.columns import NONE, Label, int_column

_FIELD_OF = {
    "id": "id",
    "buffer": "id",
    "buffer_id": "id",
    "lower": "start",
    "start": "start",
    "begin": "start",
    "upper": "end",
    "end": "end",
    "size": "size",
    "alignment": "alignment",
    "hint": "hint",
    "gaps": "gaps",
    "offset": "offset",
}
_REQUIRED = ("id", "start", "end", "size")

# Rows, starts, ends, lowers, uppers: one value per gap.
GapColumns = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[int]]

# Only ASCII digits match, because int() would accept "1_000" and digits of every script.
_GAP = re.compile(r"(-?[0-9]{1,30})-(-?[0-9]{1,30})(?:@([0-9]{1,30}):([0-9]{1,30}))?")


@dataclass(frozen=True, slots=True)
class Header:
    """What the columns of a table mean."""

    # By field (`id`, `start`, `end`, `size`, ...): the name of its column in the table.
    names: dict[str, str]
    inclusive: bool  # whether the ends of lifetimes and gaps are inclusive

    @classmethod
    def of(cls, columns: Iterable[str]) -> Header:
        """Find the field that each column stands for.

        Raises
        ------
        ProblemError
            For an unknown, missing or ambiguous column.
        """
        names: dict[str, str] = {}
        for column in columns:
            field = _FIELD_OF.get(column)
            if field is None:
                known = ", ".join(_FIELD_OF)
                raise ProblemError(f"unknown column {quoted(column)}; known are {known}")
            if field in names:
                if column == names[field]:
                    raise ProblemError(f"column {quoted(column)} occurs twice")
                raise ProblemError(
                    f"columns {quoted(names[field])} and {quoted(column)} mean the same"
                )
            names[field] = column
        for field in _REQUIRED:
            if field not in names:
                options = " or ".join(name for name, means in _FIELD_OF.items() if means == field)
                raise ProblemError(f"column {options} is missing")
        return cls(names, names["end"] == "end")


def is_header(names: Iterable[str]) -> bool:
    """Return whether these are the columns of a table of buffers, if not all of them are right."""
    return sum(name in _FIELD_OF for name in names) > 1


def parse_gaps(cells: Iterable[str], inclusive: bool, label: Label) -> GapColumns:
    """Parse cells such as `3-7@0:128 9-12` into the gap columns of `Problem.from_arrays`.

    Raises
    ------
    ProblemError
        For the first text that is not a gap.
    """
    gaps: list[tuple[int, int, int, int, int]] = []
    for row, cell in enumerate(cells):
        for text in cell.split():
            match = _GAP.fullmatch(text)
            if match is None:
                raise ProblemError(
                    f"{label(row)}: gaps has {quoted(text)}; "
                    "a gap is start-end or start-end@lower:upper, as in 3-7@0:128",
                    row=row,
                    field="gaps",
                )
            start, end, lower, upper = match.groups()
            window = (NONE, NONE) if lower is None else (int(lower), int(upper))
            gaps.append((row, int(start), int(end) + inclusive, *window))
    buffer, start_, end_, lower_, upper_ = zip(*gaps, strict=True) if gaps else ((),) * 5
    return buffer, start_, end_, lower_, upper_


def format_gap(start: int, end: int, lower: int, upper: int, inclusive: bool) -> str:
    """Write one gap as `parse_gaps` reads it; `lower` is -1 where there is no window."""
    window = "" if lower == NONE else f"@{lower}:{upper}"
    return f"{start}-{end - inclusive}{window}"


def frame_columns(frame: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of a data frame as `Problem.from_arrays` takes them, and the ids."""
    try:
        header = Header.of([str(name) for name in frame.columns])
        arrays = {field: frame[name].to_numpy() for field, name in header.names.items()}
    except (AttributeError, TypeError):
        raise ProblemError(
            f"a {type(frame).__name__} is no frame; from_frame needs .columns and [name].to_numpy()"
        ) from None
    ids = [str(name) if type(name) is int else name for name in arrays.pop("id").tolist()]

    def label(row: int) -> str:
        return f"buffer {quoted(str(ids[row]))}"

    columns = {"pin" if field == "offset" else field: array for field, array in arrays.items()}
    if header.inclusive:
        columns["end"] = int_column(columns["end"], "end", label) + 1
    if "gaps" in columns:
        # Missing cells are None, or NaN, which is the one value that differs from itself.
        cells = (cell if isinstance(cell, str) else "" for cell in columns["gaps"].tolist())
        columns["gaps"] = parse_gaps(cells, header.inclusive, label)
    return columns, ids
