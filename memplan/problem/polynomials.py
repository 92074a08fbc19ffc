"""Polynomials of a few dimensions with exact coefficients, found from samples.

at 1, 2, 3    samples 5, 9, 15    ->    3 + d + d**2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import gcd, lcm, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import Column
from memplan.problem.immutable import Immutable

__all__ = ["Polynomials"]


@dataclass(frozen=True, eq=False)
class Polynomials(Immutable):
    """Several polynomials of the same dimensions."""

    powers: Column  # of the dimensions in each term, shape (terms, dimensions)
    # Of each term in each polynomial, shape (terms, polynomials), whole numbers of Python in units
    # of 1 / `divisor`.
    factors: npt.NDArray[np.object_]
    divisor: int

    @classmethod
    def through(
        cls, nodes: Sequence[Sequence[int]], samples: Sequence[Sequence[int]]
    ) -> Polynomials:
        """Return the polynomials with these values.

        The nodes are the places of each dimension, distinct; the degree in it is one less than
        their number. A sample has the value of each polynomial at one combination of the places, in
        the order of `itertools.product`.
        """
        grid, divisor = np.array(samples, dtype=object).reshape(*map(len, nodes), -1), 1
        for axis, values in enumerate(nodes):
            inverse, scale = _invert(tuple(values))
            grid = np.moveaxis(np.tensordot(inverse, grid, axes=([1], [axis])), 0, axis)
            divisor *= scale
        powers = list(product(*(range(len(each)) for each in nodes)))
        rows = grid.reshape(len(powers), -1).tolist()
        common = gcd(divisor, *(value for row in rows for value in row))
        rows, divisor = [[value // common for value in row] for row in rows], divisor // common
        used = [number for number, row in enumerate(rows) if any(row)] or [0]
        return cls(
            np.array([powers[number] for number in used], np.int64).reshape(len(used), -1),
            np.array([rows[number] for number in used], dtype=object).reshape(len(used), -1),
            divisor,
        )

    @property
    def are_whole(self) -> npt.NDArray[np.bool_]:
        """Whether each has whole values at all whole numbers."""
        degrees = self.powers.max(axis=0, initial=0).tolist()
        # What is whole at so many places in a row is a sum of whole differences everywhere.
        points = product(*(range(degree + 1) for degree in degrees))
        whole = [[value.denominator == 1 for value in self.values(point)] for point in points]
        return np.array([all(column) for column in zip(*whole, strict=True)], np.bool_)

    def values(self, point: Sequence[int]) -> list[Fraction]:
        """Return the value of each polynomial, exactly."""
        terms = [
            prod(value**power for value, power in zip(point, powers, strict=True))
            for powers in self.powers.tolist()
        ]
        return [
            Fraction(sum(map(int.__mul__, terms, column)), self.divisor)
            for column in self.factors.T.tolist()
        ]

    def bounds(self, ends: Sequence[int]) -> list[int]:
        """Return numbers of which each is above all steps of `at` up to these ends."""
        largest = [max(end, 1) for end in ends]
        terms = [
            prod(value**power for value, power in zip(largest, powers, strict=True))
            for powers in self.powers.tolist()
        ]
        return [
            sum(term * abs(factor) for term, factor in zip(terms, column, strict=True))
            for column in self.factors.T.tolist()
        ]

    def at(self, points: Column) -> Column:
        """Return the values at many points, shape (polynomials, points), if all are in `bounds`.

        An `ArithmeticError` says that a value is no whole number.
        """
        terms = np.prod(points[:, None, :] ** self.powers[None], axis=2)
        values: Column = self.factors.astype(np.int64).T @ terms.T
        if self.divisor > 1:
            values, rest = np.divmod(values, self.divisor)
            if rest.any():
                raise ArithmeticError
        return values


@lru_cache(maxsize=4096)
def _invert(values: tuple[int, ...]) -> tuple[Any, int]:
    """Return what makes coefficients of the values of a polynomial at these places.

    It is a matrix of whole numbers, and the number by which it is to be divided.
    """
    columns = []
    for one, here in enumerate(values):  # the polynomial that is 1 here and 0 at the others
        poly = [Fraction(1)]
        for there in (*values[:one], *values[one + 1 :]):
            shifted, low = [Fraction(0), *poly], [*(-there * each for each in poly), Fraction(0)]
            poly = [(a + b) / (here - there) for a, b in zip(shifted, low, strict=True)]
        columns.append(poly)
    scale = lcm(*(value.denominator for column in columns for value in column))
    whole = [[int(value * scale) for value in column] for column in columns]
    return np.array(whole, dtype=object).T, scale
