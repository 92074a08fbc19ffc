"""Rows of experiments as files: `.parquet`, with the machine and versions, or `.csv`."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError
from memplan.base.files import read_text, write_bytes

__all__ = ["check_file", "find_versions", "machine", "read", "write"]

_KEY = b"memplan.bench"  # of the metadata
_SUFFIXES = (".csv", ".parquet")


def machine() -> dict[str, Any]:
    """Return the facts about this machine that times depend on."""
    return {
        "host": platform.node(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def find_versions(libraries: Sequence[str]) -> dict[str, str | None]:
    """Return the version of each library; `None` where its import has another name, or none is."""
    found: dict[str, str | None] = {}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse before hours of work a file that `write` would refuse after them."""
    if _suffix(path) not in _SUFFIXES:
        raise FormatError(
            os.fspath(path), "results are written as .csv or .parquet; choose one by the suffix"
        )


def _suffix(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.fspath(path))[1].lower()


def write(
    rows: Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str],
    figures: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
) -> None:
    """Write rows to a file, all of it or nothing; in Parquet with what its columns are.

    Parameters
    ----------
    rows
        Their keys are the columns, in the order in which they first appear.
    path
        Its suffix says the format. CSV has lists and structures as JSON.
    figures
        By column: what it is, with its unit.
    types
        By column: "str", "int" or "float", so that a column without a value has its type, too.

    Raises
    ------
    FormatError
        For another suffix, or if the file cannot be written.
    """
    check_file(path)
    names = list(dict.fromkeys([*(types or ()), *(name for row in rows for name in row)]))
    data = _csv(rows, names) if _suffix(path) == ".csv" else _parquet(rows, names, figures, types)
    write_bytes(os.fspath(path), data)


def _csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = (row.get(name) for name in names)
        writer.writerow(
            json.dumps(cell) if isinstance(cell, list | tuple | dict) else cell for cell in cells
        )
    return text.getvalue().encode()


def _parquet(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    figures: Mapping[str, str] | None,
    types: Mapping[str, str] | None,
) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    arrow = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    columns = {
        name: pa.array([row.get(name) for row in rows], arrow.get((types or {}).get(name, "")))
        for name in names
    }
    about = {
        "figures": dict(figures or {}),
        "machine": machine(),
        "versions": find_versions(("memplan", "memplan-lab", "numpy", "pyarrow")),
        "command": sys.argv,
    }
    sink = io.BytesIO()
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(about)})
    parquet.write_table(table, sink)
    return sink.getvalue()


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read what `write` wrote; cells of CSV are text.

    Raises
    ------
    FormatError
        If the file is of another kind, or damaged.
    """
    if _suffix(path) == ".csv":
        lines = csv.reader(io.StringIO(read_text(os.fspath(path))))
        names = next(lines, [])
        try:
            return [dict(zip(names, cells, strict=True)) for cells in lines]
        except ValueError as error:
            raise FormatError(
                os.fspath(path), f"is damaged: {error}", line=lines.line_num
            ) from None
    if _suffix(path) != ".parquet":
        raise FormatError(
            os.fspath(path),
            "is not a result; give folders of memplan-lab sweep, or .csv and .parquet of bench",
        )
    from pyarrow import parquet

    try:
        rows: list[dict[str, Any]] = parquet.ParquetFile(path).read().to_pylist()
    except (OSError, ValueError) as error:  # of pyarrow, which have these among their bases
        reason = " ".join(str(error).split())
        raise FormatError(os.fspath(path), f"the file cannot be read: {reason}") from None
    return rows
