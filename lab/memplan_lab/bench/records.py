"""The corpus: problems of real networks, each with its origin and its least known peak.

    from memplan_lab import bench

    corpus = bench.corpus()
    for record in corpus.sample(20, seed=0):
        plan = memplan.solve(record.problem)
        print(record.name, plan.peak, record.best_peak)

It is one Parquet file, which any reader of Parquet can open; `record_table.py` describes its
columns. A problem is made when it is first used.
"""

from __future__ import annotations

import io
import json
import os
import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import accumulate
from typing import Any

from memplan.base.errors import FormatError, MemplanError, ProblemError, quoted
from memplan.base.files import reading, write_bytes
from memplan.problem import Problem
from memplan_lab.bench import best_known, record_table

__all__ = ["Corpus", "Record", "corpus", "write"]

Feature = int | float | Sequence[float]

_KEY = b"memplan.corpus"  # the key of the file's metadata
_ROWS = 64  # the rows in a group of the file, which are read together
_RISING = ("start", "end", "conflict_first", "conflict_second")
_LEVEL = 19  # of zstd: the file is written once and copied often


@dataclass(frozen=True)
class Record:
    """A problem of the corpus.

    Attributes
    ----------
    name
        Distinct in its corpus.
    family
        The origin: "timm", "transformers", ...
    problem
        The problem without a capacity, with numbered buffers.
    provenance
        How it was made, in words: the model, the library, batch, type of elements, ...
    features
        Numbers about its structure; `memplan_lab.corpus.features` describes them.
    best_peak
        The least known peak in bytes, from the file or from `memplan_lab.bench.best_known`.
    best_proved
        Whether it is proved that there is no smaller peak.
    """

    name: str
    family: str
    problem: Problem
    provenance: Mapping[str, str]
    features: Mapping[str, Feature]
    best_peak: int
    best_proved: bool


class Corpus:
    """Records of a file, in its order; made by `corpus`.

    Attributes
    ----------
    about
        The metadata of the file: "version", "checksum" (of the whole file, also in a sample),
        "licence", and in "libraries" the version by library.
    """

    about: Mapping[str, Any]

    def __init__(self, file: _File, rows: Sequence[int]) -> None:
        self.about = file.about
        self._file = file
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Record]:
        return map(self._file.record, self._rows)

    def __getitem__(self, name: str) -> Record:
        """Return a record by name.

        Raises
        ------
        MemplanError
            If there is no record of this name.
        FormatError
            If its columns are damaged.
        """
        if name not in self._row_of:
            raise MemplanError(f"the corpus has no problem {quoted(name)}")
        return self._file.record(self._row_of[name])

    def __contains__(self, name: object) -> bool:
        return name in self._row_of

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all records, in their order; this makes no problem."""
        return tuple(self._file.rows[row]["name"] for row in self._rows)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Of all records, in their order."""
        return tuple(self._file.rows[row]["family"] for row in self._rows)

    @cached_property
    def best_peaks(self) -> tuple[int, ...]:
        """Of all records, in their order."""
        return tuple(self._file.rows[row]["best_peak"] for row in self._rows)

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return dict(zip(self.names, self._rows, strict=True))

    def sample(self, n: int, seed: int = 0) -> Corpus:
        """Return `n` records, from each family its share; the same seed gives the same records.

        Raises
        ------
        MemplanError
            If `n` is below 1 or above the number of records.
        """
        if not 1 <= n <= len(self):
            raise MemplanError(
                f"a sample of {n} must be between 1 and {len(self)}, the size of the corpus"
            )
        strata: dict[str, list[int]] = {}
        for row, family in zip(self._rows, self.families, strict=True):
            strata.setdefault(family, []).append(row)
        draw = random.Random(seed)
        # The i-th of m records, in a random order of its stratum, stands between i / m and
        # (i + 1) / m, so that the first n of all have the share of each stratum, up to one record.
        placed = [
            ((at + draw.random()) / len(rows), row)
            for rows in strata.values()
            for at, row in enumerate(draw.sample(rows, len(rows)))
        ]
        return Corpus(self._file, sorted(row for _, row in sorted(placed)[:n]))

    def __repr__(self) -> str:
        return f"<Corpus: {len(self)} problems, version {self.about.get('version')}>"


def corpus(path: str | os.PathLike[str] | None = None) -> Corpus:
    """Open a corpus: that of the package, or a file of `memplan-lab corpus build`.

    Raises
    ------
    FormatError
        If there is no such file, or it is damaged or not a corpus that this version reads.
    MissingExtraError
        If pyarrow is not installed (extra `bench`).
    """
    if path is None:
        path = str(files("memplan_lab") / "data" / "corpus.parquet")
    file = _File(os.fspath(path))
    return Corpus(file, range(len(file.rows)))


