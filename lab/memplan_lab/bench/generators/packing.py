"""Problems that are made from a placement, so that their optimum is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem

Columns = npt.NDArray[np.int64]


class Piece(NamedTuple):
    """A rectangle of a packing: time `[start, end)` x address `[lower, upper)`."""

    start: int
    end: int
    lower: int
    upper: int

    @property
    def area(self) -> int:
        """In grid cells."""
        return (self.end - self.start) * (self.upper - self.lower)


@dataclass(frozen=True, slots=True)
class Packing:
    """Buffers together with offsets that fit into `capacity`."""

    # start, end, offset, size: `int64` columns of shape `(n,)`; sizes and offsets in bytes.
    start: Columns
    end: Columns
    offset: Columns
    size: Columns
    capacity: int  # bytes. Some section is full, so no plan needs less: this is the optimum

    @classmethod
    def of(cls, pieces: list[Piece], capacity: int, unit: int, rng: np.random.Generator) -> Packing:
        """Turn pieces with addresses counted in `unit` bytes into shuffled rows.

        The rows are shuffled, because the order of the cuts would reveal the places of the pieces.
        """
        table = np.array(pieces, dtype=np.int64).reshape(-1, 4)[rng.permutation(len(pieces))]
        start, end, lower, upper = table.T.copy()
        return cls(start, end, lower * unit, (upper - lower) * unit, capacity * unit)

    def problem(self) -> Problem:
        """Return the problem alone, without its answer."""
        return Problem.from_arrays(self.start, self.end, self.size, capacity=self.capacity)
