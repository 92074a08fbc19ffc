"""Conditions on sizes under which an exported program holds, as torch writes them.

    (L['x'].size()[0] % 2) == 0          a guard: of the arguments, by the user's names
    2*s77                                a derived size that has a range of its own
    Add(Symbol('s77'), Integer(1))       a size, as SymPy's `srepr` writes it
    Eq(Mod(u0, 2), 0)                    an assertion in the graph, of a size known at run time

They are texts of Python or SymPy. This module computes a few forms, and runs none of the code.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fractions import Fraction

from memplan.programs.sources._expressions import NO_VALUE, Reader, exact, parse
from memplan.runtimes.torch.read.values import Value

__all__ = ["evaluate", "parse_assertion"]

_LONGEST = 1 << 14  # characters of an expression; those of torch have some hundred
_ASSERTED = "Runtime assertion failed for expression "


def parse_assertion(message: str) -> str:
    """Return the condition in the message of an assertion, or an empty text if it has none."""
    if not message.startswith(_ASSERTED):
        return ""
    return message.removeprefix(_ASSERTED).rpartition(" on node ")[0]


def evaluate(
    text: str, tensors: Mapping[str, Value], symbols: Mapping[str, int]
) -> Fraction | None:
    """Return the value of an expression, or `None` if it has a form that is not known here.

    The text is as torch writes it; the value of a condition is 0 or 1. Tensors are the program's
    arguments, by the user's names for them, with "_" before each index; symbols are the values of
    sizes that have names.
    """
    if len(text) > _LONGEST:
        return None
    try:
        return _Reader(tensors, symbols).value(parse(text))
    except NO_VALUE:
        return None


class _Reader(Reader):
    def __init__(self, tensors: Mapping[str, Value], symbols: Mapping[str, int]) -> None:
        super().__init__(symbols)
        self._tensors = tensors

    def value(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
                return exact(self._names[name])
            case ast.Call(func=ast.Name(id="Float"), args=[ast.Constant(value=str() as number)]):
                return Fraction(float(number))
            case ast.Subscript(value=ast.Call(func=ast.Attribute() as where, args=[]), slice=index):
                tensor = self._tensor(where.value)
                columns = {"size": tensor.sizes, "stride": tensor.strides}
                return exact(columns[where.attr][int(self.value(index))])
            case ast.Call(func=ast.Attribute(value=base, attr="storage_offset"), args=[]):
                return exact(self._tensor(base).offset)
        return super().value(node)

    def _tensor(self, node: ast.expr) -> Value:
        """Return an argument: L['x'], or L['xs'][0]['y'] for "xs_0_y"."""
        path: list[str] = []
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            path.append(str(node.slice.value))
            node = node.value
        if not isinstance(node, ast.Name) or node.id != "L":
            raise ValueError
        return self._tensors["_".join(reversed(path))]
