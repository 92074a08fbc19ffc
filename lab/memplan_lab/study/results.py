"""Results as the study sees them: one run for each problem, capacity and solver.

They come from the datasets of `memplan-lab sweep` and from the files of `memplan-lab bench --out`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import pstdev
from typing import Any

from memplan.errors import FormatError, MemplanError
from memplan.files import read_text
from memplan.solvers.registry import SOLVERS
from memplan_lab.bench.rows import COLUMNS, Row
from memplan_lab.study.about import About, of_sweep

__all__ = ["Results", "Run", "read"]


@dataclass(frozen=True, slots=True)
class Run(Row):
    """A row of a benchmark, and what a sweep knows beside that.

    Attributes
    ----------
    suite
        With its capacity, where a share of something was asked for: `corpus at 110 % of the best`.
    base
        The suite alone.
    fingerprint
        Of the problem; empty where the results do not say.
    timeout_s, seed
        Of the solve; `None` where the results do not say.
    backtracks
        As the solver counts them, or `None`.
    spread_s, repeats
        Standard deviation of the CPU time over the repetitions, and how many there were.
    """

    base: str = ""
    fingerprint: str = ""
    timeout_s: float | None = None
    seed: int | None = None
    backtracks: int | None = None
    spread_s: float = 0.0
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Results:
    """All that was read: runs by suite, problem and solver, and where they are from."""

    runs: Sequence[Run]
    about: Sequence[About]


def read(sources: Iterable[str | os.PathLike[str]]) -> Results:
    """Read folders of sweeps, and files of benchmarks (`.csv`, `.parquet`).

    Repetitions become one run: that of the median CPU time speaks for all.

    Raises
    ------
    FormatError
        If something cannot be read, or is neither.
    MemplanError
        If there is no row in all of it, or two sources have the same solver on the same problem
        under other limits.
    MissingExtraError
        For a folder or Parquet, if pyarrow is not installed.
    """
    runs: list[Run] = []
    about: list[About] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            from memplan_lab import sweep

            runs += map(_of_sweep, sweep.read(path).to_pylist())
            about.append(of_sweep(path.resolve().name, sweep.read_metadata(path)))
        else:
            runs += _of_bench(path)
            about.append(About(path.name, {}))
    if not runs:
        names = ", ".join(one.source for one in about)
        raise MemplanError(f"{names}: no result to report; run or resume the sweep first")
    return Results(sorted(_folded(runs), key=_place), about)


# Sweeps ------------------------------------------------------------------------------------------


def _of_sweep(row: Mapping[str, Any]) -> Run:
    bound = max(row["max_load"], row["lower_bound"] or 0)
    peak = row["peak"]
    return Run(
        suite=row["suite"] + _capacity(row["capacity_ratio"], row["capacity_base"]),
        case=row["instance"],
        n=row["n"],
        solver=":".join(filter(None, (row["solver"], row["options"]))),
        objective=row["objective"],
        status=row["status"],
        peak=peak,
        max_load=row["max_load"],
        lower_bound=bound,
        ratio=None if peak is None else peak / bound if bound else 1.0,
        wall_s=row["wall_s"],
        cpu_s=row["cpu_s"],
        wall_min_s=row["wall_s"],
        cpu_min_s=row["cpu_s"],
        peak_rss_mib=row["peak_rss_mib"],
        nodes=row["nodes"],
        restarts=row["restarts"],
        error=row["error"],
        base=row["suite"],
        fingerprint=row["fingerprint"],
        timeout_s=row["timeout"],
        seed=row["seed"],
        backtracks=row["backtracks"],
    )


def _capacity(ratio: float | None, of: str | None) -> str:
    """Return what is said of a capacity behind the name of a suite: nothing of a problem's own."""
    if ratio is None or (of == "own" and ratio == 1):
        return ""
    words = {"own": "its capacity", "best": "the best peak", "bound": "a bound"}
    return f" at {100 * ratio:g} % of {words.get(of or '', of)}"


# Benchmarks --------------------------------------------------------------------------------------

_KINDS = {"str": str, "int": int, "float": float}
_TYPES = {field.name: _KINDS[str(field.type).split(" ")[0]] for field in fields(Row)}


def _of_bench(path: Path) -> Iterator[Run]:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return map(_of_row, _csv_rows(path))
    if suffix == ".parquet":
        return map(_of_row, _parquet_rows(path))
    raise FormatError(
        str(path), "is no result: give folders of memplan-lab sweep, or .csv and .parquet of bench"
    )


def _of_row(row: Mapping[str, Any]) -> Run:
    return Run(**row, base=row["suite"])


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    lines = csv.reader(io.StringIO(read_text(path)))
    _check_columns(path, next(lines))
    for cells in lines:
        try:
            yield {
                name: kind(cell) if cell or kind is str else None
                for (name, kind), cell in zip(_TYPES.items(), cells, strict=True)
            }
        except ValueError as error:
            raise FormatError(str(path), f"is damaged: {error}", line=lines.line_num) from None


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(path).read()
    except (OSError, ValueError) as error:  # of pyarrow, which have these among their bases
        reason = " ".join(str(error).split())
        raise FormatError(str(path), f"cannot be read: {reason}") from None
    _check_columns(path, table.column_names)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    if tuple(columns) != COLUMNS:
        raise FormatError(str(path), f"has not the columns of a benchmark: {', '.join(COLUMNS)}")


# Repetitions -------------------------------------------------------------------------------------


def _folded(runs: Iterable[Run]) -> Iterator[Run]:
    repeats: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        repeats.setdefault((run.suite, run.case, run.solver), []).append(run)
    for (suite, case, solver), each in repeats.items():
        if len({(run.fingerprint, run.timeout_s, run.seed) for run in each}) > 1:
            raise MemplanError(
                f"{solver} on {case} of {suite} is in the results with different problems, limits "
                "or seeds; report them apart"
            )
        times = sorted(run.cpu_s for run in each if run.cpu_s is not None)
        speaker = min(each, key=lambda run: _distance(run, times))
        yield replace(speaker, spread_s=pstdev(times) if times else 0.0, repeats=len(each))


def _distance(run: Run, times: Sequence[float]) -> float:
    """Return how far a run is from the (lower) median of the times; what has none is last."""
    if run.cpu_s is None:
        return float("inf")
    return abs(run.cpu_s - times[(len(times) - 1) // 2])


_RANK = {name: at for at, name in enumerate(SOLVERS)}


def _place(run: Run) -> tuple[object, ...]:
    """Return where a run stands in the order of a report: solvers as the registry has them."""
    name, _, options = run.solver.partition(":")
    return run.suite, run.case, _RANK.get(name, len(_RANK)), name, options
