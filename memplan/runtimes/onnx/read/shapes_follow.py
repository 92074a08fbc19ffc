"""Follows shapes through the operators of onnxruntime, and through those of ONNX between them.

The library stops at an operator that it does not know. One pass in the order of the graph goes on
behind it, operator by operator, so that a model of a hundred layers does not need a hundred rounds.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memplan.runtimes.onnx.operators import NCHWC
from memplan.runtimes.onnx.read.library import CrashError, LibraryError, infer_node
from memplan.runtimes.onnx.read.protos import (
    has_subgraphs,
    is_known,
    known_shape,
    tensor_type,
    type_of,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import Array, array_of, make_tensor
from memplan.runtimes.onnx.read.shapes_constants import compute
from memplan.runtimes.onnx.read.shapes_runtime import (
    Known,
    MisfitError,
    RuntimeCall,
    Value,
    has_rule,
    infer,
)

__all__ = ["explain_misfit", "follow"]


def follow(graph: Any, types: ChainMap[str, Any], opsets: Mapping[str, int]) -> bool:
    """Give types to what a graph's operators make, as inputs say; return if any was set.

    Sub-graphs are not followed, and nothing is done in a graph without operators of onnxruntime.
    New types are added to those of the values of the graph, and of those around it.
    """
    if not any(has_rule(node, opsets) for node in graph.node):
        return False
    return _Pass(graph, types, opsets).run()


def explain_misfit(node: Any, types: Mapping[str, Any], data: Mapping[str, Array]) -> str:
    """Return why an operator of onnxruntime cannot run; an empty text if no reason is known."""
    try:
        infer(_make_call(node, types, data))
    except MisfitError as error:
        return str(error)
    return ""


def _make_call(node: Any, types: Mapping[str, Any], data: Mapping[str, Array]) -> RuntimeCall:
    inputs: list[Known | None] = []
    for name in node.input:
        one, shape = tensor_type(types.get(name)), known_shape(types.get(name))
        inputs.append(None if one is None or shape is None else Known(one.elem_type, shape))
    return RuntimeCall(node, inputs, [data.get(name) if name else None for name in node.input])


@dataclass
class _Pass:
    graph: Any
    types: ChainMap[str, Any]
    opsets: Mapping[str, int]
    data: dict[str, Array] = field(default_factory=dict)  # small values that are known
    fresh: set[str] = field(default_factory=set)  # values whose types this pass has set
    filters: dict[str, list[str]] | None = None  # of nchwc convolutions, by what they read

    def run(self) -> bool:
        for one in self.graph.initializer:
            self._take(one.name, array_of(one))
        changed = False
        for node in self.graph.node:
            read = [name for name in node.input if name]
            if not all(is_known(self.types.get(name)) for name in read):
                continue
            if not all(is_known(self.types.get(name)) for name in node.output if name):
                changed |= self._settle(node, read)
            if node.output:
                self._take(node.output[0], compute(node, self.data, self.types))
        return changed

    def _settle(self, node: Any, read: list[str]) -> bool:
        """Find the types of a node's results; return whether any was set."""
        if has_rule(node, self.opsets):
            call = _make_call(node, self.types, self.data)
            call.filters = lambda: self._find_filters(node.output[0])
            try:
                found = infer(call)
            except MisfitError:
                return False
            pairs = zip(node.output, found, strict=False)
            return self._give_all({name: one for name, one in pairs if name and one is not None})
        if node.domain or has_subgraphs(node) or not self.fresh.intersection(read):
            return False
        return self._give_all(self._ask_library(node, read))

    def _ask_library(self, node: Any, read: list[str]) -> dict[str, Value]:
        """Return what the library infers for one operator, where all of it is known."""
        try:
            found = infer_node(
                node,
                self.opsets,
                {name: self.types[name] for name in read},
                {name: make_tensor(self.data[name]) for name in read if name in self.data},
            )
        except (CrashError, LibraryError):  # the search for faults says what is wrong
            return {}
        return {
            name: Value(one.tensor_type.elem_type, shape)
            for name, one in found.items()
            if is_known(one) and (shape := known_shape(one)) is not None
        }

    def _give_all(self, values: Mapping[str, Value]) -> bool:
        return sum(self._give(name, one) for name, one in values.items()) > 0

    def _give(self, name: str, value: Value) -> bool:
        """Set what is open of a type; return whether that changed anything."""
        declared = self.types.maps[0].get(name)
        if declared is None:
            declared = self.graph.value_info.add(name=name).type
            self.types[name] = declared
        if declared.WhichOneof("value") not in (None, "tensor_type"):
            return False
        self.fresh.add(name)
        one = declared.tensor_type
        changed = bool(one.elem_type != value.element)
        one.elem_type = value.element
        if not one.HasField("shape"):
            changed = True
            one.shape.SetInParent()
            for _ in value.shape:
                one.shape.dim.add()
        if len(one.shape.dim) != len(value.shape):
            return changed
        for dim, size in zip(one.shape.dim, value.shape, strict=True):
            if size is not None and not dim.HasField("dim_value"):
                dim.dim_value = size
                changed = True
        return changed

    def _take(self, name: str, value: Array | None) -> None:
        if value is not None:
            self.data[name] = value

    def _find_filters(self, name: str) -> list[tuple[int, ...]]:
        """Return the shapes of the filters of nchwc convolutions that read a tensor.

        A reshape of a single point with so many channels says the same.
        """
        if self.filters is None:
            self.filters = {}
            for node in self.graph.node:
                is_blocked = type_of(node) == f"{NCHWC}.Conv"
                if (is_blocked or node.op_type == "Reshape") and len(node.input) > 1:
                    self.filters.setdefault(node.input[0], []).append(node.input[1])
        found = []
        for one in self.filters.get(name, ()):
            shape, values = known_shape(self.types.get(one)), self.data.get(one)
            if shape is not None and len(shape) > 1:
                found.append(shape)
            elif values is not None and values.size == 1:
                found.append((int(values.item()),) * 2)
        return found
