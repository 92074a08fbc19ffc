"""Explicit conflicts: buffers that may not share an address even if their lifetimes are disjoint.

Two buffers whose lifetimes overlap conflict. Programs with parallel streams have more conflicts:
pairs that are needed at the same time in some execution, but not in the order of operators from
which the lifetimes come (SOMAS, definition 3). These are stored as compressed rows:

    begin  0     2  3     5  6     row 0 conflicts with 1 and 2, row 1 with 0, row 2 with 0 and 3;
    other  1  2  0  0  3  2        every pair is stored twice, every row is sorted
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError, shown
from memplan.problem.columns import Column, filled, frozen
from memplan.problem.immutable import Immutable

__all__ = ["Conflicts"]

_NO_ROWS = np.empty(0, dtype=np.int32)
_NO_ROWS.flags.writeable = False


@dataclass(frozen=True, eq=False, repr=False)
class Conflicts(Immutable):
    """A symmetric relation between the rows of a problem, as compressed rows; immutable.

    Attributes
    ----------
    begin
        Shape (n + 1,): row i conflicts with `other[begin[i]:begin[i + 1]]`.
    other
        Shape (2 * pairs,), int32: sorted in every row, without the row itself.
    """

    begin: Column
    other: npt.NDArray[np.int32]

    @classmethod
    def of_pairs(cls, count: int, pairs: Any) -> Conflicts:
        """Make the relation from pairs of rows, in any order; a pair listed twice counts once.

        Pairs are whole numbers, shape (m, 2): an array, or an iterable of pairs.
        """
        listed = pairs if hasattr(pairs, "__array__") else list(pairs)
        try:
            table = np.asarray(listed if len(listed) else np.empty((0, 2), np.int64))
        except ValueError:  # of different lengths
            table = np.empty(0)
        if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
            raise ProblemError(
                f"conflicts are {shown(listed)}; they must be pairs of rows", field="conflicts"
            )
        for first, second in table[((table < 0) | (table >= count)).any(axis=1)][:1].tolist():
            raise ProblemError(
                f"conflicts: ({first}, {second}) must be rows between 0 and {count - 1}",
                field="conflicts",
            )
        for row in table[table[:, 0] == table[:, 1], 0][:1].tolist():
            raise ProblemError(
                f"conflicts: buffer number {row} cannot conflict with itself",
                row=row,
                field="conflicts",
            )
        first, second = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
        keys = np.unique(np.concatenate([first * count + second, second * count + first]))
        begin = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * count)
        return cls._frozen(begin, keys % count if count else keys)

    @classmethod
    def of_rows(cls, begin: npt.ArrayLike, other: npt.ArrayLike) -> Conflicts:
        """Make the relation from compressed rows, as in the attributes.

        Raises
        ------
        ProblemError
            If they are not sorted, not symmetric, or name a row that does not exist.
        """
        starts, others = np.asarray(begin), np.asarray(other)
        count = len(starts) - 1
        shapes = starts.ndim == 1 and others.ndim == 1 and count >= 0
        if not shapes or starts[0] != 0 or starts[-1] != len(others) or (np.diff(starts) < 0).any():
            raise ProblemError(
                "conflicts: begin must rise from 0 to the length of other", field="conflicts"
            )
        if len(others) and not (others.min() >= 0 and others.max() < count):
            raise ProblemError(
                f"conflicts: other must be rows between 0 and {count - 1}", field="conflicts"
            )
        owner = np.repeat(np.arange(count, dtype=np.int64), np.diff(starts))
        keys = owner * count + others
        mirrored = np.sort(others * np.int64(count) + owner)
        if (np.diff(keys) <= 0).any() or (owner == others).any() or (keys != mirrored).any():
            raise ProblemError(
                "conflicts: every row must be sorted, without itself, and in the rows of all that "
                "it names",
                field="conflicts",
            )
        return cls._frozen(starts, others)

    @classmethod
    def none(cls, count: int) -> Conflicts:
        """Return the relation of `count` rows in which no two conflict."""
        return cls(filled(count + 1, 0), _NO_ROWS)

    @classmethod
    def _frozen(cls, begin: npt.NDArray[Any], other: npt.NDArray[Any]) -> Conflicts:
        others = other.astype(np.int32)
        others.flags.writeable = False
        return cls(frozen(begin.astype(np.int64)), others)

    def __len__(self) -> int:
        """Return how many pairs there are."""
        return len(self.other) // 2

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conflicts):
            return NotImplemented
        return np.array_equal(self.begin, other.begin) and np.array_equal(self.other, other.other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Conflicts: {len(self)} pairs of {len(self.begin) - 1} buffers>"

    def of(self, row: int) -> npt.NDArray[np.int32]:
        """Return the rows that one row conflicts with, sorted."""
        return self.other[self.begin[row] : self.begin[row + 1]]

    def pairs(self) -> Column:
        """Return every pair once, shape (m, 2), sorted, the smaller row first."""
        owner = np.repeat(np.arange(len(self.begin) - 1, dtype=np.int64), np.diff(self.begin))
        upper = owner < self.other
        return np.stack([owner[upper], self.other[upper].astype(np.int64)], axis=1)

    def subset(self, rows: Column) -> Conflicts:
        """Return the relation between these rows, in this order."""
        if not len(self):
            return Conflicts.none(len(rows))
        rank = np.full(len(self.begin) - 1, -1, dtype=np.int64)
        rank[rows] = np.arange(len(rows))
        pairs = rank[self.pairs()]
        return Conflicts.of_pairs(len(rows), pairs[(pairs >= 0).all(axis=1)])
