"""Writes the bands of a cut into an ONNX file.

A part of an operator is the same operator on fewer rows, with the padding that it has there. Bands
are taken with Slice and joined with Concat, so the file has ordinary operators alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError
from memplan.base.extras import require
from memplan.levers.rewrite.bands import Action, Cut, Do
from memplan.programs.graph import Graph, Operator
from memplan.programs.graph.pictures import Shifted, Spread, Window
from memplan.programs.sources import Loaded
from memplan.programs.sources.options import Options
from memplan.runtimes.bands import find_rules, find_slices, label_part
from memplan.runtimes.onnx.operators import NCHWC
from memplan.runtimes.onnx.read import read_bytes
from memplan.runtimes.onnx.read.graph_pictures import (
    RANK,
    NodeCall,
    find_pads,
    gives_sizes,
    read_attributes,
)
from memplan.runtimes.onnx.read.protos import add_weight, opsets_of, row_of, subgraphs
from memplan.runtimes.onnx.read.read_names import sort_operators
from memplan.runtimes.onnx.read.shapes_arithmetic import Constants

__all__ = ["match_nodes", "write_bands"]


def _list_sizes(model: Any, graph: Graph, asked: Options) -> dict[str, int]:
    """Return the sizes to read a written model with: those of the tensors that it still has."""
    if not asked.dims:
        return {}
    made = {name for node in model.graph.node for name in node.output if name}
    left = ((one.name, one.shape) for one in graph.tensors if one.name in made and one.shape)
    return {f"{name}:{axis}": size for name, shape in left for axis, size in enumerate(shape)}


def write_bands(
    data: bytes, found: Cut, path: Path, asked: Options, block: int = 0
) -> tuple[bytes, Loaded]:
    """Return a file with the operators of a cut of its graph, and what it is read as.

    In bands, operators are not counted on to write over inputs: only some kernels do so. `block` is
    how many channels are in one of the layout NCHWc, if the file has such operators.
    """
    model, graph = require("onnx", extra="onnx").ModelProto.FromString(data), found.uncut.graph
    sort_operators(model)
    _Writer(model, found, match_nodes(model, graph, path), _fixes(model), block).write()
    written: bytes = model.SerializeToString(deterministic=True)
    again = replace(asked, dims=_list_sizes(model, graph, asked), in_place=False)
    return written, read_bytes(written, path, again)


def match_nodes(model: Any, graph: Graph, path: Path) -> list[int]:
    """Return by operator of the graph the index of its node in the file."""
    places = []
    nodes = model.graph.node
    for operator in graph.operators:
        made = {graph.tensors[t].name for t in operator.outputs}
        _, at = operator.place
        if not 0 <= at < len(nodes) or not made or not made <= set(nodes[at].output):
            raise FormatError(
                str(path), "its operators are not those of the file: inline its functions first"
            )
        places.append(at)
    return places


# What is written


def _fixes(model: Any) -> bool:
    """Return whether an input of a model leaves a dimension open."""
    weights = {one.name for one in model.graph.initializer}
    return any(
        not dim.HasField("dim_value")
        for one in model.graph.input
        if one.name not in weights
        for dim in one.type.tensor_type.shape.dim
    )


class _Writer:
    """Writes the operators of a cut into a model."""

    def __init__(
        self, model: Any, found: Cut, places: Sequence[int], fixes: bool, block: int
    ) -> None:
        self._onnx = require("onnx", extra="onnx")
        self._model = model
        self._graph = model.graph
        self._cut = found
        self._places = places
        self._fixes = fixes
        self._opset = opsets_of(model).get("", 1)
        self._old = list(model.graph.node)
        self._taken = set(_iterate_names(model.graph))
        self._names: dict[int, str] = {}  # by tensor of the cut that the file did not have
        self._constants: dict[tuple[int, ...], str] = {}
        operators, tensors = found.uncut.operators, found.uncut.graph.tensors
        inside = (o for region in found.regions for o in operators[region.first : region.last])
        self._block, self._blocked = block, _find_blocked(found.uncut.graph)
        self._parted = {tensors[each.makes].name: each.makes for each in inside}

    def write(self) -> None:
        """Change the model."""
        nodes: list[tuple[Any, bool]] = []  # with whether it is done before the run
        folded = sorted(set(range(len(self._old))) - set(self._places), reverse=True)
        for action in self._cut.actions:
            limit = self._places[action.step] if action.step >= 0 else -1
            while folded and folded[-1] < limit:
                nodes += self._folded(self._old[folded.pop()])
            nodes += [(node, False) for node in self._nodes(action)]
        while folded:
            nodes += self._folded(self._old[folded.pop()])
        kept = self._drop_unused(nodes)
        del self._graph.node[:]
        self._graph.node.extend(kept)
        self._drop_values()
        if self._fixes:
            self._fix_sizes()

    # Operators

    def _folded(self, node: Any) -> list[tuple[Any, bool]]:
        """Return a node that is done before the run; the shape of a picture becomes a constant."""
        if not row_of(node).asks_shape or node.input[0] not in self._parted:
            return [(node, True)]
        tensor = self._cut.uncut.graph.tensors[self._parted[node.input[0]]]
        assert tensor.shape is not None
        options = read_attributes(node)
        shape = tensor.shape[options.get("start", 0) : options.get("end", RANK)]
        values = list(shape) if node.op_type == "Shape" else prod(tensor.shape)
        numpy_helper = require("onnx.numpy_helper", extra="onnx")
        array = require("numpy", extra="onnx").array(values, "int64")
        add_weight(self._model, numpy_helper.from_array(array, node.output[0]))
        return []

    def _nodes(self, action: Action) -> list[Any]:
        if action.do is Do.WHOLE:
            return [self._old[self._places[action.step]]]
        if action.do is Do.PART:
            return [self._part(self._old[self._places[action.step]], action)]
        assert action.do in (Do.SLICE, Do.JOIN), "no window asks for zeros around it"
        names, output = [self._name(tensor) for tensor in action.inputs], self._name(action.output)
        if self._cut.part(action.output)[0] not in self._blocked:
            return [self._move(action, names, output, first=2)]
        # Rows of blocks: [1, channels, rows, columns] is [blocks, rows, columns, block] in memory.
        views, nodes = [], []
        for tensor, name in zip(action.inputs, names, strict=True):
            views.append(self._take(f"{name} in blocks"))
            nodes.append(self._view(name, views[-1], self._shape_blocks(tensor)))
        made = self._take(f"{output} in blocks")
        whole = self._view(made, output, self._shape(action.output))
        return [*nodes, self._move(action, views, made, first=1), whole]

    def _move(self, action: Action, names: Sequence[str], output: str, *, first: int) -> Any:
        """Return the operator that takes or joins rows or columns, of which `first` is the axis."""
        make = self._onnx.helper.make_node
        if action.do is Do.JOIN:
            return make("Concat", names, [output], name=output, axis=first + action.axis)
        axes, starts, ends = zip(*find_slices(self._cut, action), strict=True)
        places = [first + axis for axis in axes]
        if self._opset < 10:
            more = {"starts": starts, "ends": ends, "axes": places}
            return make("Slice", names, [output], name=output, **more)
        given = map(self._constant, (starts, ends, places))
        return make("Slice", [*names, *given], [output], name=output)

    def _view(self, name: str, output: str, shape: Sequence[int]) -> Any:
        """Return an operator that gives a tensor another shape, in the same memory."""
        inputs = [name, self._constant(shape)]
        return self._onnx.helper.make_node("Reshape", inputs, [output], name=output)

    def _shape_blocks(self, tensor: int) -> tuple[int, ...]:
        _, channels, rows, columns = self._shape(tensor)
        return channels // self._block, rows, columns, self._block

    def _part(self, old: Any, action: Action) -> Any:
        """Return an operator on fewer rows."""
        operator = self._cut.uncut.operators[action.step]
        node = self._onnx.NodeProto()
        node.CopyFrom(old)
        pictures, pieces, slots = (
            {read.tensor for read in operator.reads},
            iter(action.inputs),
            iter(operator.inputs),
        )
        del node.input[:]
        for name in old.input:
            tensor = next(slots) if name else -1
            piece = next(pieces) if tensor in pictures else None
            if piece is None:
                node.input.append(name)
            elif piece >= 0:
                node.input.append(self._name(piece))
        del node.output[:]
        node.output.append(self._name(action.output))
        node.name = node.output[0]
        self._adapt(node, operator, action)
        return node

    def _adapt(self, node: Any, operator: Operator, action: Action) -> None:
        """Give a part the padding and the size that it has."""
        shape, attributes = self._shape(action.output), read_attributes(node)
        if node.op_type == "Pad":
            self._adapt_pad(node, operator, action)
            return
        if attributes.get("coordinate_transformation_mode") == "pytorch_half_pixel":
            self._set(node, "coordinate_transformation_mode", "half_pixel")  # also for one row
        if gives_sizes(self._opset, node.op_type, [bool(name) for name in node.input]):
            axes = attributes.get("axes") or range(RANK)
            node.input[3] = self._constant([shape[axis] for axis in axes])
            return
        sides = [
            rule.pads(fed, made)
            for rule, fed, made in find_rules(self._cut, action)
            if isinstance(rule, (Window, Spread))
        ]
        if len(sides) == 2:
            self._set(node, "auto_pad")
            self._set(node, "pads", [max(side[end], 0) for end in (0, 1) for side in sides])
            if node.op_type == "ConvTranspose":
                self._set(node, "output_padding", [max(-side[1], 0) for side in sides])

    def _adapt_pad(self, node: Any, operator: Operator, action: Action) -> None:
        old = self._old[self._places[action.step]]
        tensors, slots = self._cut.uncut.graph.tensors, iter(operator.inputs)
        inputs = [tensors[next(slots)] if name else None for name in old.input]
        output = tensors[operator.makes]
        pads = find_pads(NodeCall.of(old, inputs, output, self._opset, Constants(self._graph)))
        for axis, (rule, fed, made) in enumerate(find_rules(self._cut, action), 2):
            assert isinstance(rule, Shifted)
            pads[axis], pads[axis + RANK] = rule.pads(fed, made)
        if self._opset < 11:
            self._set(node, "paddings" if self._opset < 2 else "pads", pads)
            return
        node.input[1] = self._constant(pads)
        del node.input[3:]  # the axes: all of them

    def _set(self, node: Any, name: str, value: Any = None) -> None:
        """Give an operator an attribute, or take it away."""
        _keep(node.attribute, lambda one: one.name != name)
        if value is not None:
            node.attribute.append(self._onnx.helper.make_attribute(name, value))

    def _shape(self, tensor: int) -> tuple[int, ...]:
        picture, ((top, bottom), (left, right)) = self._cut.part(tensor)
        shape = self._cut.uncut.graph.tensors[picture].shape
        assert shape is not None
        return 1, shape[1], bottom - top, right - left

    # Names

    def _name(self, tensor: int) -> str:
        """Return the name of a tensor of the cut."""
        tensors = self._cut.uncut.graph.tensors
        if tensor < len(tensors):
            return tensors[tensor].name
        if tensor not in self._names:
            name = tensors[self._cut.origin(tensor)].name
            self._names[tensor] = self._take(name + label_part(self._cut, tensor))
        return self._names[tensor]

    def _take(self, name: str) -> str:
        """Return the name, or one that no tensor has."""
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        return name

    def _constant(self, values: Sequence[int]) -> str:
        """Return a constant of whole numbers; equal ones are in the file once."""
        key = tuple(values)
        if key not in self._constants:
            name = self._take("amounts " + " ".join(map(str, key)))
            helper, kind = self._onnx.helper, self._onnx.TensorProto.INT64
            add_weight(self._model, helper.make_tensor(name, kind, [len(key)], list(key)))
            self._constants[key] = name
        return self._constants[key]

    # What is left

    def _drop_unused(self, nodes: Sequence[tuple[Any, bool]]) -> list[Any]:
        """Return the nodes without those that were only for what is gone; drop such weights."""
        used = {one.name for one in self._graph.output}
        kept = []
        for node, is_folded in reversed(nodes):
            if is_folded and used.isdisjoint(filter(None, node.output)):
                continue
            used.update(node.input)
            for _, inner in subgraphs(node):
                used.update(_iterate_names(inner))
            kept.append(node)
        used.update(one.name for one in self._graph.input)
        _keep(self._graph.initializer, lambda one: one.name in used)
        _keep(self._graph.sparse_initializer, lambda one: one.values.name in used)
        return kept[::-1]

    def _drop_values(self) -> None:
        """Drop what the file says of tensors that are gone."""
        left = {name for node in self._graph.node for name in (*node.input, *node.output)}
        _keep(self._graph.value_info, lambda one: not self._fixes and one.name in left)
        _keep(self._graph.quantization_annotation, lambda one: one.tensor_name in left)

    def _fix_sizes(self) -> None:
        """Write the sizes that the bands are for into the inputs and results."""
        shapes = {one.name: one.shape for one in self._cut.uncut.graph.tensors}
        for one in (*self._graph.input, *self._graph.output):
            shape = shapes.get(one.name)
            if shape is None or not one.type.HasField("tensor_type"):
                continue
            del one.type.tensor_type.shape.dim[:]
            for size in shape:
                one.type.tensor_type.shape.dim.add().dim_value = size


def _find_blocked(graph: Graph) -> set[int]:
    """Return the tensors that are in blocks of channels."""
    found: set[int] = set()
    for operator in graph.operators:
        if operator.type == f"{NCHWC}.ReorderOutput":
            continue
        if operator.type.startswith(f"{NCHWC}.") or found.intersection(operator.inputs):
            found.update(operator.outputs)
    return found


def _keep(held: Any, wanted: Callable[[Any], bool]) -> None:
    """Drop what is not wanted from a list of a file."""
    for at in range(len(held) - 1, -1, -1):
        if not wanted(held[at]):
            del held[at]


def _iterate_names(graph: Any) -> Iterator[str]:
    """Yield all names of tensors in a graph, and in those inside of it."""
    for one in (*graph.input, *graph.output, *graph.initializer):
        yield one.name
    for node in graph.node:
        yield from node.input
        yield from node.output
        for _, inner in subgraphs(node):
            yield from _iterate_names(inner)
