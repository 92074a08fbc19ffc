"""Results as the study sees them: one run for each problem, capacity and solver.

They come from the datasets of `memplan-lab sweep` and from the files of `memplan-lab bench`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import pstdev
from typing import Any

from memplan.base.errors import FormatError, MemplanError
from memplan.base.files import read_text
from memplan.solvers.registry import SOLVERS
from memplan_lab.bench import files, latency, report
from memplan_lab.bench.latency import Contention
from memplan_lab.bench.rows import COLUMNS, Row
from memplan_lab.learn import figures
from memplan_lab.learn.figures import Figures
from memplan_lab.study.about import About, of_sweep

__all__ = ["Results", "Run", "fold", "read"]


@dataclass(frozen=True, slots=True)
class Run(Row):
    """A row of a benchmark or a sweep that stands for all repetitions."""

    # spread_s, repeats: Standard deviation of the CPU time over the repetitions, and how many there
    # were.
    spread_s: float = 0.0
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Results:
    """All that was read: runs by suite, problem and solver, other measurements, and the sources."""

    # runs, about: Of all sources.
    runs: Sequence[Run]
    about: Sequence[About]
    # Of the experiments `latency` and `contention`, and of the files of `learn figures`.
    latency: Sequence[latency.Row] = ()
    contention: Sequence[Contention] = ()
    learned: Sequence[Figures] = ()


def read(sources: Iterable[str | os.PathLike[str]]) -> Results:
    """Read folders of sweeps, files of benchmarks (`.csv`, `.parquet`), and others (`.json`).

    Repetitions become one run: the one with the median CPU time.

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
    rows: list[Row] = []
    measured: list[latency.Row | Contention] = []
    learned: list[Figures] = []
    about: list[About] = []
    for source in sources:
        path = Path(source)
        if not path.exists():
            raise FormatError(str(path), "the file cannot be read: no such file or directory")
        if path.is_dir():
            from memplan_lab import sweep

            rows += sweep.read_rows(path)
            about.append(of_sweep(path.resolve().name, sweep.read_metadata(path)))
        else:
            if path.suffix == ".json":
                learned.append(_read_figures(path))
            else:
                found = files.read(path)
                made = [_MEASURED[row["experiment"]](row) for row in found if _is_measured(row)]
                measured += made
                rows += report.make_rows(path, (row for row in found if not _is_measured(row)))
            about.append(About(path.name, {}))
    if not rows and not measured and not learned:
        names = ", ".join(one.source for one in about)
        raise MemplanError(f"{names}: no result to report; run or resume the sweep first")
    return Results(
        sorted(fold(rows), key=_place),
        about,
        [row for row in measured if isinstance(row, latency.Row)],
        [row for row in measured if isinstance(row, Contention)],
        learned,
    )


_MEASURED: Mapping[str, Callable[[Mapping[str, Any]], latency.Row | Contention]] = {
    "latency": latency.Row.of,
    "contention": Contention.of,
}


def _is_measured(row: Mapping[str, Any]) -> bool:
    return row.get("experiment") in _MEASURED


def _read_figures(path: Path) -> Figures:
    """Return the figures of `learn figures`."""
    try:
        found = figures.read(json.loads(read_text(path)))
    except (KeyError, TypeError, ValueError):
        found = None
    if found is None:
        raise FormatError(str(path), "holds no figures of `memplan-lab learn figures`")
    return found


# Repetitions -------------------------------------------------------------------------------------


def fold(rows: Iterable[Row]) -> Iterator[Run]:
    """Yield one run for all repetitions of a solver on a problem."""
    repeats: dict[tuple[str, str, str], list[Row]] = {}
    for run in rows:
        repeats.setdefault((run.suite, run.case, run.solver), []).append(run)
    for (suite, case, solver), each in repeats.items():
        conditions = {(run.fingerprint, run.timeout_s, run.node_limit, run.seed) for run in each}
        if len(conditions) > 1:
            raise MemplanError(
                f"{solver} on {case} of {suite} appears in the results with different problems, "
                "limits or seeds; write separate reports"
            )
        times = sorted(run.cpu_s for run in each if run.cpu_s is not None)
        speaker = min(each, key=lambda run: _distance(run, times))
        values = {name: getattr(speaker, name) for name in COLUMNS}
        yield Run(**values, spread_s=pstdev(times) if times else 0.0, repeats=len(each))


def _distance(run: Row, times: Sequence[float]) -> float:
    """Return how far a run is from the (lower) median of the times; one without a time is last."""
    if run.cpu_s is None:
        return float("inf")
    return abs(run.cpu_s - times[(len(times) - 1) // 2])


_RANK = {name: at for at, name in enumerate(SOLVERS)}


def _place(run: Run) -> tuple[object, ...]:
    """Return a key for the order of a report, in which solvers stand as in the registry."""
    name, _, options = run.solver.partition(":")
    return run.suite, run.case, _RANK.get(name, len(_RANK)), name, options
