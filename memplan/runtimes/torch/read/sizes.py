"""Finds values for symbolic sizes: given by the user, or the largest that the program takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import floor

from memplan.base.errors import GraphError, listed, quoted, suggest
from memplan.base.notes import Code, Note
from memplan.runtimes.torch.read.guards import evaluate
from memplan.runtimes.torch.read.values import Meta, Value

__all__ = ["Range", "Sizes"]

Range = tuple[int | None, int | None]

_NO_LIMIT = 2**31  # a range that ends beyond it means "any size"
_MOST = 2**62
_SYMBOL = re.compile(r"Symbol\('(\w{1,60})'")


class Sizes:
    """Turns sizes as torch writes them into numbers.

    `metas` has every tensor of the program by its name, inputs first; `ranges` has by symbol the
    least and the largest value that the program was exported for, and `given` the value of the
    user. Refused are symbols with neither a value nor an upper limit (the sentence lists all of
    them), and values of unknown symbols or outside of their ranges.
    """

    def __init__(
        self,
        metas: Iterable[tuple[str, Meta]],
        ranges: Mapping[str, Range],
        given: Mapping[str, int],
    ) -> None:
        self._where = _symbols(metas)
        self._known: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self.assumed: dict[str, int] = {}
        _check_given(self._where, ranges, given)
        self._ranges = ranges
        self.unchecked: list[str] = []
        missing = []
        for symbol, where in self._where.items():
            most = ranges.get(symbol, (None, None))[1]
            if symbol in given:
                self._known[symbol] = given[symbol]
            elif most is not None and most < _NO_LIMIT:
                self._known[symbol] = self.assumed[symbol] = most
            else:
                missing.append(f"{symbol} ({where})")
        if missing:
            verb = "has" if len(missing) == 1 else "have"
            raise GraphError(
                f"{listed(missing, quote=False)} {verb} no value and no upper limit: set one with "
                f"--dim {missing[0].split()[0]}=N"
            )

    def notes(self) -> tuple[Note, ...]:
        """Return a note for every symbol to which the user gave no value."""
        assumed = (
            Note(
                Code.DIM_ASSUMED,
                f"{symbol} ({self._where[symbol]}) is planned as {value}, the largest that the "
                f"program accepts: set another with --dim {symbol}=N",
            )
            for symbol, value in self.assumed.items()
        )
        text = (
            f"{len(self.unchecked)} conditions of the program on its sizes are not checked: "
            f"{listed(self.unchecked[:1])}"
        )
        return (*assumed, *([Note(Code.GUARD_UNCHECKED, text)] if self.unchecked else []))

    def check(self, conditions: Iterable[str], arguments: Mapping[str, Value]) -> None:
        """Check the sizes against the program's own conditions, and ranges of derived sizes.

        If a condition is false, no run of the program can have these sizes.
        """
        for text, (least, most) in self._ranges.items():
            size = None if text in self._where else evaluate(text, {}, self._known)
            if size is None:
                continue
            if size < (least or 0) or (most is not None and most < _NO_LIMIT and size > most):
                raise GraphError(self._refusal(f"{text} from {least or 0} to {most}"))
        for condition in conditions:
            found = evaluate(condition, arguments, self._known)
            if found is None:
                self.unchecked.append(condition)
            elif not found:
                raise GraphError(self._refusal(condition))

    def _refusal(self, condition: str) -> str:
        sizes = listed([f"{name} = {value}" for name, value in self._known.items()], quote=False)
        one = next(iter(self._known), "NAME")
        return (
            f"the program was exported for sizes with {quoted(condition)}, but {sizes} break this: "
            f"give other sizes with --dim {one}=N"
        )

    def value(self, name: str, meta: Meta) -> Value:
        """Return a tensor with numbers for sizes: whole, not negative, below 2^62 bytes."""
        sizes = tuple(self._number(size) for size in meta.sizes)
        strides = tuple(self._number(step) for step in meta.strides)
        offset = self._number(meta.offset)
        if len(sizes) != len(strides):
            raise GraphError(
                f"tensor {quoted(name)} has {len(sizes)} sizes but {len(strides)} strides"
            )
        if any(number < 0 for number in (*sizes, *strides, offset)):
            raise GraphError(f"tensor {quoted(name)} has a negative size, stride or offset")
        value = Value(name, meta.dtype, meta.itemsize, sizes, strides, offset, meta.storage)
        if value.reach > _MOST:
            raise GraphError(f"tensor {quoted(name)} is larger than 2^62 bytes")
        return value

    def _number(self, size: int | str) -> int:
        if isinstance(size, int):
            return size
        found = self._seen.get(size)
        if found is None:
            result = evaluate(size, {}, self._known)
            if result is None:
                raise GraphError(f"the size {quoted(size)} cannot be computed")
            found = floor(result)
            if found != result:
                raise GraphError(f"the size {quoted(size)} is {result}, not a whole number")
            self._seen[size] = found
        return found


def _symbols(metas: Iterable[tuple[str, Meta]]) -> dict[str, str]:
    """Return by symbol the first place where it occurs."""
    found: dict[str, str] = {}
    for name, meta in metas:
        for axis, size in enumerate(meta.sizes):
            if isinstance(size, str):
                for symbol in _SYMBOL.findall(size):
                    found.setdefault(symbol, f"dimension {axis} of {name}")
        for other in (*meta.strides, meta.offset):
            if isinstance(other, str):
                for symbol in _SYMBOL.findall(other):
                    found.setdefault(symbol, f"the layout of {name}")
    return found


def _check_given(
    where: Mapping[str, str], ranges: Mapping[str, Range], given: Mapping[str, int]
) -> None:
    for symbol, value in given.items():
        if symbol not in where:
            names = [f"{name} ({place})" for name, place in where.items()]
            there = listed(names, quote=False) or "none"
            raise GraphError(
                f"no size depends on {quoted(symbol)}; symbolic dimensions: {there}"
                f"{suggest(symbol, where)}"
            )
        least, most = ranges.get(symbol, (None, None))
        least = max(least or 0, 0)
        if value < least or (most is not None and value > most):
            upper = "any" if most is None or most >= _NO_LIMIT else most
            raise GraphError(
                f"{symbol} ({where[symbol]}) is {value}, but the program was exported for {least} "
                f"to {upper}"
            )
