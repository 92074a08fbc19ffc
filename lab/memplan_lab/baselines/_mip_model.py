"""Equation 2.1 of MemoMalloc as arrays: offset and order of the buffers, and the peak.

    minimise  peak
    offset_i + size_i <= peak
    offset_i + size_i <= offset_j + z_ij * top              for every pair that conflicts
    offset_j + size_j <= offset_i + (1 - z_ij) * top

The paper multiplies by the peak itself, which is not linear. Here `top` is a constant, and plans
that end above it are of no interest. Alignment is `offset_i = alignment_i * k_i` with a whole
`k_i`. A buffer lies below or above a reserved range, as if that were a buffer. A pin is the offset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import NONE

__all__ = ["Model", "model_of", "point_of", "unit_of"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Model:
    """Columns and rows for HiGHS: first all offsets, then the peak, then the rest."""

    # lower, upper, whole: By column, shape (c,): its range, and whether it is a whole number.
    lower: Floats
    upper: Floats
    whole: npt.NDArray[np.bool_]
    row_upper: Floats  # shape (r,); rows have no lower limit
    # row_begin, column, value: The entries, row by row: shapes (r,), (e,), (e,).
    row_begin: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    value: Floats


def unit_of(problem: Problem) -> int:
    """Return the bytes that divide every offset of some plan with the least peak.

    In such a plan a buffer that cannot sink starts at 0, or at the end of another buffer or of a
    reserved range, rounded up to its alignment.
    """
    stops = [block.upper for block in problem.reserved]
    pins = problem.pin[problem.pin != NONE].tolist()
    units = problem.alignment[problem.alignment != 1].tolist()
    return math.gcd(*problem.size.tolist(), *stops, *pins, *units) or 1


def model_of(
    problem: Problem, pairs: tuple[Ints, Ints], *, bound: int, top: int, scale: float
) -> Model:
    """Return the program, with all amounts divided by `scale`."""
    n = len(problem)
    size, stride = problem.size / scale, problem.alignment / scale
    highest = top / scale
    pinned = problem.pin != NONE
    strided = _find_strided(problem)
    one, other = pairs
    avoided = _pair_with_reserved(problem)
    peak, order = n, n + 1
    multiple = order + len(one)
    side = multiple + len(strided)
    columns = side + len(avoided)

    lower, upper = np.zeros(columns), np.ones(columns)
    lower[:n] = np.where(pinned, problem.pin / scale, 0)
    upper[:n] = np.where(pinned, problem.pin / scale, np.maximum(0, highest - size))
    lower[peak], upper[peak] = bound / scale, highest
    # The limit is a whole number, because HiGHS has refuted programs in which it is a fraction.
    upper[multiple:side] = top // problem.alignment[strided]
    whole = np.arange(columns) >= order

    rows = _Rows()
    every = np.arange(n)
    rows.add(-size, (every, 1), (np.full(n, peak), -1))
    z = np.arange(order, multiple)
    rows.add(-size[one], (one, 1), (other, -1), (z, -highest))
    rows.add(highest - size[other], (other, 1), (one, -1), (z, highest))
    k = np.arange(multiple, side)
    rows.add(np.zeros(len(k)), (strided, 1), (k, -stride[strided]))
    rows.add(np.zeros(len(k)), (strided, -1), (k, stride[strided]))
    row, begin, end = avoided.T
    above = np.arange(side, columns)
    rows.add(begin / scale - size[row], (row, 1), (above, -highest))
    rows.add(np.zeros(len(row)), (row, -1), (above, end / scale))
    return rows.model(lower, upper, whole)


def point_of(problem: Problem, pairs: tuple[Ints, Ints], offsets: Ints, *, scale: float) -> Floats:
    """Return the columns of a plan from which HiGHS starts; parameters as in `model_of`."""
    tops = offsets + problem.size
    strided = _find_strided(problem)
    row, _, end = _pair_with_reserved(problem).T
    return np.concatenate(
        [
            offsets / scale,
            [tops.max() / scale],
            tops[pairs[0]] > offsets[pairs[1]],
            offsets[strided] / problem.alignment[strided],
            offsets[row] >= end,
        ]
    )


def _find_strided(problem: Problem) -> Ints:
    """Return the rows whose alignment is larger than the unit that divides every offset."""
    return np.flatnonzero((problem.alignment > unit_of(problem)) & (problem.pin == NONE))


def _pair_with_reserved(problem: Problem) -> Ints:
    """Return (row, lower, upper) for every buffer and each reserved range that it must avoid."""
    rows = np.flatnonzero((problem.size > 0) & (problem.pin == NONE)).tolist()
    ranges = problem.reserved
    found = [(row, block.lower, block.upper) for row in rows for block in ranges]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


class _Rows:
    """Rows with the same number of entries, added all at once."""

    def __init__(self) -> None:
        self._upper: list[Floats] = []
        self._length: list[Ints] = []
        self._column: list[Ints] = []
        self._value: list[Floats] = []

    def add(self, upper: Floats, *entries: tuple[Ints, Floats | float]) -> None:
        """Add a row for each of `upper`; an entry is a column and a value for each row."""
        count = len(upper)
        self._upper.append(upper)
        self._length.append(np.full(count, len(entries)))
        self._column.append(np.stack([column for column, _ in entries], axis=1).ravel())
        values = [np.broadcast_to(value, count) for _, value in entries]
        self._value.append(np.stack(values, axis=1).ravel().astype(np.float64))

    def model(self, lower: Floats, upper: Floats, whole: npt.NDArray[np.bool_]) -> Model:
        """Return the whole program."""
        length = np.concatenate(self._length)
        return Model(
            lower,
            upper,
            whole,
            np.concatenate(self._upper),
            (np.cumsum(length) - length).astype(np.int32),
            np.concatenate(self._column).astype(np.int32),
            np.concatenate(self._value),
        )
