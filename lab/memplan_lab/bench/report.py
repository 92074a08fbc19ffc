"""Rows as tables for people and as files for programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from typing import Any

from memplan.base.errors import FormatError
from memplan.problem.plan import restate
from memplan.view.units import seconds
from memplan_lab.bench import files
from memplan_lab.bench.rows import COLUMNS, Row
from memplan_lab.bench.summary import Comparison, Summary, by_suite, compare, summarise
from memplan_lab.bench.tables import DASH, Shown

_SUMMARY = ("solver", "solved", "optimal", "median", "worst", "sum", "CPU", "peak/bound", "x CPU")
_DETAIL = (
    "case",
    "solver",
    "n",
    "status",
    "peak",
    "peak/bound",
    "wall",
    "CPU",
    "CPU/node",
    "MiB",
    "note",
)
_COMPARISON = (
    "first",
    "other",
    "both",
    "only first",
    "only other",
    "CPU",
    "worst",
    "peak",
    "worst",
    "speed-up",
    "nodes",
)


def table(rows: Sequence[Row]) -> list[Shown]:
    """Return a table for each suite, one line a solver.

    Times are wall clock but for `CPU`, the sum of CPU time; `peak/bound` is mean and worst over
    the solved cases; `x CPU` is the CPU time over that of the first solver.
    """
    return [
        Shown(suite, _SUMMARY, [_summary_cells(one) for one in summarise(group)])
        for suite, group in by_suite(rows).items()
    ]


def details(rows: Sequence[Row]) -> list[Shown]:
    """Return a table for each suite, one line a row."""
    return [
        Shown(suite, _DETAIL, [_detail_cells(row) for row in group], (0, 1, 3, 10))
        for suite, group in by_suite(rows).items()
    ]


def comparison(rows: Sequence[Row]) -> list[Shown]:
    """Return a table for each suite: the first solver over each other one, by CPU, peak and nodes.

    Geometric mean and worst case, over the cases that both solved; below 1 the first is better.
    `speed-up` is the median of the other's CPU over the first's, also where the other failed.
    """
    return [
        Shown(suite, _COMPARISON, [_comparison_cells(one) for one in compare(group)], (0, 1))
        for suite, group in by_suite(rows).items()
    ]


def in_one(rows: Iterable[Row]) -> Shown:
    """Return the lines of `table` for all suites as one."""
    lines = [(one.suite, *_summary_cells(one)) for one in summarise(rows)]
    return Shown("Suites", ("suite", *_SUMMARY), lines)


_KINDS = {"str": str, "int": int, "float": float}
_TYPES = {field.name: str(field.type).split(" ")[0] for field in fields(Row)}
_NEEDED = {field.name for field in fields(Row) if field.default is MISSING}


def write(rows: Iterable[Row], path: str | os.PathLike[str]) -> None:
    """Write rows to a file: `.csv`, or `.parquet`; all of it or nothing.

    Raises
    ------
    FormatError
        For another suffix, or if the file cannot be written.
    """
    files.write([asdict(row) for row in rows], path, types=_TYPES)


def read(path: str | os.PathLike[str]) -> list[Row]:
    """Read what `write` wrote, also in an older release, which had fewer columns.

    Raises
    ------
    FormatError
        If the file is none of a benchmark, or damaged.
    MissingExtraError
        For Parquet, if PyArrow is not installed.
    """
    return make_rows(path, files.read(path))


def make_rows(path: str | os.PathLike[str], read: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return what a file holds of solvers on problems."""
    rows = []
    for number, values in enumerate(read, 2):
        if not values.keys() >= _NEEDED:
            columns = ", ".join(COLUMNS)
            raise FormatError(
                os.fspath(path), f"does not have the columns of a benchmark: {columns}"
            )
        try:
            row = Row(**{name: _read(name, values[name]) for name in COLUMNS if name in values})
        except ValueError as error:
            raise FormatError(os.fspath(path), f"is damaged: {error}", line=number) from None
        status = restate(row.status, row.objective == "fit", row.peak, row.lower_bound)
        rows.append(replace(row, status=status))
    return rows


def _read(name: str, value: Any) -> Any:
    """Return a value of a column; in CSV it is text."""
    if not isinstance(value, str) or _TYPES[name] == "str":
        return value
    return _KINDS[_TYPES[name]](value) if value else None


# Cells -----------------------------------------------------------------------------------------


def _summary_cells(one: Summary) -> tuple[str, ...]:
    ratio = DASH
    if one.ratio_mean is not None and one.ratio_worst is not None:
        ratio = f"{one.ratio_mean:.4f} / {one.ratio_worst:.4f}"
    return (
        one.solver,
        f"{one.solved}/{one.cases}",
        str(one.optimal),
        _time(one.wall_median),
        _time(one.wall_worst),
        _time(one.wall_sum),
        _time(one.cpu_sum),
        ratio,
        _factor(one.relative),
    )


def _detail_cells(row: Row) -> tuple[str, ...]:
    return (
        row.case,
        row.solver,
        f"{row.n:,}",
        row.status,
        DASH if row.peak is None else f"{row.peak:,}",
        DASH if row.ratio is None else f"{row.ratio:.4f}",
        _time(row.wall_s),
        _time(row.cpu_s),
        _time(row.step_s),
        DASH if row.peak_rss_mib is None else f"{row.peak_rss_mib:.0f}",
        row.error,
    )


def _comparison_cells(one: Comparison) -> tuple[str, ...]:
    return (
        one.first,
        one.other,
        str(one.both),
        str(one.only_first),
        str(one.only_other),
        _factor(one.cpu_mean),
        _factor(one.cpu_worst),
        DASH if one.peak_mean is None else f"{one.peak_mean:.4f}",
        DASH if one.peak_worst is None else f"{one.peak_worst:.4f}",
        _factor(one.speed_up),
        _factor(one.nodes_mean),
    )


def _time(value: float | None) -> str:
    return DASH if value is None else seconds(value)


def _factor(value: float | None) -> str:
    if value is None:
        return DASH
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
