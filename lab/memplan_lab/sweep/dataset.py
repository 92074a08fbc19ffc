"""The folder of a sweep while it is written: by one process, and readable at any time.

About once a second, new rows become a new file. It is written under another name and then renamed,
so a reader sees a complete file or none. Small files are merged into one from time to time, and at
the end.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import memplan
from memplan.base.errors import FormatError
from memplan.base.files import write_bytes, write_text
from memplan_lab.sweep.results import (
    FORMAT,
    METADATA,
    ROWS,
    Result,
    read,
    read_metadata,
    schema,
    table,
)
from memplan_lab.sweep.tasks import Settings

_PAUSE = 1.0  # seconds between two files: what a kill of this process costs at most
_MANY = 200  # files of one solver
_LOCK = ".lock"


def check(folder: Path, settings: Settings, *, resume: bool) -> None:
    """Refuse a folder to which these results cannot be added."""
    name = os.fspath(folder)
    if folder.exists() and not folder.is_dir():
        raise FormatError(name, "is a file; name a folder for the results")
    if (folder / METADATA).exists() and not resume:
        raise FormatError(
            name, "already holds a sweep; continue it with --resume, or name another folder"
        )
    if resume:
        _check_same(name, read_metadata(folder), settings)
    elif folder.is_dir() and any(each.name != _LOCK for each in folder.iterdir()):
        raise FormatError(name, "is neither empty nor a sweep; name another folder")


def _check_same(name: str, about: Mapping[str, Any], settings: Settings) -> None:
    made_by = about.get("memplan")
    if made_by != memplan.__version__:
        raise FormatError(
            name,
            f"was started with memplan {made_by}, and this is {memplan.__version__}; "
            "their results are not comparable, so name another folder",
        )
    was, now = about["settings"], settings.as_json()
    other = [
        f"{field} {_words(was.get(field))} and not {_words(value)}"
        for field, value in now.items()
        if was.get(field) != value
    ]
    if other:
        raise FormatError(
            name,
            f"was started with {', '.join(other)}; give the same options, or name another folder",
        )


def _words(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


class Dataset:
    """A folder of results, locked while it is open."""

    def __init__(self, folder: Path, settings: Settings, total: int) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(folder / _LOCK, "a+")  # noqa: SIM115 (held until `close`)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise FormatError(
                os.fspath(folder), f"the folder cannot be written: {reason}"
            ) from None
        try:
            self._take_lock()
            self._about = self._first_metadata(settings, total)
            self.done: set[str] = set()
            if (folder / METADATA).exists():
                self._about = read_metadata(folder)
                self.done = set(read(folder)["key"].to_pylist())
        except BaseException:
            self._lock.close()
            raise
        self._rows: dict[str, list[Result]] = {}
        self._written_at = time.monotonic()

    def _take_lock(self) -> None:
        try:
            # The system releases this lock when the process dies, however it dies.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read().strip() or "another process"
            raise FormatError(
                os.fspath(self._folder), f"is being written by {holder}; wait until it ends"
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()} of {os.uname().nodename}\n")
        self._lock.flush()

    @staticmethod
    def _first_metadata(settings: Settings, total: int) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "memplan": memplan.__version__,
            "settings": settings.as_json(),
            "total": total,
            "sessions": [],
        }

    def begin(self, session: Mapping[str, Any]) -> None:
        """Record the command, versions and machines of this session."""
        self._about["sessions"].append(dict(session))
        write_text(self._folder / METADATA, json.dumps(self._about, indent=2) + "\n")

    def add(self, result: Result) -> None:
        """Take a row; `tick` writes it."""
        self._rows.setdefault(result.solver, []).append(result)
        self.done.add(result.key)

    def tick(self) -> None:
        """Write the new rows, if the last time was long enough ago."""
        if self._rows and time.monotonic() - self._written_at >= _PAUSE:
            self.flush()

    def flush(self) -> None:
        """Write the new rows."""
        for solver in list(self._rows):
            folder = self._folder / ROWS / f"solver={quote(solver, safe='')}"
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder, table(self._rows[solver]))
            del self._rows[solver]
            if len(_parts(folder)) > _MANY:
                _merge(folder)
        self._written_at = time.monotonic()

    def compact(self) -> None:
        """Write the new rows, and merge all files into one for each solver."""
        self.flush()
        for folder in sorted((self._folder / ROWS).glob("solver=*")):
            _merge(folder)

    def close(self) -> None:
        """Write the new rows, and unlock the folder."""
        try:
            self.flush()
        finally:
            self._lock.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _merge(folder: Path) -> None:
    """Merge all files into one, each key once; remove files that a kill left incomplete."""
    for left in folder.glob(".*.tmp"):
        left.unlink()
    parts = _parts(folder)
    if len(parts) < 2:
        return
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.concat_tables([parquet.ParquetFile(part).read() for part in parts])
    _write(folder, _first_of_each_key(rows))
    for part in parts:
        part.unlink()


def _first_of_each_key(rows: Any) -> Any:
    first: dict[str, int] = {}
    for at, key in enumerate(rows["key"].to_pylist()):
        first.setdefault(key, at)
    return rows.take(list(first.values()))


def _write(folder: Path, rows: Any) -> None:
    """Write rows as one more file in the folder of the solver."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = [name for name in schema().names if name != "solver"]
    sink = pa.BufferOutputStream()
    parquet.write_table(rows.select(columns), sink, compression="zstd")
    write_bytes(folder / f"part-{secrets.token_hex(8)}.parquet", sink.getvalue())
