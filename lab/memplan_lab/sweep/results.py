"""The results of a sweep: a folder of rows, one for each task, and what made them.

    RESULTS/
      metadata.json                      settings, and for every session versions and machines
      rows/solver=auto/part-1a2b3c.parquet   one folder for each solver, as Hive partitions

Any reader of Parquet takes `RESULTS/rows` as it is:

    from memplan_lab import sweep

    table = sweep.read("RESULTS")       # a pyarrow.Table of `schema()`
    about = sweep.read_metadata("RESULTS")
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError
from memplan.base.files import read_text
from memplan.problem.plan import restate
from memplan_lab.bench.rows import Row

__all__ = ["FORMAT", "Result", "Task", "read", "read_metadata", "read_rows", "schema", "table"]

FORMAT = 1  # of the folder; other numbers are refused
METADATA = "metadata.json"
ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Task:
    """One solver on one problem, under one capacity, once.

    Attributes
    ----------
    key
        Of the task: 32 hexadecimal digits that no other task has (see `memplan_lab.sweep.tasks`).
    suite, instance, fingerprint, n, max_load
        The problem: its name in the suite, its number of buffers, and the most bytes held at once.
    solver, options
        `telamalloc:learned=on` is the solver `telamalloc` with the options `learned=on`; no options
        are an empty text.
    objective
        `fit` where there is a capacity, `min_peak` where there is none.
    capacity_ratio, capacity_base, capacity
        The capacity in bytes, and the share of what it is: of the `best` peak that is known, of
        the problem's `own` capacity, or of a lower `bound` where neither is there. None where the
        task had no capacity.
    timeout, node_limit, seed, repeat
        Seconds and search nodes for the solve (None: no limit of nodes), the seed of the solver,
        and which of the repetitions it is, from 0.
    """

    key: str
    suite: str
    instance: str
    fingerprint: str
    n: int
    max_load: int
    solver: str
    options: str
    objective: str
    capacity_ratio: float | None
    capacity_base: str | None
    capacity: int | None
    timeout: float
    node_limit: int | None
    seed: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Result(Task):
    """How the solver did.

    Attributes
    ----------
    status
        The status of the plan: `optimal`, `fits`, `feasible`, ... Or why there is none:
        `unsupported` (a constraint that the solver lacks), `invalid` (the plan breaks the problem),
        `failed` (twice: an error, a crash, too much memory or time, a worker that died).
    peak, lower_bound
        In bytes, as the solver says; None where there is none.
    nodes, backtracks, restarts
        As the solver counts them, or None.
    wall_s, cpu_s
        Seconds of the solve alone, not of reading the problem or checking the plan; `cpu_s` is of
        all threads together. A short solve is repeated in its process: then they are medians.
    runs, first_cpu_s, solve_s
        The number of runs, the CPU time of the first run, which is the cost in a program that plans
        once, and the wall clock of all runs together. None also in results of older releases.
    peak_rss_mib
        The largest resident memory of the process, in MiB.
    verified
        Whether the referee accepts the plan; None where there is none.
    error
        One sentence, or empty.
    attempt
        1, or 2 where the first one failed.
    worker
        The address of the worker, as `metadata.json` has it; empty where it died.
    started
        When the attempt began, by the clock of the worker (UTC).
    """

    status: str
    peak: int | None
    lower_bound: int | None
    nodes: int | None
    backtracks: int | None
    restarts: int | None
    wall_s: float | None
    cpu_s: float | None
    runs: int | None
    first_cpu_s: float | None
    solve_s: float | None
    peak_rss_mib: float | None
    verified: bool | None
    error: str
    attempt: int
    worker: str
    started: datetime


COLUMNS = tuple(field.name for field in fields(Result))


def schema() -> Any:
    """Return the `pyarrow.Schema` of the rows: the fields of `Result`, in their order."""
    import pyarrow as pa

    types = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema(
        [
            pa.field(each.name, types[kind], nullable=bool(optional))
            for each in fields(Result)
            for kind, optional, _ in [str(each.type).partition(" | ")]
        ]
    )


def table(results: list[Result]) -> Any:
    """Return rows as a `pyarrow.Table`, in their order."""
    import pyarrow as pa

    columns = [
        pa.array([getattr(row, field.name) for row in results], field.type) for field in schema()
    ]
    return pa.Table.from_arrays(columns, schema=schema())


def read(folder: str | os.PathLike[str]) -> Any:
    """Return all rows of a sweep as a `pyarrow.Table`, sorted by key: also while it runs.

    Raises
    ------
    FormatError
        If there is no sweep, or a file of it is damaged.
    MissingExtraError
        Without pyarrow.
    """
    import pyarrow as pa
    from pyarrow import dataset

    read_metadata(folder)
    rows = Path(folder) / ROWS
    if not rows.is_dir():  # it was killed before its first row
        return schema().empty_table()
    try:
        # A process killed while it writes leaves files with a dot before their names: no rows.
        found = dataset.dataset(
            rows,
            schema=schema(),
            format="parquet",
            partitioning=dataset.partitioning(pa.schema([("solver", pa.string())]), flavor="hive"),
        ).to_table()
    except (OSError, ValueError) as error:  # of pyarrow, which have these among their bases
        reason = " ".join(str(error).split())
        raise FormatError(str(rows), f"the file cannot be read: {reason}") from None
    return _drop_repeated(_restate(found.sort_by("key")))


def read_rows(folder: str | os.PathLike[str]) -> list[Row]:
    """Return all rows of a sweep as those of a benchmark are; errors are those of `read`."""
    return [_make_row(found) for found in read(folder).to_pylist()]


def _make_row(found: Mapping[str, Any]) -> Row:
    return Row.of(
        found,
        max_load=found["max_load"],
        suite=found["suite"] + _name_capacity(found["capacity_ratio"], found["capacity_base"]),
        case=found["instance"],
        n=found["n"],
        solver=":".join(filter(None, (found["solver"], found["options"]))),
        objective=found["objective"],
        wall_min_s=found["wall_s"],
        cpu_min_s=found["cpu_s"],
        fingerprint=found["fingerprint"],
        timeout_s=found["timeout"],
        node_limit=found["node_limit"],
        seed=found["seed"],
    )


def _name_capacity(ratio: float | None, of: str | None) -> str:
    """Return the text for a capacity that follows the name of a suite; none for a problem's own."""
    if ratio is None or (of == "own" and ratio == 1):
        return ""
    words = {"own": "its capacity", "best": "the best peak", "bound": "a bound"}
    return f" at {100 * ratio:g} % of {words.get(of or '', of)}"


