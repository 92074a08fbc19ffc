"""Rows as tables for people and as files for programs."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, astuple, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memplan.base.errors import FormatError
from memplan.base.files import read_text, write_bytes
from memplan.problem.plan import restate
from memplan.view.units import seconds
from memplan_lab.bench import tables
from memplan_lab.bench.rows import COLUMNS, Row
from memplan_lab.bench.summary import Comparison, Summary, by_suite, compare, summarise
from memplan_lab.bench.tables import DASH, terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

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


def table(rows: Sequence[Row]) -> RenderableType:
    """Return a table for each suite, one line a solver.

    Times are wall clock but for `CPU`, the sum of CPU time; `peak/bound` is mean and worst over
    the solved cases; `x CPU` is the CPU time over that of the first solver.
    """
    return _tables(
        {
            suite: [_summary_cells(one) for one in summarise(group)]
            for suite, group in by_suite(rows).items()
        },
        _SUMMARY,
        left=(0,),
    )


def details(rows: Sequence[Row]) -> RenderableType:
    """Return a table for each suite, one line a row."""
    return _tables(
        {suite: [_detail_cells(row) for row in group] for suite, group in by_suite(rows).items()},
        _DETAIL,
        left=(0, 1, 3, 10),
    )


def comparison(rows: Sequence[Row]) -> RenderableType:
    """Return a table for each suite: the first solver over each other one, by CPU, peak and nodes.

    Geometric mean and worst case, over the cases that both solved; below 1 the first is better.
    `speed-up` is the median of the other's CPU over the first's, also where the other failed.
    """
    return _tables(
        {
            suite: [_comparison_cells(one) for one in compare(group)]
            for suite, group in by_suite(rows).items()
        },
        _COMPARISON,
        left=(0, 1),
    )


def markdown(rows: Iterable[Row]) -> str:
    """Return the lines of `table` for all suites as one Markdown table."""
    lines = [(one.suite, *_summary_cells(one)) for one in summarise(rows)]
    return tables.markdown(("suite", *_SUMMARY), lines, left=(0,))


def write(rows: Iterable[Row], path: str | os.PathLike[str]) -> None:
    """Write rows to a file: `.csv`, or `.parquet`; all of it or nothing.

    Raises
    ------
    FormatError
        For another suffix, or if the file cannot be written.
    """
    check_file(path)
    write_bytes(os.fspath(path), _WRITERS[_suffix(path)](list(rows)))


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse before hours of work a file that `write` would refuse after them."""
    if _suffix(path) not in _WRITERS:
        raise FormatError(
            os.fspath(path), "results are written as .csv or .parquet; choose one by the suffix"
        )


def _suffix(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.fspath(path))[1].lower()


# Files -----------------------------------------------------------------------------------------


def _csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue().encode()


def _parquet(rows: list[Row]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Types are given and not inferred, so that a column has the same type where it is empty.
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    schema = pa.schema([(f.name, types[str(f.type).split(" ")[0]]) for f in fields(Row)])
    columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), sink)
    return sink.getvalue()


_WRITERS = {".csv": _csv, ".parquet": _parquet}


def read(path: str | os.PathLike[str]) -> list[Row]:
    """Read what `write` wrote, also in an older release, which had fewer columns."""
    reader = {".csv": _read_csv, ".parquet": _read_parquet}.get(_suffix(path))
    if reader is None:
        raise FormatError(
            os.fspath(path),
            "is not a result; give folders of memplan-lab sweep, or .csv and .parquet of bench",
        )
    rows = [Row(**values) for values in reader(Path(path))]
    return [
        replace(row, status=restate(row.status, row.objective == "fit", row.peak, row.lower_bound))
        for row in rows
    ]


_KINDS = {"str": str, "int": int, "float": float}
_TYPES = {field.name: _KINDS[str(field.type).split(" ")[0]] for field in fields(Row)}
_NEEDED = {field.name for field in fields(Row) if field.default is MISSING}


def _read_csv(path: Path) -> Iterator[dict[str, Any]]:
    lines = csv.reader(io.StringIO(read_text(path)))
    names = next(lines, [])
    _check_columns(path, names)
    for cells in lines:
        try:
            yield {
                name: _TYPES[name](cell) if cell or _TYPES[name] is str else None
                for name, cell in zip(names, cells, strict=True)
            }
        except ValueError as error:
            raise FormatError(str(path), f"is damaged: {error}", line=lines.line_num) from None


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(path).read()
    except (OSError, ValueError) as error:  # of pyarrow, which have these among their bases
        reason = " ".join(str(error).split())
        raise FormatError(str(path), f"the file cannot be read: {reason}") from None
    _check_columns(path, table.column_names)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    if not _NEEDED <= set(columns) <= set(COLUMNS):
        raise FormatError(
            str(path), f"does not have the columns of a benchmark: {', '.join(COLUMNS)}"
        )


# Cells -----------------------------------------------------------------------------------------


def _tables(
    lines: dict[str, list[tuple[str, ...]]], headings: Sequence[str], left: Sequence[int]
) -> RenderableType:
    from rich.console import Group

    return Group(*(terminal(suite, headings, cells, left) for suite, cells in lines.items()))


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
