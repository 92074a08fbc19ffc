"""Reads models of OpenVINO (IR 10 and 11): the `.xml` has all shapes, the `.bin` only weights.

    <net name="n" version="11">
      <layers>
        <layer id="0" name="x" type="Parameter"> <data .../>
          <output> <port id="0" precision="FP32"> <dim>1</dim> ... </port> </output> </layer>
        <layer id="1" name="a" type="ReLU"> <input> ... </input> <output> ... </output> </layer>
        <layer id="2" name="r" type="Result"> <input> ... </input> </layer>
      </layers>
      <edges> <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/> ... </edges>
    </net>

A `TensorIterator` or `Loop` has a `body` of the same form, an `If` has `then_body` and `else_body`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from memplan.base.errors import GraphError, listed, quoted
from memplan.base.files import of_file, read_text
from memplan.base.notes import Code, Note
from memplan.extensions.openvino.sizes import OpenSizes
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.programs.graph.checks import MAX_DEPTH
from memplan.programs.sources.loaded import Loaded, of_graph
from memplan.programs.sources.options import Options
from memplan.programs.sources.recognise import COMMENTS, is_text

__all__ = ["matches", "read"]

_VERSIONS: Final = ("10", "11")

# Precisions, each with its bits and NumPy's name or its own.
_TYPES: Final = {
    **{f"I{bits}": (bits, f"int{bits}") for bits in (4, 8, 16, 32, 64)},
    **{f"U{bits}": (bits, f"uint{bits}") for bits in (1, 2, 3, 4, 6, 8, 16, 32, 64)},
    **{f"FP{bits}": (bits, f"float{bits}") for bits in (16, 32, 64)},
    **dict.fromkeys(("BOOL", "BOOLEAN"), (8, "bool")),
    "BF16": (16, "bfloat16"),
    "NF4": (4, "nf4"),
    "F4E2M1": (4, "float4_e2m1fn"),
    "F8E4M3": (8, "float8_e4m3fn"),
    "F8E5M2": (8, "float8_e5m2"),
    "F8E8M0": (8, "float8_e8m0fnu"),
    "STRING": (0, "string"),
}
_ALIGNMENT: Final = 64  # bytes, of OpenVINO's own tensors
_PLANNED: Final = frozenset({Kind.OUTPUT, Kind.INTERMEDIATE})

# The result lies in the memory of the first input.
_VIEWS: Final = frozenset({"Assign", "Reshape", "Squeeze", "Unsqueeze"})
# The result may be written over one of the inputs: element i of it needs their element i alone.
_IN_PLACE: Final = {
    **dict.fromkeys(
        (
            *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceiling"),
            *("Clamp", "Convert", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu"),
            *("HSigmoid", "HSwish", "HardSigmoid", "Log", "LogicalNot", "Mish", "Negative"),
            *("PReLU", "ReLU", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "SoftPlus"),
            *("SoftSign", "Sqrt", "Swish", "Tan", "Tanh"),
        ),
        1,
    ),
    **dict.fromkeys(
        (
            *("Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Divide", "Equal", "FloorMod"),
            *("Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr"),
            *("LogicalXor", "Maximum", "Minimum", "Mod", "Multiply", "NotEqual", "Power"),
            *("SquaredDifference", "Subtract"),
        ),
        2,
    ),
}
# Their results are known once shapes are.
_SHAPE_ONLY: Final = frozenset({"ShapeOf"})
_RANDOM: Final = frozenset({"Multinomial", "RandomUniform"})
_LARGEST: Final = 1 << 62
_BODIES: Final = ("body", "then_body", "else_body")

_RUNTIME: Final = Note(
    Code.ORDER_OF_RUNTIME,
    "OpenVINO fuses operators and chooses their order and layouts when it compiles a model; this "
    "is the plan of the model in the file",
)

matches = is_text(rf"(?:<\?xml[^>]*>\s*)?{COMMENTS}<net\s+name=")


def read(path: Path, options: Options) -> Loaded:
    """Read a file; sizes that it leaves open are those of `options.dims`."""
    text = read_text(path)
    with of_file(path):
        reader = _Reader(OpenSizes(options.dims))
        graph = reader.graph(_parse(text), path.stem)
        return of_graph(
            graph, include=options.include, in_place=options.in_place, notes=reader.notes()
        )


def _parse(text: str) -> ElementTree.Element:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # a few bytes of entities expand to gigabytes
        raise GraphError("the file declares entities, which OpenVINO never does; it is not read")
    try:
        net = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        raise GraphError(
            f"the XML is damaged at line {line}, column {column + 1}; save the model again"
        ) from None
    version = net.get("version", "")
    if version not in _VERSIONS:
        raise GraphError(
            f"this is version {quoted(version)} of OpenVINO's format; versions 10 and 11 are read, "
            "so convert the original model again with openvino.convert_model"
        )
    return net


_Port = tuple[str, str]  # the ids of a layer and of a port of it


@dataclass
class _Net:
    """One net while it is read: the outermost one, or a body."""

    path: str  # leads to it from the outermost net, for which it is empty
    depth: int
    sources: dict[_Port, _Port]  # by input of a layer: the output of another one that it reads
    wanted: frozenset[_Port]  # outputs that are results of the net
    known: dict[_Port, int] = field(default_factory=dict)  # by output that was read: its tensor
    operators: list[Operator] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


@dataclass
class _Reader:
    sizes: OpenSizes
    tensors: list[Tensor] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)  # how often each was asked for
    opaque: list[str] = field(default_factory=list)

    def graph(self, root: ElementTree.Element, stem: str) -> Graph:
        """Return the graph of a model, of which `stem` is the name if it has none."""
        net = self.net(root, "", 0)
        self.sizes.check()
        return Graph(
            root.get("name") or stem,
            tuple(self.tensors),
            tuple(net.operators),
            tuple(net.inputs),
            tuple(dict.fromkeys(net.outputs)),
            tuple(self.views),
            alignment=_ALIGNMENT,
            planned=_PLANNED,
            source="openvino",
        )

    def notes(self) -> tuple[Note, ...]:
        found = (_RUNTIME, *self.sizes.notes())
        if not self.opaque:
            return found
        text = f"strings have no size in the file and are not planned: {listed(self.opaque)}"
        return *found, Note(Code.NOT_PLANNED, text, tuple(self.opaque))

    def net(self, root: ElementTree.Element, path: str, depth: int) -> _Net:
        """Read a net, in the order of the file, which is one in which its layers can run."""
        if depth > MAX_DEPTH:
            raise GraphError(f"the model has bodies nested more than {MAX_DEPTH} deep")
        layers = root.findall("layers/layer")
        sources = _index_edges(root)
        results = {_id(layer) for layer in layers if layer.get("type") == "Result"}
        wanted = frozenset(source for (id, _), source in sources.items() if id in results)
        net = _Net(path, depth, sources, wanted)
        for layer in layers:
            self.layer(layer, net)
        return net

    def layer(self, layer: ElementTree.Element, net: _Net) -> None:
        """Add what a layer makes, and the operator unless all is known before the run."""
        kind = layer.get("type", "")
        inputs = tuple(self.find(layer, port, net) for port in layer.findall("input/port"))
        folded = kind == "Const" or kind in _SHAPE_ONLY
        if inputs and kind not in _RANDOM:
            folded |= all(self.tensors[index].kind is Kind.CONSTANT for index in inputs)
        if kind == "Result":
            net.outputs += inputs
            return
        blocks = tuple(self.blocks(layer, net))
        role = self.role(kind, folded and not blocks, net)
        outputs = tuple(
            self.tensor(layer, port, role, net, inputs) for port in layer.findall("output/port")
        )
        if kind == "Parameter":
            net.inputs += outputs
        elif role is not Kind.CONSTANT:
            self.operator(layer, (inputs, outputs), blocks, net)

    def role(self, kind: str, folded: bool, net: _Net) -> Kind:
        """Return the kind of what a layer makes, unless it is a result of the model."""
        if folded:
            return Kind.CONSTANT
        if kind == "Parameter" and not net.path:
            return Kind.INPUT
        return Kind.VARIABLE if kind == "ReadValue" else Kind.INTERMEDIATE

    def operator(
        self,
        layer: ElementTree.Element,
        ends: tuple[tuple[int, ...], tuple[int, ...]],
        blocks: tuple[Block, ...],
        net: _Net,
    ) -> None:
        kind, (inputs, outputs) = layer.get("type", ""), ends
        in_place: tuple[tuple[int, int], ...] = ()
        if inputs and outputs:
            first = self.tensors[outputs[0]]
            same = [at for at in inputs if self.tensors[at].bytes == first.bytes]
            # A result of the model has memory of its own.
            if kind in _VIEWS and inputs[0] in same and first.kind is Kind.INTERMEDIATE:
                self.views.append(View(outputs[0], inputs[0]))
            elif kind in _IN_PLACE:
                able = [at for at in inputs[: _IN_PLACE[kind]] if at in same]
                shapes = {at for at in able if self.tensors[at].shape == first.shape}
                in_place = tuple((at, outputs[0]) for at in dict.fromkeys(able) if at in shapes)
        loop = bool(blocks) and kind != "If"
        name, space = layer.get("name", ""), layer.get("version", "opset")
        full = kind if space.startswith("opset") else f"{space}.{kind}"
        net.operators.append(
            Operator(name, full, inputs, outputs, in_place=in_place, blocks=blocks, loop=loop)
        )

    def blocks(self, layer: ElementTree.Element, net: _Net) -> Iterator[Block]:
        """Yield the bodies of a layer; what they take and return is copied, as OpenVINO does."""
        for name in _BODIES:
            body = layer.find(name)
            if body is not None:
                path = f"{net.path}{layer.get('name', '')}.{name}/"
                inner = self.net(body, path, net.depth + 1)
                made = {index for operator in inner.operators for index in operator.outputs}
                results = (index for index in inner.outputs if index in made)
                yield Block(
                    name, tuple(inner.operators), tuple(inner.inputs), tuple(dict.fromkeys(results))
                )

    def find(self, layer: ElementTree.Element, port: ElementTree.Element, net: _Net) -> int:
        """Return the tensor that an input of a layer reads."""
        at = _id(layer), port.get("id", "")
        where = f"input {at[1]} of layer {quoted(layer.get('name', ''))}"
        if at not in net.sources:
            raise GraphError(f"{where} has no edge; save the model again")
        if net.sources[at] not in net.known:
            raise GraphError(f"{where} comes from an output that no layer before it has")
        return net.known[net.sources[at]]

    def tensor(
        self,
        layer: ElementTree.Element,
        port: ElementTree.Element,
        role: Kind,
        net: _Net,
        inputs: tuple[int, ...],
    ) -> int:
        at, name = (_id(layer), port.get("id", "")), layer.get("name", "")
        where = f"output {at[1]} of layer {quoted(name)}"
        if at in net.known:
            raise GraphError(f"{where} is in the file twice; save the model again")
        if port.get("precision") not in _TYPES:
            given = quoted(port.get("precision", ""))
            raise GraphError(f"{where} has the precision {given}, whose size is not known")
        bits, dtype = _TYPES[port.get("precision", "")]
        shape = tuple(_number(dim.text, where) for dim in port.findall("dim"))
        if dtype == "string" and role is not Kind.CONSTANT:
            self.opaque.append(name)
        if at in net.wanted and not net.path and role is Kind.INTERMEDIATE:
            role = Kind.OUTPUT
        if len(layer.findall("output/port")) > 1:
            name += f":{at[1]}"
        name = self.make_distinct(net.path + name)
        read = [self.tensors[index].shape or () for index in inputs]
        shape = self.sizes.settle(name, layer, read, shape)
        size = max(0, -(-prod(shape) * bits // 8))
        self.tensors.append(Tensor(name, size, role, dtype, shape))
        net.known[at] = len(self.tensors) - 1
        return net.known[at]

    def make_distinct(self, name: str) -> str:
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else self.make_distinct(f"{name}'{count}")


def _id(layer: ElementTree.Element) -> str:
    return layer.get("id", "")


def _index_edges(root: ElementTree.Element) -> dict[_Port, _Port]:
    """Return by input of a layer the output that it reads."""
    found = {}
    for edge in root.findall("edges/edge"):
        ends = [edge.get(name, "") for name in ("from-layer", "from-port", "to-layer", "to-port")]
        found[ends[2], ends[3]] = ends[0], ends[1]
    return found


def _number(text: str | None, where: str) -> int:
    try:
        size = int(text or "")
    except ValueError:
        raise GraphError(f"{where} has the size {quoted(text or '')}, which is no number") from None
    if not -1 <= size <= _LARGEST:
        raise GraphError(f"{where} has the size {size}; it must be between 0 and 2^62")
    return size
