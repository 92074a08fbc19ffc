"""Conditions on sizes under which an exported program holds, as torch writes them.

    (L['x'].size()[0] % 2) == 0          a guard: of the arguments, by the user's names
    2*s77                                a derived size that has a range of its own
    Eq(Mod(u0, 2), 0)                    an assertion in the graph, of a size known at run time

They are texts of Python or SymPy. This module computes a few forms, and runs none of the code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor

from memplan.sources.torch_export.values import Value

__all__ = ["evaluate", "holds", "parse_assertion"]

_LONGEST = 10_000  # characters of a guard
_ASSERTED = "Runtime assertion failed for expression "
_BINARY: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Fraction, Fraction], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_NAMED: Mapping[str, Callable[..., Fraction]] = {
    "Eq": lambda a, b: Fraction(a == b),
    "Ne": lambda a, b: Fraction(a != b),
    "Lt": lambda a, b: Fraction(a < b),
    "Le": lambda a, b: Fraction(a <= b),
    "Gt": lambda a, b: Fraction(a > b),
    "Ge": lambda a, b: Fraction(a >= b),
    "And": lambda *of: Fraction(all(of)),
    "Or": lambda *of: Fraction(any(of)),
    "Not": lambda a: Fraction(not a),
    "Max": lambda *of: max(of),
    "max": lambda *of: max(of),
    "Min": lambda *of: min(of),
    "min": lambda *of: min(of),
    "abs": lambda a: abs(a),
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": lambda a, b: Fraction(a // b),
    "CleanDiv": operator.truediv,
    "CeilDiv": lambda a, b: Fraction(ceil(a / b)),
    "floor": lambda a: Fraction(floor(a)),
}


def parse_assertion(message: str) -> str:
    """Return the condition in the message of an assertion, or an empty text if it has none."""
    if not message.startswith(_ASSERTED):
        return ""
    return message.removeprefix(_ASSERTED).rpartition(" on node ")[0]


def holds(condition: str, tensors: Mapping[str, Value], symbols: Mapping[str, int]) -> bool | None:
    """Return whether a condition is true, or `None` if it has a form that is not known here.

    Parameters
    ----------
    condition
        As torch writes it.
    tensors
        The program's arguments, by the user's names for them, with "_" before each index.
    symbols
        Values of sizes that have names.
    """
    found = evaluate(condition, tensors, symbols)
    return None if found is None else bool(found)


def evaluate(
    text: str, tensors: Mapping[str, Value], symbols: Mapping[str, int]
) -> Fraction | None:
    """Return the value of an expression; that of a condition is 0 or 1."""
    if len(text) > _LONGEST:
        return None
    try:
        return _Reader(tensors, symbols).value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, LookupError, ValueError, TypeError, ArithmeticError):
        return None
    except (RecursionError, MemoryError):  # the expression is nested too deeply
        return None


class _Reader:
    def __init__(self, tensors: Mapping[str, Value], symbols: Mapping[str, int]) -> None:
        self._tensors, self._symbols = tensors, symbols

    def value(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int() as whole):
                return Fraction(whole)
            case ast.Name(id=name):
                return Fraction(self._symbols[name])
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.value(inner)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return Fraction(not self.value(inner))
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return self._power(self.value(left), self.value(right))
            case ast.BinOp():
                found = _BINARY[type(node.op)](self.value(node.left), self.value(node.right))
                return self._check_small(found)
            case ast.BoolOp(op=op, values=values):
                many = all if isinstance(op, ast.And) else any
                return Fraction(many(self.value(each) for each in values))
            case ast.Compare():
                return self._compare(node)
            case ast.Subscript(value=ast.Call(func=ast.Attribute() as where, args=[]), slice=index):
                return self._size(where, self.value(index))
            case ast.Call(func=ast.Attribute(value=base, attr="storage_offset"), args=[]):
                return Fraction(self._tensor(base).offset)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._check_small(_NAMED[name](*(self.value(each) for each in args)))
        raise ValueError

    def _compare(self, node: ast.Compare) -> Fraction:
        values = [self.value(each) for each in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return Fraction(all(_COMPARED[type(op)](a, b) for op, a, b in pairs))

    def _size(self, where: ast.Attribute, index: Fraction) -> Fraction:
        tensor = self._tensor(where.value)
        columns = {"size": tensor.sizes, "stride": tensor.strides}
        return Fraction(columns[where.attr][int(index)])

    def _tensor(self, node: ast.expr) -> Value:
        """Return an argument: L['x'], or L['xs'][0]['y'] for "xs_0_y"."""
        path: list[str] = []
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            path.append(str(node.slice.value))
            node = node.value
        if not isinstance(node, ast.Name) or node.id != "L":
            raise ValueError
        return self._tensors["_".join(reversed(path))]

    def _power(self, base: Fraction, exponent: Fraction) -> Fraction:
        if exponent.denominator != 1 or not 0 <= exponent <= 64:
            raise ValueError
        return self._check_small(base ** int(exponent))

    def _check_small(self, value: Fraction) -> Fraction:
        if abs(value.numerator) >= 2**128 or value.denominator >= 2**128:
            raise OverflowError
        return value
