"""Makes onnxruntime keep the order of a file, with default settings.

Its default order is a walk against the arcs (`memplan.runtimes.onnx.read.graph_order`), and one of
its optimizations makes one operator of equal ones. Both keep to the data: so where an operator
would run too early, or is a copy of another one, one of its inputs waits for a result of the
operator before it. None of that result is read, and the input is not copied:

    nothing = Reshape(Cast(Slice(result, 0, 0)), [-1])      # no element, as whole numbers
    waits = Reshape(input, Concat([0, 0, 0, 0], nothing))   # the same sizes: 0 says so

What the runtime infers does not pass such a reshape, because the sizes are data. So it gives the
memory of a tensor to another one only where names of sizes in the file say that both have the same:
where both share memory in the layout that is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from memplan.base.extras import require
from memplan.programs.graph import Graph, Kind, lay_out
from memplan.runtimes.onnx.operators import NCHWC
from memplan.runtimes.onnx.read.graph_order import walk_back
from memplan.runtimes.onnx.read.protos import (
    add_weight,
    element_of,
    is_standard,
    opsets_of,
    row_of,
    subgraphs,
)

__all__ = ["hold", "iterate_reads"]

_OPSET: Final = 5  # of the first Reshape whose sizes are data
_SMALL: Final = 256  # operators on less than this part of the load run where they like
_UNTOLD: Final = ("string", "sequence")  # nothing of them can be cast


def hold(data: bytes, graph: Graph, *, block: int = 0, is_open: bool) -> bytes:
    """Return a file that onnxruntime runs in its order, with default settings.

    Its nodes are in the order in which they are to run. `block` says, if the file has operators on
    blocks of channels, how many are in one: a machine with other blocks then refuses the file, and
    does not compute with weights in another layout. With `is_open`, the runtime is not to know any
    size, so that memory is shared as the layout says; otherwise it knows as much as before, where
    the file gives all sizes.
    """
    model = require("onnx", extra="onnx").ModelProto.FromString(data)
    if opsets_of(model).get("", 1) < _OPSET:
        return data
    holder = _Holder(model, graph, block if _has_blocks(model.graph) else 0, is_open)
    holder.hold()
    written: bytes = model.SerializeToString(deterministic=True)
    return written


def _has_blocks(graph: Any) -> bool:
    return any(node.domain == NCHWC for node in graph.node)


class _Holder:
    """Finds what has to wait, and writes it."""

    def __init__(self, model: Any, graph: Graph, block: int, is_open: bool) -> None:
        self._helper = require("onnx.helper", extra="onnx")
        self._types = require("onnx", extra="onnx").TensorProto
        self._opset = opsets_of(model).get("", 1)
        self._model, self._graph = model, model.graph
        self._block, self._is_open = block, is_open
        self._nodes = list(model.graph.node)
        self._made = {name for node in self._nodes for name in node.output if name}
        self._tensors = {one.name: one for one in graph.tensors}
        self._layout = lay_out(graph, in_place=True)
        self._given = {*self._tensors, *(one.name for one in model.graph.initializer), *self._made}
        self._names: dict[str, str] = {}  # by name: the same, or one that the file does not have
        self._waits: dict[int, dict[int, str]] = {}  # by node and input: the result to wait for
        self._first = ""  # an input of the model that can tell
        self._weights: dict[str, Any] = {}
        self._values: list[Any] = []
        least = self._layout.problem.max_load // _SMALL
        # The runtime makes one of a reshape that waits and a view behind it, which then waits for
        # nothing; views run where they like, too.
        self._large = [
            at
            for at, node in enumerate(self._nodes)
            if not row_of(node).is_view and self._count_bytes(node) > least
        ]

    def hold(self) -> None:
        """Change the model."""
        self._hold_copies()
        if self._is_open:
            self._hold_inputs()
        self._hold_order()
        if self._block and not self._waits:
            self._hold_inputs()
        nodes = self._write()
        values = [one for one in self._graph.value_info if one.name not in self._made]
        del self._graph.value_info[:]
        self._graph.value_info.extend([*values, *self._values, *self._describe(nodes)])
        del self._graph.node[:]
        self._graph.node.extend(nodes)
        for weight in self._weights.values():
            add_weight(self._model, weight)

    # What waits

    def _hold_copies(self) -> None:
        """Let a node that does what another one did wait for what comes before it."""
        same: dict[str, str] = {}  # by result: the equal result of an earlier node
        seen: dict[tuple[Any, ...], int] = {}
        for at, node in enumerate(self._nodes):
            attributes = tuple(sorted(one.SerializeToString() for one in node.attribute))
            inputs = tuple(same.get(name, name) for name in node.input)
            key = (node.domain, node.op_type, attributes, inputs)
            if row_of(node).shared or at == seen.setdefault(key, at):
                continue
            if not self._wait(at, at):
                first = self._nodes[seen[key]]
                same |= dict(zip(node.output, first.output, strict=False))

    def _hold_order(self) -> None:
        """Let large nodes wait until they run in the order of the file."""
        place = {self._nodes[at].output[0]: at for at in self._large}
        while True:
            nodes = self._write()
            order = walk_back(_find_arcs(nodes))
            ran = [place[out] for n in order if (out := _name_first(nodes[n])) in place]
            when = {at: time for time, at in enumerate(ran)}
            early = [b for a, b in pairwise(self._large) if when[b] < when[a]]
            waiting = [self._wait(at, at) for at in early]
            if not any(waiting):
                return

    def _hold_inputs(self) -> None:
        """Let the readers of the inputs of the model wait for these, so that sizes are open."""
        weights = {one.name for one in self._graph.initializer}
        inputs = {one.name for one in self._graph.input if one.name not in weights}
        for at, node in enumerate(self._nodes):
            for slot, name in enumerate(node.input):
                if name in inputs and self._can_wait(name) and self._can_tell(name):
                    self._waits.setdefault(at, {}).setdefault(slot, name)
                    self._first = self._first or name

    def _wait(self, at: int, before: int) -> bool:
        """Let a node wait for the one before it; return whether it can, and did not before."""
        slots = [s for s, name in enumerate(self._nodes[at].input) if self._can_wait(name)]
        known = self._waits.get(at, {})
        slot = next((s for s in slots if self._nodes[at].input[s] in self._made), None)
        slot = next(iter(slots), None) if slot is None else slot
        for earlier in reversed([one for one in self._large if one < before] or range(before)):
            told = next(filter(self._can_tell, self._nodes[earlier].output), None)
            if told is not None and slot is not None:
                if known.get(slot) == told:
                    return False
                self._waits.setdefault(at, {})[slot] = told
                return True
        return False

    def _can_wait(self, name: str) -> bool:
        """Return whether a tensor is one whose sizes can be data."""
        tensor = self._tensors.get(name)
        return tensor is not None and tensor.kind is not Kind.CONSTANT and tensor.shape is not None

    def _can_tell(self, name: str) -> bool:
        """Return whether none of a tensor can be made a list of whole numbers without elements."""
        tensor = self._tensors.get(name)
        return tensor is not None and bool(tensor.shape) and tensor.dtype not in _UNTOLD

    def _count_bytes(self, node: Any) -> int:
        """Return the bytes that a node makes, and those that it reads and that it may free."""
        held = (self._tensors.get(name) for name in (*node.input, *node.output))
        return sum(one.bytes for one in held if one is not None and one.kind is not Kind.CONSTANT)

    # What is written

    def _write(self) -> list[Any]:
        """Return the nodes with those that wait."""
        self._weights.clear()
        made: set[str] = set()
        nodes: list[Any] = []
        if self._waits and self._block:
            nodes += self._guard()
        for at, node in enumerate(self._nodes):
            copy = type(node)()
            copy.CopyFrom(node)
            for slot, told in sorted(self._waits.get(at, {}).items()):
                source = node.input[slot]
                name = self._name(f"{source} behind {told}")
                if name not in made:
                    nothing = self._name(f"none of {told}")
                    if nothing not in made:
                        nodes += self._tell(told, nothing)
                    nodes += self._reshape(source, nothing, name)
                    made |= {name, nothing}
                copy.input[slot] = name
            if self._is_open and self._first and self._gives_sizes(node):
                nodes += self._open_sizes(copy, made)
            nodes.append(copy)
        return nodes

    def _gives_sizes(self, node: Any) -> bool:
        """Return whether the runtime would know all sizes of a result again."""
        if node.op_type != "Reshape" or not is_standard(node) or len(node.input) < 2:
            return False
        tensor = self._tensors.get(node.input[1])
        return (
            tensor is not None and tensor.kind is Kind.CONSTANT and node.input[1] not in self._made
        )

    def _open_sizes(self, node: Any, made: set[str]) -> list[Any]:
        """Let a reshape take its sizes from the run; return the nodes that make them."""
        sizes, nothing = node.input[1], self._name(f"none of {self._first}")
        name = self._name(f"{sizes} behind {self._first}")
        node.input[1] = name
        if name in made:
            return []
        tells = [] if nothing in made else self._tell(self._first, nothing)
        made |= {name, nothing}
        return [*tells, self._helper.make_node("Concat", [sizes, nothing], [name], axis=0)]

    def _tell(self, source: str, name: str) -> list[Any]:
        """Return nodes that make a list of whole numbers without elements, out of a tensor."""
        make = self._helper.make_node
        part, whole = self._name(f"part of {name}"), self._name(f"whole {name}")
        zero = self._constant([0])
        if self._opset < 10:
            cut = make("Slice", [source], [part], axes=[0], starts=[0], ends=[0])
        else:
            cut = make("Slice", [source, zero, zero, zero], [part])
        kind = "INT64" if self._opset < 6 else self._types.INT64
        return [
            cut,
            make("Cast", [part], [whole], to=kind),
            make("Reshape", [whole, self._constant([-1])], [name]),
        ]

    def _reshape(self, source: str, nothing: str, name: str) -> list[Any]:
        """Return nodes that make the same tensor, as soon as a list without elements is there."""
        sizes, block = self._name(f"sizes of {name}"), self._name("none of a block")
        rank = len(self._tensors[source].shape or ())
        parts = [self._constant([0] * rank), nothing, *([block] * bool(self._block))]
        make = self._helper.make_node
        return [make("Concat", parts, [sizes], axis=0), make("Reshape", [source, sizes], [name])]

    def _guard(self) -> list[Any]:
        """Return nodes that fail on a machine with other blocks of channels."""
        make, name = self._helper.make_node, self._name("a pixel")
        wide, block = self._name("a block"), self._name("block")
        numbers = self._helper.make_tensor(name, self._types.FLOAT, [1, 4, 1, 1], [0.0] * 4)
        self._weights[name] = numbers
        shape = [1, self._block, 1, 1]
        self._values = [self._helper.make_tensor_value_info(wide, self._types.FLOAT, shape)]
        why = f"this file is for processors with blocks of {self._block} channels"
        return [
            make("ReorderInput", [name], [wide], domain=NCHWC),
            make("Reshape", [wide, self._constant([self._block])], [block], name=why),
            *self._tell(block, self._name("none of a block")),
        ]

    def _name(self, name: str) -> str:
        """Return a name, or one like it that the file does not have."""
        if name not in self._names:
            taken = name
            while taken in self._given:
                taken += "'"
            self._names[name] = taken
        return self._names[name]

    def _constant(self, values: Sequence[int]) -> str:
        """Return a constant of whole numbers; equal ones are in the file once."""
        name = self._name("whole numbers " + " ".join(map(str, values)))
        kind = self._types.INT64
        self._weights[name] = self._helper.make_tensor(name, kind, [len(values)], list(values))
        return name

    def _describe(self, nodes: Sequence[Any]) -> Iterator[Any]:
        """Yield names of the sizes of what nodes make, or the sizes that they have."""
        helper = self._helper
        outputs = {one.name for one in self._graph.output}
        same = {
            node.output[0]: node.input[0]
            for node in nodes
            if node.op_type == "Reshape" and node.output[0] not in self._made
        }
        storage = {
            self._layout.graph.tensors[tensor].name: number
            for number, each in enumerate(self._layout.storages)
            for tensor in each.tensors
        }
        fixed = all(
            dim.HasField("dim_value")
            for one in self._graph.input
            for dim in one.type.tensor_type.shape.dim
        )
        for name in [*same, *self._made] if self._is_open else same:
            tensor = self._tensors.get(same.get(name, name))
            if tensor is None or tensor.shape is None or name in outputs:
                continue
            element = element_of(tensor.dtype)
            if element is None or not (self._is_open or fixed):
                continue
            owner = storage.get(tensor.name, -1)
            names = [f"memory {owner}.{axis}" for axis in range(len(tensor.shape))]
            shape = names if self._is_open else list(tensor.shape)
            yield helper.make_tensor_value_info(name, element, shape)


def _find_arcs(nodes: Sequence[Any]) -> list[set[int]]:
    """Return by node the nodes that it waits for."""
    maker = {name: at for at, node in enumerate(nodes) for name in node.output if name}
    return [
        {maker[name] for name in iterate_reads(node) if name in maker} - {at}
        for at, node in enumerate(nodes)
    ]


def _name_first(node: Any) -> str:
    return next(iter(node.output), "")


def iterate_reads(node: Any) -> Iterator[str]:
    """Yield the names that a node reads, also inside of its blocks."""
    yield from filter(None, node.input)
    for _, graph in subgraphs(node):
        for inner in graph.node:
            yield from iterate_reads(inner)
