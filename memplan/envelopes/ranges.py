"""The sizes that are asked for: values of each dimension, and conditions that they keep to."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memplan.errors import MemplanError, listed, quoted, shown
from memplan.problem.columns import MAX_BYTES, Column, frozen
from memplan.problem.immutable import Immutable

__all__ = ["MOST_POINTS", "Range", "Values", "parse_values"]

MOST_POINTS: Final = 1_000_000  # sizes that are examined
_MOST_IN_BOX: Final = 1 << 24  # sizes that are held against conditions
_CHUNK: Final = 1 << 20  # sizes that are held against conditions at once
_LARGEST: Final = 1 << 40  # value of a dimension

Values = int | str | Iterable[int]


@dataclass(frozen=True, eq=False)
class Range(Immutable):
    """All sizes of a program that are asked for.

    Attributes
    ----------
    names
        The dimensions.
    axes
        The values of each, ascending.
    conditions
        What all sizes keep to, as text.
    points
        The value of each dimension at each size, shape (N, dimensions), in the order of
        `itertools.product(*axes)`.
    """

    names: tuple[str, ...]
    axes: tuple[tuple[int, ...], ...]
    conditions: tuple[str, ...]
    points: Column

    @classmethod
    def of(cls, dims: Mapping[str, Values], conditions: Iterable[str] = ()) -> Range:
        """Return the sizes with these values that keep to the conditions.

        Raises
        ------
        MemplanError
            One sentence: for no dimension, values that are none or not understood, a condition that
            is not understood or that no size keeps to, and too many sizes.
        """
        if not dims:
            raise MemplanError("an envelope needs a dimension with a range of sizes")
        names, axes = tuple(dims), tuple(_list_values(name, dims[name]) for name in dims)
        limits = tuple(map(_Condition.parse, conditions))
        count = prod(map(len, axes))
        if count > (_MOST_IN_BOX if limits else MOST_POINTS):
            raise _too_many(count)
        points = _make_points(axes, lambda points: _keep_all(limits, names, points))
        if not len(points):
            texts = listed([limit.text for limit in limits])
            raise MemplanError(f"no size of the range keeps to {texts}")
        if len(points) > MOST_POINTS:
            raise _too_many(len(points))
        return cls(names, axes, tuple(limit.text for limit in limits), frozen(points))

    def __len__(self) -> int:
        return len(self.points)

    def sizes(self, row: int) -> dict[str, int]:
        """Return the value of each dimension at a size."""
        return dict(zip(self.names, self.points[row].tolist(), strict=True))

    def describe(self, row: int) -> str:
        """Return a size for people: "batch=8, tokens=128"."""
        return describe(self.sizes(row))

    def index(self, dims: Mapping[str, int]) -> int:
        """Return the number of a size.

        Raises
        ------
        MemplanError
            If it is not of the range; the sentence names the dimension or the size.
        """
        if set(dims) != set(self.names):
            raise MemplanError(f"a size of this range has values of {listed(self.names)}")
        found: npt.NDArray[np.bool_] = np.ones(len(self), np.bool_)
        for column, name in enumerate(self.names):
            found &= self.points[:, column] == dims[name]
        if not found.any():
            raise MemplanError(f"{describe(dims)} is not a size of the range")
        return int(found.argmax())


def describe(dims: Mapping[str, int]) -> str:
    """Return values of dimensions for people."""
    return ", ".join(f"{name}={value}" for name, value in dims.items())


def _make_points(axes: Sequence[tuple[int, ...]], keep: Callable[[Column], Column]) -> Column:
    """Return the combinations of values that are kept, a part at a time, to save memory."""
    step = max(1, _CHUNK // prod(map(len, axes[1:])))
    parts = []
    for begin in range(0, len(axes[0]), step):
        some = (axes[0][begin : begin + step], *axes[1:])
        grid = np.meshgrid(*(np.array(axis, np.int64) for axis in some), indexing="ij")
        parts.append(keep(np.stack([each.ravel() for each in grid], axis=1)))
    return np.concatenate(parts)


def _keep_all(limits: Sequence[_Condition], names: Sequence[str], points: Column) -> Column:
    for limit in limits:
        points = points[limit.holds(names, points)]
    return points


def _too_many(count: int) -> MemplanError:
    return MemplanError(
        f"the range has {count:,} sizes; at most {MOST_POINTS:,} are examined, so give a step, as "
        "in tokens=64:4096:64, or a condition"
    )


def _list_values(name: str, given: Values) -> tuple[int, ...]:
    if isinstance(given, str):
        return parse_values(name, given)
    found = [given] if isinstance(given, (int, np.integer)) else list(given)
    for value in found:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise MemplanError(f"dimension {quoted(name)} has {shown(value)}, not a whole number")
        if not 0 <= value <= _LARGEST:
            raise MemplanError(f"dimension {quoted(name)} has {value}; it must be from 0 to 2^40")
    if not found:
        raise MemplanError(f"dimension {quoted(name)} has no values")
    return tuple(sorted({int(value) for value in found}))


def parse_values(name: str, text: str) -> tuple[int, ...]:
    """Read the values of a dimension: `8`, `1,2,4`, `1:64`, `64:4096:64`, `1,64:512:64`.

    Raises
    ------
    MemplanError
        If the text is none of these, or has no values.
    """
    found: set[int] = set()
    for part in text.split(","):
        numbers = part.strip().split(":")
        plain = all(each.isascii() and each.isdecimal() and len(each) < 13 for each in numbers)
        if not plain or len(numbers) > 3:
            raise MemplanError(
                f"{quoted(f'{name}={text}')} is not a range of sizes; write {name}=8, "
                f"{name}=1,2,4, {name}=1:64 or {name}=64:4096:64"
            )
        values = [int(each) for each in numbers]
        step = values[2] if len(values) == 3 else 1
        if step < 1 or values[0] > values[min(1, len(values) - 1)]:
            raise MemplanError(
                f"{quoted(f'{name}={text}')} is empty: {part.strip()} has no values; the last "
                "number of a range is at least the first, and a step at least 1"
            )
        each = range(values[0], values[min(1, len(values) - 1)] + 1, step)
        if len(each) > MOST_POINTS:
            raise _too_many(len(each))
        found.update(each)
    return _list_values(name, found)


_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.FloorDiv: operator.floordiv,
}
_ORDER: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}


@dataclass(frozen=True)
class _Condition:
    """A comparison of whole numbers, such as `batch*tokens<=4096`; no code of a text runs."""

    text: str
    sides: tuple[ast.expr, ...]
    signs: tuple[ast.cmpop, ...]

    @classmethod
    def parse(cls, text: str) -> _Condition:
        try:
            tree = ast.parse(text.strip(), mode="eval").body if len(text) < 200 else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        if not isinstance(tree, ast.Compare) or any(type(op) not in _ORDER for op in tree.ops):
            raise _malformed(text)
        return cls(text.strip(), (tree.left, *tree.comparators), tuple(tree.ops))

    def holds(self, names: Sequence[str], points: Column) -> npt.NDArray[np.bool_]:
        """Return at which of the points it holds, shape (N,)."""
        largest = dict(zip(names, points.max(axis=0, initial=0).tolist(), strict=True))
        for side in self.sides:
            if self._evaluate(side, largest, magnitude=True) > MAX_BYTES:
                raise MemplanError(f"the numbers of {quoted(self.text)} are too large")
        columns = dict(zip(names, points.T, strict=True))
        found: npt.NDArray[np.bool_] = np.ones(len(points), np.bool_)
        values = [self._evaluate(side, columns) for side in self.sides]
        for sign, left, right in zip(self.signs, values[:-1], values[1:], strict=True):
            found &= _ORDER[type(sign)](left, right)
        return found

    def _evaluate(
        self, node: ast.expr, values: Mapping[str, Any], *, magnitude: bool = False
    ) -> Any:
        """Return the value of a side; with `magnitude`, no step on the way is above it."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in values:
                raise MemplanError(
                    f"the condition {quoted(self.text)} names {quoted(node.id)}; the dimensions "
                    f"with a range are {listed(list(values))}"
                )
            return values[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right = (
                self._evaluate(side, values, magnitude=magnitude)
                for side in (node.left, node.right)
            )
            constant = isinstance(node.right, ast.Constant) and right > 0
            if isinstance(node.op, ast.Pow) and not (constant and right <= 8):
                raise _malformed(self.text)
            if isinstance(node.op, ast.FloorDiv) and not constant:
                raise _malformed(self.text)
            if not magnitude:
                return _ARITHMETIC[type(node.op)](left, right)
            plain = operator.add if isinstance(node.op, ast.Sub) else _ARITHMETIC[type(node.op)]
            return max(left, right, plain(left, right))
        raise _malformed(self.text)


def _malformed(text: str) -> MemplanError:
    return MemplanError(
        f"{quoted(text)} is not a condition; compare sums and products of dimensions and whole "
        "numbers, as in batch*tokens<=4096"
    )
