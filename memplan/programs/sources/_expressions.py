"""Computes sizes that files write as expressions, exactly, with fractions; no code of a file runs.

A file may hold any text in place of an expression, so lengths and numbers have limits.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor, prod, trunc
from typing import Final

__all__ = ["NO_VALUE", "Reader", "exact", "knows", "parse"]

_LARGEST: Final = 1 << 128  # of numerators and denominators
_POWER: Final = 64  # the largest exponent

# An expression raises these if it is malformed, has no value, or is nested too deeply.
NO_VALUE: Final = (
    *(SyntaxError, LookupError, ValueError, TypeError, ArithmeticError),
    *(RecursionError, MemoryError),
)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _POWER:
        raise ValueError
    return exact(base ** int(exponent))


_Function = Callable[..., Fraction | int]
_UNARY: Final[Mapping[type[ast.unaryop], _Function]] = {
    ast.Not: operator.not_,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_BINARY: Final[Mapping[type[ast.operator], _Function]] = {
    ast.Add: operator.add,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
    ast.Pow: _power,
    ast.Sub: operator.sub,
}
_COMPARED: Final[Mapping[type[ast.cmpop], Callable[[Fraction, Fraction], bool]]] = {
    ast.Eq: operator.eq,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.NotEq: operator.ne,
}
# By name in small letters, with the number of arguments: the functions of Python, of SymPy and
# of torch.utils._sympy.functions. `None` is any number.
_FUNCTIONS: Final[Mapping[str, tuple[int | None, _Function]]] = {
    **dict.fromkeys(("identity", "integer", "tofloat"), (1, operator.pos)),
    **dict.fromkeys(("ceil", "ceiling", "ceiltoint"), (1, ceil)),
    **dict.fromkeys(("floor", "floortoint"), (1, floor)),
    **dict.fromkeys(("cleandiv", "floattruediv", "inttruediv", "rational"), (2, operator.truediv)),
    **dict.fromkeys(("mod", "pythonmod"), (2, operator.mod)),
    **dict.fromkeys(("pow", "powbynatural"), (2, _power)),
    "abs": (1, abs),
    "add": (None, lambda *of: sum(of)),
    "and": (None, lambda *of: all(of)),
    "ceildiv": (2, lambda a, b: ceil(a / b)),
    "eq": (2, operator.eq),
    "floordiv": (2, operator.floordiv),
    "ge": (2, operator.ge),
    "gt": (2, operator.gt),
    "le": (2, operator.le),
    "lt": (2, operator.lt),
    "max": (None, lambda *of: max(of)),
    "min": (None, lambda *of: min(of)),
    "modularindexing": (3, lambda a, b, n: a // b % n),
    "mul": (None, lambda *of: prod(of)),
    "ne": (2, operator.ne),
    "not": (1, operator.not_),
    "or": (None, lambda *of: any(of)),
    "roundtoint": (1, round),
    "trunctoint": (1, trunc),
}


def parse(text: str) -> ast.expr:
    """Return an expression; raises one of `NO_VALUE` if it is none."""
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(text.strip(), mode="eval").body


def knows(name: str, count: int) -> bool:
    """Return whether there is a function of this name that takes so many arguments."""
    takes = _FUNCTIONS[name.lower()][0] if name.lower() in _FUNCTIONS else 0
    return count > 0 and takes in (None, count)


def exact(value: Fraction | int) -> Fraction:
    """Return a number as a fraction; one of another kind, such as `Many`, as it is.

    An `OverflowError` says that it is too large.
    """
    if not isinstance(value, (int, Fraction)):
        return value
    if max(abs(value.numerator), value.denominator) >= _LARGEST:
        raise OverflowError
    return Fraction(value)


class Reader:
    """Computes the value of an expression of some names; that of a condition is 0 or 1."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names

    def value(self, node: ast.expr) -> Fraction:
        """Return a value, or raise one of `NO_VALUE`."""
        match node:
            case ast.Constant(value=int() as whole) if type(whole) is int:
                found: Fraction | int = whole
            case ast.Name(id=name):
                found = self._names[name]
            case ast.UnaryOp(op=op, operand=inner):
                found = _UNARY[type(op)](self.value(inner))
            case ast.BinOp(left=left, op=operation, right=right):
                found = _BINARY[type(operation)](self.value(left), self.value(right))
            case ast.BoolOp(op=joint, values=values):
                many = all if isinstance(joint, ast.And) else any
                found = many(self.value(each) for each in values)
            case ast.Compare(left=left, ops=ops, comparators=others):
                held = [self.value(each) for each in (left, *others)]
                pairs = zip(ops, held, held[1:], strict=False)
                found = all(_COMPARED[type(op)](one, other) for op, one, other in pairs)
            case ast.Call(func=ast.Name(id=name), args=args) if knows(name, len(args)):
                found = _FUNCTIONS[name.lower()][1](*map(self.value, args))
            case _:
                raise ValueError
        return exact(found)
