"""Inlines the functions of a model, after a bound on the size of the result."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

from memplan.base.errors import GraphError, quoted
from memplan.programs.sources._limits import (
    CALL_DEPTH,
    INLINED_BYTES,
    INLINED_OPERATORS,
    check_growth,
)
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, inline
from memplan.runtimes.onnx.read.protos import walk_nodes

__all__ = ["inline_calls"]

_SHOWN = 150  # characters of the library's error on a model

_Name = tuple[str, str, str]  # domain, name, overload


def inline_calls(model: Any, limit_factor: int = 1) -> Any:
    """Return a model in which each call of a function is replaced by its operators.

    The result may be `limit_factor` times the usual limits. Refused are functions that share a
    name, call themselves or get too many arguments.
    """
    functions = _index_by_name(model)
    operators, bytes = _Costs(functions).count_model(model)
    what = "the model with its functions inlined"
    check_growth(what, operators, INLINED_OPERATORS, limit_factor, "operators")
    check_growth(what, bytes, INLINED_BYTES, limit_factor, "bytes")
    try:
        return inline(model)
    except (CrashError, LibraryError) as error:
        how = f"the library onnx {error}" if isinstance(error, CrashError) else str(error)
        reason = textwrap.shorten(how, _SHOWN)
        raise GraphError(f"its functions cannot be inlined: {reason}") from None


def _index_by_name(model: Any) -> dict[_Name, Any]:
    found: dict[_Name, Any] = {}
    for function in model.functions:
        name = (function.domain, function.name, _get_overload(function))
        if name in found:
            raise GraphError(f"the model has two functions with the name {quoted(function.name)}")
        found[name] = function
    return found


def _get_overload(what: Any) -> str:
    return str(getattr(what, "overload", ""))  # since ONNX 1.16


@dataclass
class _Costs:
    """Counts operators and bytes of each function, including all functions that it calls."""

    functions: dict[_Name, Any]
    known: dict[_Name, tuple[int, int]] = field(default_factory=dict)
    depth: dict[_Name, int] = field(default_factory=dict)  # the most calls inside each other

    def count_model(self, model: Any) -> tuple[int, int]:
        for name in [*self.functions, *self._find_callees(model.graph)]:
            self._settle(name)
        return self._add_up(model.graph)

    def _settle(self, first: _Name) -> None:
        """Find the costs of a function, after the costs of the functions that it calls."""
        path: dict[_Name, None] = {}  # in the order of the calls
        todo = [(first, False)]
        while todo:
            name, left = todo.pop()
            function = self.functions[name]
            if left:
                del path[name]
                inner = (self.depth[each] for each in self._find_callees(function))
                self.depth[name] = 1 + max(inner, default=0)
                if self.depth[name] > CALL_DEPTH:
                    raise GraphError(f"functions are nested more than {CALL_DEPTH} calls deep")
                self.known[name] = self._add_up(function)
            elif name in path:
                raise GraphError(f"the function {quoted(name[1])} calls itself")
            elif name not in self.known:
                path[name] = None
                todo.append((name, True))
                todo += [(called, False) for called in self._find_callees(function)]

    def _find_callees(self, graph: Any) -> dict[_Name, None]:
        """Return the functions that the operators of a graph call, each once."""
        called = map(self._get_callee, walk_nodes(graph))
        return dict.fromkeys(name for name in called if name is not None)

    def _get_callee(self, node: Any) -> _Name | None:
        name = (node.domain, node.op_type, _get_overload(node))
        function = self.functions.get(name)
        if function is None:
            return None
        for given, taken, what in (
            (len(node.input), len(function.input), "inputs"),
            (len(node.output), len(function.output), "outputs"),
        ):
            if given > taken:
                raise GraphError(
                    f"operator {quoted(node.name or node.op_type)} has {given} {what}, but the "
                    f"function that it calls has {taken}"
                )
        return name

    def _add_up(self, graph: Any) -> tuple[int, int]:
        operators, bytes = 0, sum(node.ByteSize() for node in graph.node)
        for node in walk_nodes(graph):
            name = self._get_callee(node)
            more, weight = (1, 0) if name is None else self.known[name]
            operators += more
            bytes += weight
        return operators, bytes
