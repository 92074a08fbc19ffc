"""Finds element types of what operators make that neither the library nor a rule knows.

The operators that read such a tensor may take one type only, or that of another tensor. Else it is
assumed to be that of the first input of the operator that makes it, if its readers take that, or
the largest one that they take.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memplan.base.errors import listed, quoted
from memplan.base.extras import require
from memplan.base.notes import Code, Note
from memplan.runtimes.onnx.read.protos import (
    bits_of,
    dtype_of,
    is_known,
    is_standard,
    subgraphs,
    tensor_type,
    types_in,
    walk_nodes,
)

__all__ = ["Elements"]


@dataclass
class Elements:
    """Gives element types to results of operators of other domains; opsets are by domain."""

    opsets: Mapping[str, int]
    _found: set[str] = field(default_factory=set)
    _assumed: dict[str, str] = field(default_factory=dict)  # by tensor: its type, in words

    def settle(self, graph: Any) -> bool:
        """Give types to results whose operators read known tensors; return whether one was set."""
        return self._settle(graph, ChainMap())

    def notes(self) -> Iterator[Note]:
        """Yield a note on types that are assumed."""
        if self._assumed:
            each = [f"{quoted(name)} as {dtype}" for name, dtype in self._assumed.items()]
            text = (
                "element types that neither the file nor the operators around say are planned as "
                f"those of an input, or as the largest there are: {listed(each, quote=False)}"
            )
            yield Note(Code.DIM_ASSUMED, text, tuple(self._assumed))

    def _settle(self, graph: Any, outside: ChainMap[str, Any]) -> bool:
        types, changed = types_in(graph, outside), False
        for node in graph.node:
            for _, inner in subgraphs(node):
                changed |= self._settle(inner, types)
            read = [types.get(name) for name in node.input if name]
            if is_standard(node) or not all(map(is_known, read)):
                continue
            for name in node.output:
                if name and name not in self._found and _get_element(types.get(name)) == 0:
                    changed |= self._declare(name, node, graph, types)
        return changed

    def _declare(self, name: str, node: Any, graph: Any, types: ChainMap[str, Any]) -> bool:
        """Give a tensor its element type, if one is found; return whether it was."""
        allowed = self._list_allowed(name, graph, types)
        given = _get_element(types.get(node.input[0])) if node.input else None
        if allowed and len(allowed) > 1 and given not in allowed:
            given = max(sorted(allowed), key=bits_of)
        element = next(iter(allowed)) if allowed and len(allowed) == 1 else given
        if not element:
            return False
        if allowed is None or len(allowed) > 1:
            self._assumed[name] = dtype_of(element) or str(element)
        declared = types.maps[0].get(name)
        if declared is None:
            declared = graph.value_info.add(name=name).type
            types[name] = declared
        declared.tensor_type.elem_type = element
        self._found.add(name)
        return True

    def _list_allowed(self, name: str, graph: Any, types: Mapping[str, Any]) -> set[int] | None:
        """Return the types that all operators take which read a tensor; `None` for any."""
        library = require("onnx.defs", extra="onnx")
        found: set[int] | None = None
        for node in walk_nodes(graph):
            domain = "" if is_standard(node) else node.domain
            if name not in node.input or not library.has(node.op_type, domain):
                continue
            schema = library.get_schema(node.op_type, self.opsets.get(domain, 1), domain)
            inputs = _pair_kinds(schema.inputs, node.input)
            kind = dict(inputs)[name]
            for other, each in (*inputs, *_pair_kinds(schema.outputs, node.output)):
                element = _get_element(types.get(other)) if kind and each == kind else 0
                if element:
                    return {element}
            one = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
            some = set(map(_parse, one.get(kind, [kind]))) - {0}
            found = some if found is None else found & some
        return found or None


def _parse(kind: str) -> int:
    """Return the element type in the words of a schema, "tensor(int64)"; 0 for other values."""
    name = kind.removeprefix("tensor(").rstrip(")").upper()
    types = require("onnx", extra="onnx").TensorProto.DataType
    return int(types.Value(name)) if name in types.keys() else 0  # noqa: SIM118


def _get_element(declared: Any | None) -> int | None:
    """Return the element type of a tensor, 0 if it is open, `None` for other values."""
    if declared is None or declared.WhichOneof("value") is None:
        return 0
    one = tensor_type(declared)
    return None if one is None else int(one.elem_type)


def _pair_kinds(formal: Any, names: Any) -> list[tuple[str, str]]:
    """Return tensors with what a schema calls their types; the last one may be repeated."""
    kinds = [one.type_str if one.is_homogeneous else "" for one in formal] or [""]
    return [(name, kinds[min(at, len(kinds) - 1)]) for at, name in enumerate(names)]
