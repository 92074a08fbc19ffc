"""Records as a table of Arrow, and back: a row for each problem, whose columns are lists.

    name, family, fingerprint, provenance       which problem it is, and how it was made
    n, sections, max_load, ...                  its features
    best_peak, best_proved                      the least peak that was known when it was written
    capacity, start, end, size                  the problem; lists have a value for each buffer
    alignment, pin, ..., gap_buffer, ...        the same, and null where all is as usual

The table has no names of buffers: they would be most of the file, and no solver reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.intake import GAP_COLUMNS

if TYPE_CHECKING:
    from memplan_lab.bench.records import Record

SCHEMA = 1  # the version of columns and their meaning; a reader knows one

COUNTS = ("n", "sections", "max_load", "largest_alignment", "conflicts")
RATIOS = ("density", "tight_share", "sum_over_load")
PROFILE = "load_profile"
FEATURES = (*COUNTS, *RATIOS, PROFILE)

_TEXTS = ("name", "family", "fingerprint")
_PLACES = ("start", "end", "size")
_USUAL = {"alignment": 1, "pin": NONE, "hint": NONE, "group": NONE, "lead": 0}
_CONFLICTS = ("conflict_first", "conflict_second")
_RESERVED = ("reserved_lower", "reserved_upper")

SCALARS = (*_TEXTS, "provenance", *FEATURES, "best_peak", "best_proved", "capacity")
LISTS = (*_PLACES, *_USUAL, *GAP_COLUMNS, *_CONFLICTS, *_RESERVED)


def schema() -> Any:
    """Return the columns and their types, as `pyarrow.Schema`."""
    import pyarrow as pa

    types = {
        **dict.fromkeys(_TEXTS, pa.string()),
        "provenance": pa.map_(pa.string(), pa.string()),
        **dict.fromkeys(COUNTS, pa.int64()),
        **dict.fromkeys(RATIOS, pa.float64()),
        PROFILE: pa.list_(pa.float32()),
        "best_peak": pa.int64(),
        "best_proved": pa.bool_(),
        "capacity": pa.int64(),
        **dict.fromkeys(LISTS, pa.list_(pa.int64())),
    }
    return pa.schema(list(types.items()))


def table(records: Iterable[Record]) -> Any:
    """Return records as a `pyarrow.Table`, in their order."""
    import pyarrow as pa

    rows = [_row(record) for record in records]
    columns = [pa.array([row[one.name] for row in rows], one.type) for one in schema()]
    return pa.Table.from_arrays(columns, schema=schema())


def _row(record: Record) -> dict[str, Any]:
    problem = record.problem.without_names()
    usual = {
        name: None if (column == value).all() else column
        for name, value in _USUAL.items()
        for column in [getattr(problem, name)]
    }
    return {
        "name": record.name,
        "family": record.family,
        "fingerprint": problem.fingerprint,
        "provenance": sorted(record.provenance.items()),
        **{name: record.features[name] for name in FEATURES},
        "best_peak": record.best_peak,
        "best_proved": record.best_proved,
        "capacity": problem.capacity,
        **{name: getattr(problem, name) for name in _PLACES},
        **usual,
        **{name: getattr(problem, name) if problem.has_gaps else None for name in GAP_COLUMNS},
        **_columns(_CONFLICTS, problem.conflicts.pairs()),
        **_columns(_RESERVED, np.array([(r.lower, r.upper) for r in problem.reserved], np.int64)),
    }


def _columns(names: Sequence[str], pairs: Any) -> dict[str, Any]:
    return dict(zip(names, pairs.T if len(pairs) else (None, None), strict=True))


def problem_of(columns: Mapping[str, Any], capacity: int | None) -> Problem:
    """Return the problem of a row."""
    count = len(columns["start"])
    group, lead = (
        np.full(count, _USUAL[name]) if columns[name] is None else columns[name]
        for name in ("group", "lead")
    )
    return Problem.from_arrays(
        *(columns[name] for name in _PLACES),
        alignment=columns["alignment"],
        pin=columns["pin"],
        hint=columns["hint"],
        gaps=None if columns["gap_buffer"] is None else [columns[name] for name in GAP_COLUMNS],
        capacity=capacity,
        reserved=[tuple(pair) for pair in _pairs(columns, _RESERVED).tolist()],
        conflicts=_pairs(columns, _CONFLICTS),
        groups=(group, lead),
    )


def _pairs(columns: Mapping[str, Any], names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return two columns as pairs, shape (m, 2)."""
    first, second = (columns[name] for name in names)
    return np.empty((0, 2), np.int64) if first is None else np.stack([first, second], axis=1)


def checksum(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return `sha256:` and 64 digits over rows of `SCALARS`, fingerprints of problems included."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps([row[name] for name in SCALARS]).encode() + b"\n")
    return f"sha256:{digest.hexdigest()}"
