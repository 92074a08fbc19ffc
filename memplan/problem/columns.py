"""Converts what a caller passes into read-only columns of 64-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError, shown

Column = npt.NDArray[np.int64]
Label = Callable[[int], str]  # names the buffer of a row, for errors

NONE = -1  # "not pinned", "no hint", "no window", as in the core
MAX_BYTES = 1 << 62  # so that the sum of any two sizes or offsets fits in 64 bits
MAX_TIME = 1 << 62

_INT64 = np.iinfo(np.int64)


def frozen(column: npt.NDArray[np.int64]) -> Column:
    """Return the same array, no longer writeable."""
    column.flags.writeable = False
    return column


def filled(count: int, value: int) -> Column:
    """Return a column with the same `value` in every row."""
    return frozen(np.full(count, value, dtype=np.int64))


def int_column(
    values: Iterable[int] | npt.ArrayLike,
    field: str,
    label: Label,
    owner: Sequence[int] | Column | None = None,
) -> Column:
    """Convert to an int64 column, or say which value is not a whole number of 64 bits.

    Floats are rejected even if they are whole, because above 2^53 they silently lose bytes. A NumPy
    array that is already a read-only int64 column is shared; everything else is copied. The field
    names the column in errors, and the label the buffer of a row; `owner` has the row of the buffer
    that each value belongs to, `None` if value i belongs to row i.
    """
    if not hasattr(values, "__array__"):
        return _from_objects(list(values), field, label, owner)  # type: ignore[arg-type]
    array = np.asarray(values)
    if array.ndim != 1:
        raise ProblemError(
            f"{field} has shape {array.shape}; it must have one value per buffer", field=field
        )
    if array.dtype == np.int64 and not array.flags.writeable:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "u" and array.size and int(array.max()) > _INT64.max:
        return _from_objects(array.tolist(), field, label, owner)
    if array.dtype.kind in "iu" or not array.size:
        return frozen(array.astype(np.int64))
    return _from_objects(array.tolist(), field, label, owner)


def _from_objects(
    values: list[object], field: str, label: Label, owner: Sequence[int] | Column | None
) -> Column:
    # Collecting the types is one pass in C; only a bad column is examined value by value.
    if set(map(type, values)) <= {int}:
        try:
            return frozen(np.array(values, dtype=np.int64))
        except OverflowError:
            pass
    for at, value in enumerate(values):
        row = at if owner is None or at >= len(owner) else int(owner[at])
        where = f"{label(row)}: {field}"
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise ProblemError(
                f"{where} is {shown(value)}; it must be a whole number", row=row, field=field
            )
        if not _INT64.min <= value <= _INT64.max:
            raise ProblemError(
                f"{where} is {shown(int(value))}; that does not fit in 64 bits",
                row=row,
                field=field,
            )
    return frozen(np.array(values, dtype=np.int64))


def whole_number(value: object, what: str, field: str) -> int:
    """Return `value` as an int; if it is not a whole number, the error calls it `what`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ProblemError(f"{what} is {shown(value)}; it must be a whole number", field=field)
    return int(value)
