"""The sizes at which a program places the same buffers, and the bytes of each there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.immutable import Immutable
from memplan.problem.intake import GAP_COLUMNS
from memplan.problem.polynomials import Polynomials

__all__ = ["Pieces", "Scenario", "with_sizes"]

_BETWEEN: Final = "the bytes of a buffer between the sizes that were read would be {}"
_CHUNK: Final = 1 << 21  # numbers that are computed at once


@dataclass(frozen=True, eq=False)
class Pieces(Immutable):
    """The bytes of all buffers: polynomials of the dimensions that are rounded up.

    Attributes
    ----------
    periods
        Of each dimension. A convolution in steps of two makes `ceil(side / 2)` rows, which is one
        polynomial for even sides, and another one for odd sides: a period of 2.
    parts
        By the remainder of each dimension: the polynomials.
    unit
        Bytes to which each size is rounded up, shape (buffers,).
    """

    periods: tuple[int, ...]
    parts: tuple[tuple[tuple[int, ...], Polynomials], ...]
    unit: Column

    def at(self, points: Column) -> Column:
        """Return the bytes of every buffer at every point, shape (buffers, points).

        A `MemplanError` says that they are below 0 or no whole number, or that no polynomials are
        known for a point.
        """
        values = np.full((len(self.unit), len(points)), -1, np.int64)  # where there is no part
        kind = np.ravel_multi_index(tuple((points % self.periods).T), self.periods)
        order = np.argsort(kind, kind="stable")
        kinds = [np.ravel_multi_index(remainder, self.periods) for remainder, _ in self.parts]
        begins, ends = (np.searchsorted(kind[order], kinds, side) for side in ("left", "right"))
        for (_, polynomials), begin, end in zip(self.parts, begins, ends, strict=True):
            mine = order[begin:end]
            try:
                values[:, mine] = polynomials.at(points[mine])
            except ArithmeticError:
                raise MemplanError(_BETWEEN.format("no whole number")) from None
        if (values < 0).any():
            raise MemplanError(_BETWEEN.format("below 0"))
        unit = self.unit[:, None]
        rounded: Column = values if (unit == 1).all() else -(-values // unit) * unit
        return rounded


@dataclass(frozen=True, eq=False)
class Scenario(Immutable):
    """The sizes at which a program has the same buffers with the same lifetimes."""

    template: Problem  # the buffers at one of the sizes
    rows: Column  # the sizes, as rows of the range; shape (c,)
    points: Column  # the values of the dimensions at these, shape (c, dimensions)
    # The bytes of the buffers: polynomials, or all of them, shape (buffers, c).
    bytes: Pieces | Column
    # The sizes at which the source said the bytes, ascending, as places in `rows`, shape (k,); and
    # these bytes, shape (buffers, k). At all others the polynomials are presumed.
    read: Column
    said: Column

    @property
    def presumed(self) -> int:
        """The number of sizes at which the source did not say the bytes."""
        return len(self.rows) - len(self.read)

    def sizes(self, begin: int, end: int) -> Column:
        """Return the bytes of every buffer at some of the sizes, shape (buffers, end - begin)."""
        if isinstance(self.bytes, Pieces):
            return self.bytes.at(self.points[begin:end])
        return self.bytes[:, begin:end]

    def chunks(self) -> Iterator[tuple[int, int, Column]]:
        """Yield all sizes, a part at a time: begin, end, and the bytes."""
        step = max(1, _CHUNK // max(1, len(self.template)))
        for begin in range(0, len(self.rows), step):
            end = min(begin + step, len(self.rows))
            yield begin, end, self.sizes(begin, end)

    def problem(self, at: int) -> Problem:
        """Return the problem at one of the sizes."""
        return with_sizes(self.template, self.sizes(at, at + 1)[:, 0])


def with_sizes(problem: Problem, size: Column) -> Problem:
    """Return the same buffers with other sizes, without a capacity."""
    return Problem.from_arrays(
        problem.start,
        problem.end,
        size,
        ids=problem.ids,
        alignment=problem.alignment,
        gaps=[getattr(problem, name) for name in GAP_COLUMNS],
        conflicts=problem.conflicts,
    )