def _restate(found: Any) -> Any:
    """Return a table with its statuses as they are called now."""
    import pyarrow as pa

    names = ("status", "objective", "peak", "lower_bound")
    rows = zip(*(found[name].to_pylist() for name in names), strict=True)
    said = [restate(status, asked == "fit", peak, bound) for status, asked, peak, bound in rows]
    at = found.schema.get_field_index("status")
    return found.set_column(at, found.schema.field(at), pa.array(said, pa.string()))


def _drop_repeated(found: Any) -> Any:
    """Return a table that is sorted by key with the first row of every key.

    Merged rows exist twice until the old files are removed, and stay so if the process dies before
    that.
    """
    keys = found["key"].to_pylist()
    kept = [at for at, key in enumerate(keys) if at == 0 or key != keys[at - 1]]
    return found if len(kept) == len(keys) else found.take(kept)


def read_metadata(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a sweep says of itself: "settings", "total" and "sessions"."""
    file = Path(folder) / METADATA
    if not file.exists():
        raise FormatError(os.fspath(folder), f"this is not a sweep: it has no {METADATA}")
    try:
        about = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise FormatError(
            str(file), f"the file is not JSON: {error.msg}", line=error.lineno
        ) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FormatError(str(file), f"this does not describe a sweep of format {FORMAT}")
    return about
