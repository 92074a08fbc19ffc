"""Sizes that are written as expressions of named dimensions: `floor(height/2 - 1/2) + 1`.

onnxruntime's symbolic inference and the exporters of PyTorch name a dimension after how it is
computed. Such a name is evaluated exactly, with fractions. A file may hold any text in its place,
so length, depth and numbers have limits, and a text that is no expression is a plain name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

__all__ = ["evaluate", "names_in"]

_LONGEST = 500  # characters of an expression
_DEEPEST = 40  # brackets and signs inside each other
_LARGEST = 1 << 62
_POWER = 8  # the largest exponent

_TOKEN = re.compile(r"\s*(?:(\d+)|([^\W\d][\w.]*)|(//|\*\*|[-+*/%(),]))")
# A hyphen between letters belongs to a name: "batch-size".
_HYPHEN = re.compile(r"[^\W\d]\w*-[^\W\d]")


class _ExpressionError(Exception):
    """The text is no expression, or has no value."""


def _mod(a: Fraction, b: Fraction) -> Fraction:
    return a - b * floor(a / b)


_FUNCTIONS: dict[str, tuple[int | None, Callable[..., Fraction | int]]] = {
    "abs": (1, abs),
    "ceil": (1, ceil),
    "ceiling": (1, ceil),
    "floor": (1, floor),
    "max": (None, max),
    "min": (None, min),
    "mod": (2, _mod),
    "floordiv": (2, lambda a, b: floor(a / b)),
    "ceildiv": (2, lambda a, b: ceil(a / b)),
}


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Return the names in an expression; none, if the text is a plain name or no expression."""
    try:
        parser = _Parser(text, None)
        parser.run()
    except (_ExpressionError, ArithmeticError):
        return frozenset()
    return frozenset() if parser.is_plain() else frozenset(parser.names)


def evaluate(text: str, dims: Mapping[str, int]) -> int | None:
    """Return the size that an expression of known dimensions has.

    `None` for a text that is no expression, that has another name in it, or that gives no size
    (a fraction, a negative number, or one of 2^62 and more).
    """
    names = names_in(text)
    if not names or not names <= dims.keys():
        return None
    try:
        found = _Parser(text, dims).run()
    except (_ExpressionError, ArithmeticError):
        return None
    return int(found) if found.denominator == 1 and found >= 0 else None


@dataclass
class _Parser:
    """Evaluates while it reads; without dimensions every name is 1, and no value is looked at."""

    text: str
    dims: Mapping[str, int] | None

    def __post_init__(self) -> None:
        self.names: dict[str, None] = {}
        self.tokens = self._split()
        self.at = 0
        self.depth = 0

    def is_plain(self) -> bool:
        return len(self.tokens) == 1

    def run(self) -> Fraction:
        found = self._sum()
        if self.at != len(self.tokens):
            raise _ExpressionError
        return found

    def _split(self) -> list[str]:
        text = self.text.strip()
        if not text or len(text) > _LONGEST or _HYPHEN.search(text):
            raise _ExpressionError
        tokens, at = [], 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise _ExpressionError
            tokens.append(match[0].strip())
            at = match.end()
        return tokens

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, *wanted: str) -> str:
        """Return the next token and go on, if it is one of these; else an empty text."""
        token = self._peek()
        if token not in wanted:
            return ""
        self.at += 1
        return token

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise _ExpressionError

    def _sum(self) -> Fraction:
        found = self._product()
        while sign := self._take("+", "-"):
            other = self._product()
            found = self._check(found + other if sign == "+" else found - other)
        return found

    def _product(self) -> Fraction:
        found = self._signed()
        while sign := self._take("*", "/", "//", "%"):
            other = self._signed()
            if sign == "*":
                found = self._check(found * other)
            elif self.dims is None:
                continue
            elif sign == "/":
                found = self._check(found / other)
            else:
                found = Fraction(floor(found / other)) if sign == "//" else _mod(found, other)
                found = self._check(found)
        return found

    def _signed(self) -> Fraction:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _ExpressionError
        sign = self._take("-", "+")
        found = self._signed() if sign else self._power()
        self.depth -= 1
        return -found if sign == "-" else found

    def _power(self) -> Fraction:
        found = self._atom()
        if self._take("**"):
            exponent = self._signed()
            if self.dims is None:
                return Fraction(1)
            if exponent.denominator != 1 or abs(exponent) > _POWER:
                raise _ExpressionError
            found = self._check(Fraction(found ** int(exponent)))
        return found

    def _atom(self) -> Fraction:
        token = self._peek()
        self.at += 1
        if token == "(":
            found = self._sum()
            self._need(")")
            return found
        if token.isdecimal() and token.isascii():
            return self._check(Fraction(int(token)))
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise _ExpressionError
        if self._peek() == "(":
            return self._call(token)
        self.names[token] = None
        return Fraction(1 if self.dims is None else self.dims[token])

    def _call(self, name: str) -> Fraction:
        count, function = _FUNCTIONS.get(name.lower(), (0, max))
        self._need("(")
        given = [self._sum()]
        while self._take(","):
            given.append(self._sum())
        self._need(")")
        if count == 0 or (count is not None and count != len(given)):
            raise _ExpressionError
        return Fraction(1) if self.dims is None else self._check(Fraction(function(*given)))

    def _check(self, value: Fraction) -> Fraction:
        if abs(value.numerator) >= _LARGEST or value.denominator >= _LARGEST:
            raise _ExpressionError
        return value
