"""Checks every problem when it is made, vectorised; `docs/concepts.md` states the rules.

Solvers and the referee rely on these checks, so that no inner loop tests its input again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError, quoted, shown
from memplan.problem.columns import MAX_BYTES, MAX_TIME, NONE, Column
from memplan.problem.spans import first_overlap, first_shared, max_load, reserved_hit, spans

if TYPE_CHECKING:
    from memplan.problem import Problem, Reserved


def check_ids(ids: Sequence[str]) -> None:
    """Check that ids are distinct, non-empty and can be written as UTF-8."""
    if not set(map(type, ids)) <= {str}:
        row = next(i for i, name in enumerate(ids) if type(name) is not str)
        raise ProblemError(
            f"the id of buffer number {row} is {shown(ids[row])}; it must be a string",
            row=row,
            field="id",
        )
    if len(set(ids)) != len(ids):
        seen: dict[str, int] = {}
        for row, name in enumerate(ids):
            if seen.setdefault(name, row) != row:
                raise ProblemError(
                    f"buffer {quoted(name)}: the id occurs twice", row=row, field="id"
                )
    if "" in ids:
        row = ids.index("")
        raise ProblemError(f"the id of buffer number {row} is empty", row=row, field="id")
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        row = next(i for i, name in enumerate(ids) if any("\ud800" <= c <= "\udfff" for c in name))
        raise ProblemError(
            f"buffer {quoted(ids[row])}: the id is not valid Unicode", row=row, field="id"
        ) from None


def check_reserved(reserved: Sequence[Reserved]) -> None:
    """Check that reserved ranges, which must be sorted, are not empty and are disjoint."""
    for at, block in enumerate(reserved):
        if not 0 <= block.lower < block.upper <= MAX_BYTES:
            raise ProblemError(
                f"reserved range {block} must have 0 <= lower < upper <= 2^62",
                field="reserved",
            )
        if at and block.lower < reserved[at - 1].upper:
            raise ProblemError(
                f"reserved ranges {reserved[at - 1]} and {block} overlap", field="reserved"
            )


def check_capacity(capacity: int | None) -> None:
    """Check that a capacity is positive; `None` means that there is no limit."""
    if capacity is not None and not 1 <= capacity <= MAX_BYTES:
        raise ProblemError(
            f"capacity is {capacity}; it must be between 1 and 2^62, or left out", field="capacity"
        )


def check_columns(problem: Problem) -> None:
    """Check the lifetime, size, alignment and hint of each buffer."""
    start, end = problem.start, problem.end
    _check_range(problem, "start", -MAX_TIME, MAX_TIME, "between -2^62 and 2^62")
    _check_range(problem, "end", -MAX_TIME, MAX_TIME, "between -2^62 and 2^62")
    _reject(
        problem, end <= start, "end", lambda i: f"end is {end[i]}, not after start ({start[i]})"
    )
    _check_range(problem, "size", 0, MAX_BYTES, "between 0 and 2^62")
    if problem.has_alignment:
        _check_range(problem, "alignment", 1, MAX_BYTES, "between 1 and 2^62")
    if problem.has_hints:
        _check_range(problem, "hint", NONE, MAX_BYTES, "between 0 and 2^62, or -1 for none")


def check_gaps(problem: Problem) -> None:
    """Check that sorted gaps lie in lifetimes and do not overlap, and windows lie in buffers."""
    if not problem.has_gaps:
        return
    owner, start, end = problem.gap_buffer, problem.gap_start, problem.gap_end
    lower, upper, size = problem.gap_lower, problem.gap_upper, problem.size[problem.gap_buffer]

    def reject(bad: npt.NDArray[np.bool_], say: Callable[[int], str]) -> None:
        if bad.any():
            gap = int(bad.argmax())
            row, where = int(owner[gap]), f"gap [{start[gap]}, {end[gap]})"
            text = f"{problem.label(row)}: {where} {say(gap)}"
            raise ProblemError(text, row=row, field="gaps")

    reject(end <= start, lambda g: "is empty")
    reject(
        (start < problem.start[owner]) | (end > problem.end[owner]),
        lambda g: (
            f"is not inside the lifetime [{problem.start[owner[g]]}, {problem.end[owner[g]]})"
        ),
    )
    meets = np.zeros(len(owner), dtype=np.bool_)
    meets[1:] = (owner[1:] == owner[:-1]) & (start[1:] < end[:-1])
    reject(meets, lambda g: f"overlaps the gap [{start[g - 1]}, {end[g - 1]})")
    none = (lower == NONE) & (upper == NONE)
    reject(
        ~none & ((lower < 0) | (lower > upper) | (upper > size)),
        lambda g: f"has the window [{lower[g]}, {upper[g]}), which is not inside [0, {size[g]})",
    )


def check_load(problem: Problem) -> None:
    """Check that no time holds more than 2^62 bytes, so that sums of live sizes fit in 64 bits."""
    if problem.size.sum(dtype=np.float64) < MAX_BYTES / 2:
        return
    load = max_load(spans(problem))
    if load > MAX_BYTES:
        raise ProblemError(
            f"the buffers hold {load} bytes at one time; more than 2^62 is not supported",
            field="size",
        )


def check_pins(problem: Problem) -> None:
    """Check that pins are aligned and do not overlap; one above the capacity is a question."""
    if not problem.has_pins:
        return
    pin, size, unit = problem.pin, problem.size, problem.alignment
    pinned = pin != NONE
    _reject(
        problem,
        (pin < NONE) | (pin > MAX_BYTES - size),
        "pin",
        lambda i: f"pin is {pin[i]}; the buffer of {size[i]} bytes must lie between 0 and 2^62",
    )
    _reject(
        problem,
        pinned & (pin % unit != 0),
        "pin",
        lambda i: f"pin is {pin[i]}, not a multiple of the alignment ({unit[i]})",
    )
    if problem.reserved:
        block = reserved_hit(problem, pin)
        _reject(
            problem,
            pinned & (block >= 0),
            "pin",
            lambda i: f"pin {pin[i]} puts it on the reserved range {problem.reserved[block[i]]}",
        )
    held = spans(problem)
    overlap = first_overlap(held.keep(pinned[held.buffer]), pin)
    if overlap is not None:
        row, other = overlap.second, problem.label(overlap.first)
        raise ProblemError(
            f"{problem.label(row)}: its pin and that of {other} put both on bytes "
            f"[{overlap.lower}, {overlap.upper}) at time {overlap.time}",
            row=row,
            field="pin",
        )
    common = first_shared(problem, pin, np.flatnonzero(pinned))
    if common is not None:
        row, other = common.second, problem.label(common.first)
        raise ProblemError(
            f"{problem.label(row)}: its pin and that of {other}, with which it conflicts, put both "
            f"on bytes [{common.lower}, {common.upper})",
            row=row,
            field="pin",
        )


def _check_range(problem: Problem, field: str, low: int, high: int, allowed: str) -> None:
    column: Column = getattr(problem, field)
    bad = (column < low) | (column > high)
    _reject(problem, bad, field, lambda i: f"{field} is {column[i]}; it must be {allowed}")


def _reject(
    problem: Problem, bad: npt.NDArray[np.bool_], field: str, say: Callable[[int], str]
) -> None:
    """Raise for the first row that is `bad`; `say` describes what is wrong with it."""
    if bad.any():
        row = int(bad.argmax())
        raise ProblemError(f"{problem.label(row)}: {say(row)}", row=row, field=field)
