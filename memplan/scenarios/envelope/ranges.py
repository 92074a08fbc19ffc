"""The sizes that are asked for: values of each dimension, and conditions that they keep to.

The values of a dimension are runs, each from a first value to a last one in equal steps; runs and
conditions together say which sizes are of a range. `Range.contains` evaluates them here, and
`memplan.runtimes.c.sizes` writes the same ones in C.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError, listed, quoted, shown
from memplan.problem.columns import MAX_BYTES, Column, frozen
from memplan.problem.immutable import Immutable

__all__ = ["MOST_POINTS", "Condition", "Range", "Run", "Values", "parse_values"]

MOST_POINTS: Final = 1_000_000  # sizes that are examined
_MOST_IN_BOX: Final = 1 << 24  # sizes that are held against conditions
_CHUNK: Final = 1 << 20  # sizes that are held against conditions at once
_LARGEST: Final = 1 << 40  # value of a dimension
_MOST_TOLD: Final = 6  # runs of a dimension that a text lists

Values = int | str | Iterable[int]


class Run(NamedTuple):
    """Some values of a dimension: from the first to the last, both of them, in equal steps."""

    first: int
    last: int
    step: int

    def __contains__(self, value: object) -> bool:
        return value in range(self.first, self.last + 1, self.step)

    def __str__(self) -> str:
        """Return the run for people: "32 to 512 by 32"."""
        if self.first == self.last:
            return str(self.first)
        return f"{self.first} to {self.last}" + f" by {self.step}" * (self.step > 1)

    def write(self) -> str:
        """Return the run as `parse_values` reads it: "32:512:32"."""
        numbers = self if self.step > 1 else self[:2]
        return ":".join(map(str, numbers[:1] if self.first == self.last else numbers))


@dataclass(frozen=True, eq=False)
class Range(Immutable):
    """All sizes of a program that are asked for.

    Attributes
    ----------
    names
        The dimensions.
    axes
        The values of each, ascending.
    runs
        The same values as runs, ascending.
    limits
        What all sizes keep to.
    points
        The value of each dimension at each size, shape (N, dimensions), in the order of
        `itertools.product(*axes)`.
    """

    names: tuple[str, ...]
    axes: tuple[tuple[int, ...], ...]
    runs: tuple[tuple[Run, ...], ...]
    limits: tuple[Condition, ...]
    points: Column

    @classmethod
    def of(cls, dims: Mapping[str, Values], conditions: Iterable[str] = ()) -> Range:
        """Return the sizes with these values that keep to the conditions; there has to be one."""
        if not dims:
            raise MemplanError("an envelope needs a dimension with a range of sizes")
        names, axes = tuple(dims), tuple(_list_values(name, dims[name]) for name in dims)
        limits = tuple(map(Condition.parse, conditions))
        count = prod(map(len, axes))
        if count > (_MOST_IN_BOX if limits else MOST_POINTS):
            raise _too_many(count)
        points = _make_points(axes, lambda points: _keep_all(limits, names, points))
        if not len(points):
            texts = listed([limit.text for limit in limits])
            raise MemplanError(f"no size of the range keeps to {texts}")
        if len(points) > MOST_POINTS:
            raise _too_many(len(points))
        return cls(names, axes, tuple(map(_find_runs, axes)), limits, frozen(points))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What all sizes keep to, as it was written."""
        return tuple(limit.text for limit in self.limits)

    def contains(self, dims: Mapping[str, int]) -> bool:
        """Return whether a size was asked for; refuse other dimensions than those of the range."""
        if set(dims) != set(self.names):
            raise MemplanError(f"a size of this range has values of {listed(self.names)}")
        values = [dims[name] for name in self.names]
        if any(
            isinstance(each, bool) or not isinstance(each, (int, np.integer)) for each in values
        ):
            return False
        inside = (
            any(value in run for run in runs) for value, runs in zip(values, self.runs, strict=True)
        )
        return all(inside) and len(_keep_all(self.limits, self.names, np.array([values]))) > 0

    def write(self) -> dict[str, object]:
        """Return the range as it is asked for: the text of each dimension, and the conditions."""
        sizes = {
            name: ",".join(run.write() for run in runs)
            for name, runs in zip(self.names, self.runs, strict=True)
        }
        return {"sizes": sizes, "where": list(self.conditions)}

    def describe_axis(self, column: int) -> str:
        """Return the values of a dimension for people: "32 to 512 by 32"."""
        runs, axis = self.runs[column], self.axes[column]
        if len(runs) > _MOST_TOLD:
            return f"{len(axis):,} values from {axis[0]} to {axis[-1]}"
        return ", ".join(map(str, runs))

    def sizes(self, row: int) -> dict[str, int]:
        """Return the value of each dimension at a size."""
        return dict(zip(self.names, self.points[row].tolist(), strict=True))

    def describe(self, row: int) -> str:
        """Return a size for people: "batch=8, tokens=128"."""
        return describe(self.sizes(row))

    def index(self, dims: Mapping[str, int]) -> int:
        """Return the number of a size; refuse one that is not of the range."""
        if not self.contains(dims):
            raise MemplanError(f"{describe(dims)} is not a size of the range")
        point = [dims[name] for name in self.names]
        return int((self.points == point).all(axis=1).argmax())


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


def _find_runs(axis: Sequence[int]) -> tuple[Run, ...]:
    """Return ascending values as runs of three values or more, and as single ones."""
    found, at = [], 0
    while at < len(axis):
        step = axis[at + 1] - axis[at] if at + 1 < len(axis) else 1
        end = at
        while end + 1 < len(axis) and axis[end + 1] - axis[end] == step:
            end += 1
        if end - at < 2:
            end = at
        found.append(Run(axis[at], axis[end], step if end > at else 1))
        at = end + 1
    return tuple(found)


def _keep_all(limits: Sequence[Condition], names: Sequence[str], points: Column) -> Column:
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
        if not _is_whole(value):
            raise MemplanError(f"dimension {quoted(name)} has {shown(value)}, not a whole number")
        if not 0 <= value <= _LARGEST:
            raise MemplanError(f"dimension {quoted(name)} has {value}; it must be from 0 to 2^40")
    if not found:
        raise MemplanError(f"dimension {quoted(name)} has no values")
    return tuple(sorted({int(value) for value in found}))


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def parse_values(name: str, text: str) -> tuple[int, ...]:
    """Read the values of a dimension: `8`, `1,2,4`, `1:64`, `64:4096:64`, `1,64:512:64`."""
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
class Condition:
    """A comparison of whole numbers, such as `batch*tokens<=4096`; no code of a text runs.

    Attributes
    ----------
    text
        As it was written, on one line.
    sides
        What is compared: constants, names of dimensions, and sums, differences, products, powers
        and rounded quotients of these. An exponent is a constant from 1 to 8, and a divisor one
        that is above 0. No step of a value is beyond 2^62 at a size that keeps to all conditions
        before this one.
    signs
        Between two sides each.
    """

    text: str
    sides: tuple[ast.expr, ...]
    signs: tuple[ast.cmpop, ...]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition; raises `MemplanError` if the text is none."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body if len(text) < 200 else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        if not isinstance(tree, ast.Compare) or any(type(op) not in _ORDER for op in tree.ops):
            raise _malformed(text)
        return cls(" ".join(text.split()), (tree.left, *tree.comparators), tuple(tree.ops))

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