def write(
    records: Iterable[Record], path: str | os.PathLike[str], about: Mapping[str, object]
) -> str:
    """Write records as a corpus, completely or not at all; return its checksum.

    Parameters
    ----------
    records
        Their names must be distinct. Names of buffers are dropped.
    path
        The file.
    about
        Metadata in addition to the schema and the checksum, as JSON.

    Raises
    ------
    FormatError
        If the file cannot be written.
    MissingExtraError
        If pyarrow is not installed.
    """
    from pyarrow import parquet

    table = record_table.table(records)
    total = record_table.checksum(table.select(record_table.SCALARS).to_pylist())
    text = json.dumps({"schema": record_table.SCHEMA, **about, "checksum": total}, sort_keys=True)
    sink = io.BytesIO()
    parquet.write_table(
        table.replace_schema_metadata({_KEY: text.encode()}),
        sink,
        row_group_size=_ROWS,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=["family", "provenance.key_value.key", "provenance.key_value.value"],
        # Times of neighbours differ little; sizes repeat from layer to layer, and zstd finds that.
        column_encoding={f"{name}.list.element": "DELTA_BINARY_PACKED" for name in _RISING},
        write_statistics=False,
    )
    write_bytes(path, sink.getvalue())
    return total


class _File:
    """A corpus in a file: scalars are in memory, lists are read by groups of rows."""

    def __init__(self, path: str) -> None:
        from pyarrow import parquet

        self.path = path
        with reading(path, _REMEDY), open(path, "rb") as file:
            data = file.read()
        try:
            self._parquet = parquet.ParquetFile(io.BytesIO(data))
            self.about: Mapping[str, Any] = _about(path, self._parquet)
            self.rows: list[dict[str, Any]] = self._parquet.read(
                columns=list(record_table.SCALARS)
            ).to_pylist()
        except FormatError:
            raise
        except Exception:  # Arrow, Thrift and zstd raise many kinds for damaged bytes
            raise FormatError(path, f"is damaged, or no Parquet file; {_REMEDY}") from None
        if record_table.checksum(self.rows) != self.about.get("checksum"):
            raise FormatError(path, f"is damaged: its checksum is wrong; {_REMEDY}")
        best_known.merge(self.rows)
        metadata = self._parquet.metadata
        groups = (metadata.row_group(at).num_rows for at in range(metadata.num_row_groups))
        self._begin = list(accumulate(groups, initial=0))
        self._group: tuple[int, Any] = (-1, None)

    def record(self, row: int) -> Record:
        """Return a record; raise `FormatError` if its columns are damaged."""
        values = self.rows[row]
        try:
            problem = record_table.problem_of(self._lists(row), values["capacity"])
            damaged = problem.fingerprint != values["fingerprint"]
        except (ProblemError, ValueError, OSError):
            damaged = True
        if damaged:
            name = quoted(values["name"])
            raise FormatError(self.path, f"is damaged in the problem {name}; {_REMEDY}")
        return Record(
            values["name"],
            values["family"],
            problem,
            dict(values["provenance"]),
            {name: values[name] for name in record_table.FEATURES},
            values["best_peak"],
            values["best_proved"],
        )

    def _lists(self, row: int) -> dict[str, Any]:
        group = bisect_right(self._begin, row) - 1
        if self._group[0] != group:
            columns = list(record_table.LISTS)
            self._group = (group, self._parquet.read_row_group(group, columns=columns))
        table = self._group[1]
        cells = {name: table[name][row - self._begin[group]] for name in record_table.LISTS}
        return {
            name: cell.values.to_numpy(zero_copy_only=False) if cell.is_valid else None
            for name, cell in cells.items()
        }


_REMEDY = "`memplan-lab corpus build` makes one"


def _about(path: str, file: Any) -> Mapping[str, Any]:
    """Return the metadata of the file; raise if it is not a corpus of memplan."""
    text = (file.schema_arrow.metadata or {}).get(_KEY)
    about = None if text is None else json.loads(text)
    if not isinstance(about, dict):
        raise FormatError(path, f"is no corpus of memplan; {_REMEDY}")
    if about.get("schema") != record_table.SCHEMA:
        raise FormatError(
            path,
            f"has schema {about.get('schema')} and this version of memplan reads "
            f"{record_table.SCHEMA}; {_REMEDY}",
        )
    if not file.schema_arrow.remove_metadata().equals(record_table.schema()):
        raise FormatError(path, f"has other columns than a corpus; {_REMEDY}")
    return about
