"""A problem as bytes, which the runner sends to the processes that solve.

It is not a format for users: it has no version, and the same release writes and reads it. A million
buffers as text would take longer to read than to plan.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np

from memplan.problem import Problem
from memplan.problem.conflicts import Conflicts

_COLUMNS = ("start", "end", "size", "alignment", "pin", "hint", "group", "lead")
_GAP_COLUMNS = ("gap_buffer", "gap_start", "gap_end", "gap_lower", "gap_upper")


def pack(problem: Problem) -> bytes:
    """Return a problem as the bytes of an `.npz` file, without pickles."""
    file = BytesIO()
    columns = {name: getattr(problem, name) for name in _COLUMNS + _GAP_COLUMNS}
    capacity = [] if problem.capacity is None else [problem.capacity]
    reserved = [(r.lower, r.upper) for r in problem.reserved]
    numbered = problem.ids == tuple(map(str, range(len(problem))))
    np.savez(
        file,
        ids=np.array([] if numbered else problem.ids, dtype=np.str_),
        capacity=np.array(capacity, dtype=np.int64),
        reserved=np.array(reserved, dtype=np.int64).reshape(-1, 2),
        conflict_begin=problem.conflicts.begin,
        conflict_other=problem.conflicts.other,
        **columns,
    )
    return file.getvalue()


def unpack(packed: bytes) -> Problem:
    """Return the problem of which `pack` made these bytes."""
    with np.load(BytesIO(packed), allow_pickle=False) as columns:
        start, end, size, alignment, pin, hint, group, lead = (columns[name] for name in _COLUMNS)
        gaps = tuple(columns[name] for name in _GAP_COLUMNS)
        return Problem.from_arrays(
            start,
            end,
            size,
            ids=columns["ids"].tolist() or None,
            alignment=alignment,
            pin=pin,
            hint=hint,
            gaps=gaps if len(gaps[0]) else None,
            capacity=int(columns["capacity"][0]) if len(columns["capacity"]) else None,
            reserved=[(int(lower), int(upper)) for lower, upper in columns["reserved"]],
            conflicts=Conflicts.of_rows(columns["conflict_begin"], columns["conflict_other"]),
            groups=(group, lead),
        )
