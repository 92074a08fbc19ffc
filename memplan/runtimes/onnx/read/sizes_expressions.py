"""Sizes that are written as expressions of named dimensions: `floor(height/2 - 1/2) + 1`.

onnxruntime's symbolic inference and the exporters of PyTorch name a dimension after how it is
computed. A text that is no expression, or beyond the limits, is a plain name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache

from memplan.programs.sources._expressions import NO_VALUE, Reader, knows, parse

__all__ = ["evaluate", "names_in"]

_LONGEST = 500  # characters of an expression
_MOST_NESTED = 80  # brackets and signs
_LARGEST = 1 << 62

_NAME = re.compile(r"[^\W\d][\w.]*")
_TEXT = re.compile(rf"(?:\s*(?:[0-9]{{1,18}}(?![0-9])|{_NAME.pattern}|[-+*/%(),]))*\s*")
# A hyphen between letters belongs to a name: "batch-size".
_HYPHEN = re.compile(r"[^\W\d]\w*-[^\W\d]")


def names_in(text: str) -> frozenset[str]:
    """Return the names in an expression; none, if the text is a plain name or no expression."""
    return frozenset(_parse(text)[1])


def evaluate(text: str, dims: Mapping[str, int]) -> int | None:
    """Return the size that an expression of known dimensions has.

    `None` for a text that is no expression, that has another name in it, or that gives no size
    (a fraction, a negative number, or one of 2^62 and more).
    """
    tree, names = _parse(text)
    if not names or not names.keys() <= dims.keys():
        return None
    try:
        found = Reader({inner: dims[name] for name, inner in names.items()}).value(tree)
    except NO_VALUE:
        return None
    return int(found) if found.denominator == 1 and 0 <= found < _LARGEST else None


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[ast.expr, dict[str, str]]:
    """Return an expression, and by name in the text the name in it; without names it is none.

    Names in the text may have dots, or be words of Python.
    """
    names: dict[str, str] = {}
    nothing: tuple[ast.expr, dict[str, str]] = ast.Constant(0), {}
    nested = sum(map(text.count, "(-+"))
    if len(text) > _LONGEST or nested > _MOST_NESTED or _HYPHEN.search(text):
        return nothing
    if not _TEXT.fullmatch(text) or _NAME.fullmatch(text.strip()):
        return nothing
    try:
        tree = parse(_NAME.sub(lambda name: names.setdefault(name[0], f"n{len(names)}"), text))
    except NO_VALUE:
        return nothing
    inner = {new: name for name, new in names.items()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or not knows(
                inner[node.func.id], len(node.args)
            ):
                return nothing
            node.func.id = inner[node.func.id]
        elif isinstance(node, (ast.Starred, ast.Tuple, ast.keyword)):
            return nothing
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return tree, {name: new for name, new in names.items() if new in used}
