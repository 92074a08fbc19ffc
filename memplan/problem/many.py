"""Numbers at many sizes at once: what computes with them is done for all of these in one run.

A `Many` stands in for a whole number that depends on the size of a program. Arithmetic is done at
all sizes. Where code asks for more than that (is it larger than another one? what is it, as a plain
number?) it gets the answer of the first size, and the sizes whose answer is another one are set
aside. So at its end, what it has made holds at all sizes that are left, whatever it did on the way;
it is run again for the others.

    n             1     2     3     4     5
    2 * n         2     4     6     8    10
    2 * n < 5  True  True False False False     3, 4 and 5 are set aside
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memplan.problem.columns import MAX_BYTES, Column

__all__ = ["Many", "ManyError", "Run"]

_Flags = npt.NDArray[np.bool_]
_MOST_POWER: Final = 8


class ManyError(Exception):
    """Numbers that cannot be computed at many sizes at once: too large, or no quotient of two."""


class Run:
    """A run of some code for many sizes.

    Attributes
    ----------
    left
        At which of the sizes all answers so far are those of the first size; shape (N,).
    """

    def __init__(self, count: int) -> None:
        self.left: _Flags = np.ones(count, np.bool_)

    def number(self, values: Column) -> Many:
        """Return a number with these values, shape (N,)."""
        return Many(self, values.astype(np.int64), 1, int(np.abs(values).max(initial=0)))

    def decide(self, answers: _Flags) -> bool:
        """Return the answer at the first size, and set aside the sizes with another one."""
        first = bool(answers[0])
        self.left &= answers == first
        return first


class Many:
    """A rational number at many sizes, with one denominator; see `Run.number`.

    Operators and comparisons are those of numbers, and raise `ManyError` beyond 2^62.
    """

    __slots__ = ("_den", "_limit", "_num", "_run")
    __array_ufunc__ = None  # NumPy leaves operations with its own numbers to this class

    def __init__(self, run: Run, num: Column, den: int, limit: int) -> None:
        self._run, self._num, self._den, self._limit = run, num, den, limit

    @property
    def values(self) -> Column:
        """The values at all sizes; they count where the run has left them."""
        if self._den != 1:
            raise ManyError("no whole number")
        return self._num

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        return self._combine(other, np.add, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, np.subtract, lambda a, b: a + b)

    def _combine(
        self, other: Any, join: Callable[..., Column], bound: Callable[[int, int], int]
    ) -> Any:
        """Return the sum or the difference of two numbers."""
        one = self._take(other)
        if one is None:
            return NotImplemented
        a, b = self._times(one._den), one._times(self._den)
        limit = self._run_limit(bound, a, b)
        return Many(self._run, join(a._num, b._num), self._den * one._den, limit)._reduce()

    def __mul__(self, other: Any) -> Any:
        one = self._take(other)
        if one is None:
            return NotImplemented
        limit = self._run_limit(lambda a, b: a * b, self, one)
        return Many(self._run, self._num * one._num, self._den * one._den, limit)._reduce()

    def __truediv__(self, other: Any) -> Any:
        one = self._take(other)
        if one is None:
            return NotImplemented
        top, bottom = self._times(one._den), one._times(self._den)
        divisor = self._divide(bottom)
        first = int(divisor[0])
        if (divisor == first).all():  # one divisor at all sizes
            sign = 1 if first > 0 else -1
            return Many(self._run, top._num * sign, abs(first), top._limit)._reduce()
        quotient, rest = np.divmod(top._num, divisor)
        if rest[self._run.left].any():
            raise ManyError("no whole number")
        return Many(self._run, quotient, 1, top._limit)

    def __floordiv__(self, other: Any) -> Any:
        one = self._take(other)
        if one is None:
            return NotImplemented
        top, bottom = self._times(one._den), one._times(self._den)
        return Many(self._run, top._num // self._divide(bottom), 1, top._limit + 1)

    def __mod__(self, other: Any) -> Any:
        one = self._take(other)
        return NotImplemented if one is None else self - self // one * one

    def __pow__(self, other: Any) -> Any:
        if type(other) is not int or not 0 <= other <= _MOST_POWER:
            raise ManyError("an exponent that is no small number")
        found: Any = 1
        for _ in range(other):
            found = self * found
        return found

    def __neg__(self) -> Many:
        return Many(self._run, -self._num, self._den, self._limit)

    def __pos__(self) -> Many:
        return self

    def __abs__(self) -> Many:
        return Many(self._run, np.abs(self._num), self._den, self._limit)

    def __floor__(self) -> Any:
        return self // 1

    def __ceil__(self) -> Any:
        return -(-self // 1)

    def __trunc__(self) -> Any:
        return self.__floor__() if self >= 0 else self.__ceil__()

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __rtruediv__(self, other: Any) -> Any:
        one = self._take(other)
        return NotImplemented if one is None else one / self

    def __rfloordiv__(self, other: Any) -> Any:
        one = self._take(other)
        return NotImplemented if one is None else one // self

    def __rmod__(self, other: Any) -> Any:
        one = self._take(other)
        return NotImplemented if one is None else one % self

    # Questions

    def __eq__(self, other: object) -> Any:
        return self._ask(other, np.equal)

    def __ne__(self, other: object) -> Any:
        return self._ask(other, np.not_equal)

    def __lt__(self, other: Any) -> Any:
        return self._ask(other, np.less)

    def __le__(self, other: Any) -> Any:
        return self._ask(other, np.less_equal)

    def __gt__(self, other: Any) -> Any:
        return self._ask(other, np.greater)

    def __ge__(self, other: Any) -> Any:
        return self._ask(other, np.greater_equal)

    def __bool__(self) -> bool:
        return self._run.decide(self._num != 0)

    def __index__(self) -> int:
        self._run.decide(self._num == self._num[0])
        if self._den != 1:
            raise ManyError("no whole number")
        return int(self._num[0])

    __int__ = __index__

    def __float__(self) -> float:
        self._run.decide(self._num == self._num[0])
        return int(self._num[0]) / self._den

    def __hash__(self) -> int:
        self._run.decide(self._num == self._num[0])
        return hash(Fraction(int(self._num[0]), self._den))

    def __repr__(self) -> str:
        self._run.decide(self._num == self._num[0])
        return str(Fraction(int(self._num[0]), self._den))

    def __format__(self, how: str) -> str:
        return format(self.__index__(), how)

    def _ask(self, other: object, compare: Callable[..., _Flags]) -> Any:
        one = self._take(other)
        if one is None:
            return NotImplemented
        a, b = self._times(one._den), one._times(self._den)
        return self._run.decide(compare(a._num, b._num))

    # Parts of the above

    def _take(self, other: object) -> Many | None:
        """Return a number as one at all sizes; `None` for what is none."""
        if isinstance(other, Many):
            return other
        if not isinstance(other, (int, np.integer, Fraction)):
            return None
        whole = Fraction(int(other)) if isinstance(other, np.integer) else Fraction(other)
        if max(abs(whole.numerator), whole.denominator) > MAX_BYTES:
            raise ManyError("too large")
        values = np.full(len(self._num), whole.numerator, np.int64)
        return Many(self._run, values, whole.denominator, abs(whole.numerator))

    def _times(self, factor: int) -> Many:
        """Return the number with numerators so many times as large, to compare or to add."""
        if factor == 1:
            return self
        limit = self._run_limit(lambda a, _: a * factor, self, self)
        return Many(self._run, self._num * factor, self._den, limit)

    def _reduce(self) -> Many:
        """Return the same number with the least denominator that is easily found."""
        if self._den == 1:
            return self
        common = int(np.gcd(np.gcd.reduce(self._num[self._run.left]), self._den))
        if common in (0, 1):
            return self
        return Many(self._run, self._num // common, self._den // common, self._limit)

    def _divide(self, bottom: Many) -> Column:
        """Return the numerators to divide by; 0 has no quotient, and is set aside."""
        if self._run.decide(bottom._num == 0):
            raise ZeroDivisionError
        divisor: Column = np.where(bottom._num == 0, 1, bottom._num)
        return divisor

    def _run_limit(self, bound: Callable[[int, int], int], a: Many, b: Many) -> int:
        """Return what no step of an operation is above, or raise `ManyError`."""
        limit = bound(a._limit, b._limit)
        if limit > MAX_BYTES:
            limit = bound(*(int(np.abs(each._num).max(initial=0)) for each in (a, b)))
        if limit > MAX_BYTES:
            raise ManyError("too large")
        return limit
