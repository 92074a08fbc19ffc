"""Builds a `Graph` from a model in which all shapes are known."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memplan.base.errors import GraphError, listed, quoted
from memplan.base.notes import Code, Note
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.runtimes.onnx.read.graph_origin import line_of, module_of
from memplan.runtimes.onnx.read.graph_pictures import ROW_AXIS, describe_rows
from memplan.runtimes.onnx.read.protos import (
    STRING,
    bytes_of,
    dtype_of,
    has_subgraphs,
    initializers,
    is_standard,
    number,
    numbers,
    opsets_of,
    row_of,
    subgraphs,
    tensor_type,
    type_of,
    types_of,
)
from memplan.runtimes.onnx.read.shapes_arithmetic import Constants
from memplan.runtimes.onnx.read.shapes_defaults import find_defaults

__all__ = ["ALIGNMENT", "PLANNED", "build"]

_LARGEST = 2**62  # bytes; the largest size that a problem can hold
# onnxruntime rounds everything that it plans to this many bytes.
ALIGNMENT = 256
# It plans what operators make; inputs stay where the caller has them.
PLANNED = frozenset({Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE})

_Scope = ChainMap[str, int]


def build(
    model: Any, given: Any, sizes: Mapping[str, int] | None = None, *, rows: bool = True
) -> tuple[Graph, tuple[Note, ...]]:
    """Return the graph of a model, and notes on memory outside of the plan.

    The `ModelProto` has the shape of every tensor, is in order, and has no functions of its own;
    `given` is its graph as it was before shapes were inferred. `sizes` is what names stand for,
    where shapes have names in place of sizes. With `rows`, the rows of its inputs that each
    operator needs are found.
    """
    opset, nodes = opsets_of(model).get("", 1), _index_nodes(given)
    builder = _Builder(opset, Constants(given), nodes, find_defaults(model), sizes or {}, rows)
    scope: _Scope = ChainMap()
    operators = builder.run(model.graph, scope, "")
    graph = Graph(
        name=model.graph.name,
        tensors=tuple(builder.tensors),
        operators=operators,
        inputs=tuple(i for i, one in enumerate(builder.tensors) if one.kind is Kind.INPUT),
        outputs=tuple(dict.fromkeys(scope[value.name] for value in model.graph.output)),
        views=tuple(builder.views),
        aliases=tuple(builder.aliases),
        alignment=ALIGNMENT,
        planned=PLANNED,
        source="onnx",
        row_axis=ROW_AXIS,
    )
    return graph, builder.notes()


@dataclass
class _Builder:
    opset: int
    constants: Constants
    nodes: dict[str, tuple[int, Any]]  # by a result: the place of an outermost node, and the node
    defaults: set[str]  # inputs that have a value which a caller may replace
    sizes: Mapping[str, int]  # by name, where a shape has names
    rows: bool  # whether to find which rows operators need
    tensors: list[Tensor] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    aliases: list[tuple[int, int]] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)  # how often each was asked for
    open: set[int] = field(default_factory=set)  # weights that a caller may replace
    root: dict[int, int] = field(default_factory=dict)  # by view: the tensor that owns its memory

    def run(self, graph: Any, scope: _Scope, path: str) -> tuple[Operator, ...]:
        """Return the operators of a graph, and put its names into the innermost scope.

        `path` leads to the graph from the outermost one, for which it is empty.
        """
        for name, (element, shape) in initializers(graph).items():
            scope[name] = self._tensor(name, path, Kind.CONSTANT, element, shape)
            if not path and name in self.defaults:
                self.open.add(scope[name])
        inputs = Kind.INTERMEDIATE if path else Kind.INPUT
        for value in graph.input:
            # A weight that is listed as an input only means that callers may replace it.
            if value.name not in scope.maps[0]:
                scope[value.name] = self._value(value.name, path, inputs, value.type)
        level = _Level(scope, path, types_of(graph), frozenset(one.name for one in graph.output))
        operators = (self._operator(node, level) for node in graph.node)
        return tuple(operator for operator in operators if operator is not None)

    def _operator(self, node: Any, level: _Level) -> Operator | None:
        """Return the operator of a node; `None` for one that is done before the run."""
        slots = [level.scope[name] if name else None for name in node.input]
        folded = self._is_folded(node, slots, level)
        blocks = self._blocks(node, level)
        results = [self._output(name, folded, level) if name else None for name in node.output]
        if folded:
            return None
        inputs = tuple(index for index in slots if index is not None)
        outputs = tuple(index for index in results if index is not None)
        in_place: tuple[tuple[int, int], ...] = ()
        if results and results[0] is not None and node.output[0] not in level.outputs:
            self._share(node, slots, results)
            in_place = self._in_place(node, slots, results[0], level)
        level.made.update(outputs)
        workspace = self._join(node, blocks, slots, results)
        return Operator(
            name=node.name,
            type=type_of(node),
            inputs=inputs,
            outputs=outputs,
            workspace=workspace,
            in_place=in_place,
            blocks=blocks,
            loop=bool(blocks) and node.op_type != "If",
            module=module_of(node),
            line=line_of(node),
            **({} if level.path else self._describe(node, slots, outputs)),
        )

    def _describe(
        self, node: Any, slots: list[int | None], outputs: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return what an outermost operator keeps of its node in the file."""
        at, given = next(
            (self.nodes[name] for name in node.output if name in self.nodes), (-1, None)
        )
        if given is None or len(given.input) != len(slots) or not self.rows:
            return {"origin": (0, at)}
        rows = describe_rows(given, slots, outputs, self.tensors, self.opset, self.constants)
        return {"origin": (0, at), **rows}

    def _is_folded(self, node: Any, slots: list[int | None], level: _Level) -> bool:
        """Whether its results are known before the run; runtimes fold such operators."""
        if not is_standard(node) or row_of(node).shared:
            return False
        if has_subgraphs(node) or level.outputs & set(node.output):
            return False
        if row_of(node).asks_shape:
            return True
        read = {index for index in slots if index is not None}
        constant = all(self.tensors[index].kind is Kind.CONSTANT for index in read)
        return constant and not read & self.open

    def _output(self, name: str, folded: bool, level: _Level) -> int:
        kind = Kind.INTERMEDIATE
        if folded:
            kind = Kind.CONSTANT
        elif not level.path and name in level.outputs:
            kind = Kind.OUTPUT
        level.scope[name] = self._value(name, level.path, kind, level.types[name])
        return level.scope[name]

    def _share(self, node: Any, slots: list[int | None], results: list[int | None]) -> None:
        """Make the output of a view operator a view of its input."""
        if not row_of(node).is_view:
            return
        source, target = slots[0] if slots else None, results[0]
        trains = row_of(node).trains and (len(results) > 1 or len(slots) > 2)
        if source is None or target is None or trains:
            return
        if self.tensors[source].bytes == self.tensors[target].bytes:
            self._view(target, source)

    def _view(self, tensor: int, base: int) -> None:
        self.views.append(View(tensor, base))
        self.root[tensor] = self.root.get(base, base)

    def _in_place(
        self, node: Any, slots: list[int | None], target: int, level: _Level
    ) -> tuple[tuple[int, int], ...]:
        """Return which inputs the first output may be written over.

        As in onnxruntime, an operator of the same graph must have made the input: inputs of the
        model belong to the caller, and a tensor from outside a sub-graph may be read again.
        """
        result = self.tensors[target]
        found = []
        for source in (slots[at] for at in row_of(node).in_place if at < len(slots)):
            if source is None or self.root.get(source, source) not in level.made:
                continue
            if self.tensors[source].shape == result.shape and (
                self.tensors[source].bytes == result.bytes
            ):
                found.append((source, target))
        return tuple(dict.fromkeys(found))

    def _blocks(self, node: Any, level: _Level) -> tuple[Block, ...]:
        blocks = []
        for attribute, graph in subgraphs(node):
            scope = level.scope.new_child()
            path = f"{level.path}{node.name or node.op_type}.{attribute}/"
            operators = self.run(graph, scope, path)
            inputs = tuple(scope[value.name] for value in graph.input)
            outputs = tuple(scope[value.name] for value in graph.output)
            blocks.append(Block(graph.name or attribute, operators, inputs, outputs))
        return tuple(blocks)

    def _join(
        self,
        node: Any,
        blocks: tuple[Block, ...],
        slots: list[int | None],
        results: list[int | None],
    ) -> int:
        """Make tensors of blocks and of their operator share memory where onnxruntime copies none.

        Returns the bytes that the operator itself holds.
        """
        if node.op_type == "If":
            for block in blocks:
                self._hand_over(block, block.outputs, results)
        elif node.op_type == "Loop" and blocks:
            states = len(blocks[0].inputs) - 2
            # States are copied into its results at the end, while the last round holds them.
            # A Loop keeps one piece of such a result for each round, and joins them at the end.
            gathered = [index for index in results[max(states, 0) :] if index is not None]
            return sum(self.tensors[index].bytes for index in gathered)
        elif node.op_type == "Scan" and blocks:
            self._slice(node, blocks[0], slots, results)
        return 0

    def _hand_over(self, block: Block, inner: tuple[int, ...], outer: list[int | None]) -> None:
        """Make results of a block aliases of the results of its operator."""
        made = {index for operator in block.operators for index in operator.outputs}
        for one, other in zip(inner, outer, strict=False):
            if one in made and other is not None:
                made.remove(one)  # the second time that a block returns it, the runtime copies it
                self.aliases.append((one, other))

    def _slice(
        self, node: Any, body: Block, slots: list[int | None], results: list[int | None]
    ) -> None:
        """Make the slices that a Scan uses in a round views of its inputs and outputs."""
        states = len(body.inputs) - number(node, "num_scan_inputs")
        if len(slots) != len(body.inputs) or len(results) != len(body.outputs) or states < 0:
            return  # before opset 9 a Scan has a batch axis and one more input
        self._hand_over(body, body.outputs[:states], results[:states])
        if not any(numbers(node, "scan_input_axes")):  # others than axis 0 are not contiguous
            for inner, outer in zip(body.inputs[states:], slots[states:], strict=True):
                if outer is not None:
                    self._view(inner, outer)
        if not any(numbers(node, "scan_output_axes")):
            made = {index for operator in body.operators for index in operator.outputs}
            made -= set(body.outputs[:states])
            for inner, result in zip(body.outputs[states:], results[states:], strict=True):
                if result is not None and inner in made:
                    made.remove(inner)
                    self._view(inner, result)

    def _value(self, name: str, path: str, kind: Kind, declared: Any) -> int:
        one = tensor_type(declared)
        if one is None:
            self.opaque.append(name)
            return self._add(Tensor(self._make_distinct(name, path), 0, kind, "sequence"))
        shape = tuple(
            self.sizes[dim.dim_param] if dim.dim_param and self.sizes else dim.dim_value
            for dim in one.shape.dim
        )
        return self._tensor(name, path, kind, one.elem_type, shape)

    def _tensor(
        self, name: str, path: str, kind: Kind, element: int, shape: tuple[int, ...]
    ) -> int:
        dtype = dtype_of(element)
        if dtype is None:
            raise GraphError(
                f"tensor {quoted(name)} has the element type {element}, which is not in ONNX"
            )
        if any(size < 0 for size in shape):
            raise GraphError(f"tensor {quoted(name)} has a negative size in its shape {shape}")
        if element == STRING and kind is not Kind.CONSTANT:
            self.opaque.append(name)
        size = bytes_of(element, shape)
        if size > _LARGEST:
            raise GraphError(f"tensor {quoted(name)} has {size} bytes, more than 2^62")
        return self._add(Tensor(self._make_distinct(name, path), size, kind, dtype, shape))

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _make_distinct(self, name: str, path: str) -> str:
        """Return the name; a taken one gets the path of its graph, as branches may share names."""
        found = name if name not in self.names else path + name
        again, count = found, self.names.get(found, 0)
        while again in self.names:
            again = f"{found}'{count if count > 1 else ''}"
            count += 1
        self.names[found] = count
        self.names[again] = 1
        return again

    def notes(self) -> tuple[Note, ...]:
        if not self.opaque:
            return ()
        left_out = listed(self.opaque)
        text = f"sequences and strings have no size in the file and are not planned: {left_out}"
        return (Note(Code.NOT_PLANNED, text, tuple(self.opaque)),)


def _index_nodes(graph: Any) -> dict[str, tuple[int, Any]]:
    """Return by name of a result the place of its node, and the node."""
    return {name: (at, node) for at, node in enumerate(graph.node) for name in node.output if name}


@dataclass
class _Level:
    """What the operators of one graph have in common."""

    scope: _Scope
    path: str
    types: dict[str, Any]
    outputs: frozenset[str]
    made: set[int] = field(default_factory=set)  # by its operators
