"""Computes values that are known before the run: small constants, and branches that Ifs take.

The library's own propagation of data knows few operators, and does not look into sub-graphs.
Exporters write more: for the padding of a convolution, for example, ConstantOfShape, Concat,
Reshape, Slice, Transpose and Cast, or an If which first looks at the size of the axis to squeeze.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from memplan.base.errors import GraphError
from memplan.base.extras import require
from memplan.runtimes.onnx.read.protos import (
    copy,
    describe_node,
    dtype_of,
    has_subgraphs,
    initializers,
    is_standard,
    known_shape,
    row_of,
    subgraphs,
    tensor_type,
    types_in,
    walk_graphs,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import (
    Array,
    array_of,
    evaluate,
    evaluate_shape_query,
    make_tensor,
)

__all__ = ["Folder", "compute", "open_branches"]

_Values = ChainMap[str, Array | None]
_Types = ChainMap[str, Any]


@dataclass
class Folder:
    """Replaces operators by constants where their results are small and known."""

    _lent: set[str] = field(default_factory=set)
    _kept: dict[str, Any] = field(default_factory=dict)  # by result: nodes that run nevertheless

    def fold(self, graph: Any) -> bool:
        """Fold operators with results known so far; return whether the graph changed."""
        return self._fold(graph, ChainMap(), ChainMap())

    def take_back(self, graph: Any) -> None:
        """Remove the constants that sub-graphs were lent for the inference.

        Operators whose results are known because they have no elements run again: others wait for
        what they read.
        """
        for node in graph.node:
            if node.op_type == "Constant" and node.output[0] in self._kept:
                node.CopyFrom(self._kept[node.output[0]])
        for inner in islice(walk_graphs(graph), 1, None):
            for one in [one for one in inner.initializer if one.name in self._lent]:
                inner.initializer.remove(one)

    def _fold(self, graph: Any, values: _Values, outside: _Types) -> bool:
        changed = self._lend(graph, values)
        types = types_in(graph, outside)
        values.update(dict.fromkeys(types.maps[0]))
        values.update({one.name: array_of(one) for one in graph.initializer})
        results = {value.name for value in graph.output}
        taken: dict[int, Any] = {}
        for at, node in enumerate(graph.node):
            branch = _choose_branch(node, values)
            if branch is not None and types.keys().isdisjoint(_iterate_defined_names(branch)):
                taken[at] = branch
                continue
            for _, inner in subgraphs(node):
                changed |= self._fold(inner, values.new_child(), types)
            found = compute(node, values, types)
            values.update(dict.fromkeys(node.output, found))
            if found is not None and node.op_type != "Constant" and node.output[0] not in results:
                if not found.size or not self._kept.keys().isdisjoint(node.input):
                    self._kept[node.output[0]] = copy(node)
                _replace(node, found)
                changed = True
        open_branches(graph, taken)
        return changed or bool(taken)

    def _lend(self, graph: Any, outside: _Values) -> bool:
        """Give a sub-graph copies of the constants that it reads: the inference sees only those."""
        own = {value.name for value in graph.input} | set(_iterate_defined_names(graph))
        read = dict.fromkeys(name for node in graph.node for name in node.input)
        changed = False
        for name in read:
            value = None if name in own else outside.get(name)
            if value is not None:
                graph.initializer.append(make_tensor(value, name))
                self._lent.add(name)
                changed = True
        return changed


def _iterate_defined_names(graph: Any) -> Iterator[str]:
    """Yield the names that a graph adds to those around it."""
    yield from initializers(graph)
    for node in graph.node:
        yield from filter(None, node.output)


def _choose_branch(node: Any, values: _Values) -> Any | None:
    """Return the branch that an If takes, or `None` if its condition is not known."""
    condition = values.get(node.input[0]) if node.op_type == "If" and node.input else None
    if condition is None or condition.size != 1:
        return None
    return dict(subgraphs(node)).get("then_branch" if condition.item() else "else_branch")


def open_branches(graph: Any, taken: dict[int, Any]) -> None:
    """Replace Ifs by the branches that they take, as runtimes do."""
    if not taken:
        return
    make_node = require("onnx.helper", extra="onnx").make_node
    nodes: list[Any] = []
    for at, node in enumerate(graph.node):
        if at not in taken:
            nodes.append(node)
            continue
        branch = taken[at]
        if len(branch.output) < len(node.output):
            raise GraphError(
                f"{describe_node(node)} has {len(node.output)} "
                f"outputs, and a branch of it {len(branch.output)}"
            )
        nodes += branch.node
        graph.initializer.extend(branch.initializer)
        graph.sparse_initializer.extend(branch.sparse_initializer)
        graph.value_info.extend([*branch.value_info, *branch.output])
        pairs = zip(branch.output, node.output, strict=False)
        nodes += [make_node("Identity", [one.name], [name], node.name) for one, name in pairs]
    copies = [copy(node) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def compute(
    node: Any, values: Mapping[str, Array | None], types: Mapping[str, Any]
) -> Array | None:
    """Return the one result of a node, if it is small and follows from the values it reads."""
    if len(node.output) != 1 or not is_standard(node) or has_subgraphs(node):
        return None
    if not row_of(node).asks_shape:
        found = evaluate(node, [values.get(name) if name else None for name in node.input])
        return _find_empty(types.get(node.output[0])) if found is None else found
    shape = known_shape(types.get(node.input[0])) if node.input else None
    return None if shape is None else evaluate_shape_query(node, shape)


def _find_empty(declared: Any | None) -> Array | None:
    """Return the value of a tensor without elements, which its type says; `None` for others."""
    one, shape = tensor_type(declared), known_shape(declared)
    if one is None or shape is None or 0 not in shape or dtype_of(one.elem_type) is None:
        return None
    tensor = require("onnx", extra="onnx").TensorProto
    return array_of(tensor(data_type=one.elem_type, dims=shape, raw_data=b""))


def _replace(node: Any, value: Array) -> None:
    """Make a node a constant of the same name."""
    make_attribute = require("onnx.helper", extra="onnx").make_attribute
    del node.input[:]
    del node.attribute[:]
    node.op_type = "Constant"
    node.attribute.append(make_attribute("value", make_tensor(value)))
