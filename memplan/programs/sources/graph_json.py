"""Reads and writes memplan's own graphs as JSON, for programs that no other source reads.

    {"memplan_graph": 1,
     "name": "net", "alignment": 16, "planned": ["input", "output", "intermediate", "workspace"],
     "inputs": ["x"], "outputs": ["y"],
     "tensors": [
       {"name": "x", "dtype": "float32", "shape": [1, 8]},
       {"name": "a", "bytes": 64, "pin": 0},
       {"name": "head", "bytes": 32},
       {"name": "y", "bytes": 32}],
     "views": [{"tensor": "head", "of": "a", "offset": 32}],
     "aliases": [],
     "operators": [
       {"type": "Gemm", "inputs": ["x"], "outputs": ["a"], "workspace": 256},
       {"name": "relu", "type": "Relu", "inputs": ["head"], "outputs": ["y"],
        "in_place": [["head", "y"]]}]}

The operators of a stream (`"stream": 1`) are in the order in which they run. Those of different
streams wait only for what they read, and may be listed in any order. An operator may have
`"blocks": [{"name", "inputs", "outputs", "operators"}, ...]`, which are branches or, with
`"loop": true`, the body of a loop; and `"module"` and `"line"`, its place in the user's code
("layer1.0.conv1", "model.py:41"). `"groups": [["g1", "g2"], ...]` are tensors that must lie side by
side. For bands, `"reads": [{"tensor", "rows", "columns"}, ...]` are the pictures that an operator
reads, with which rows and columns it needs of them for some of its first output (`_maps_json.py`),
or `"why_whole"` says why it needs all; `"macs"` are its multiplications, and `"row_axis": 1` is for
pictures whose channels come last. A field with its default value may be left out or `null`. Unknown
fields are rejected, so that no constraint is lost in silence. Numbers are whole, up to 2^62.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from memplan.base.errors import listed, quoted
from memplan.base.files import of_file, read_text
from memplan.problem.formats._fields import Fields, dumps, join, lines, shown
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.programs.graph.checks import MAX_DEPTH
from memplan.programs.graph.order import in_order
from memplan.programs.graph.pictures import UNKNOWN_ROWS, Read, Size, find_size, fits
from memplan.programs.sources._maps_json import format_map, read_map
from memplan.programs.sources.loaded import Loaded, of_graph
from memplan.programs.sources.options import Options

__all__ = ["BITS", "matches", "read", "read_graph", "write_graph"]

VERSION = 1

# Bits of an element, for tensors that have a type and a shape in place of their bytes.
BITS = {
    **dict.fromkeys(("int2", "uint2"), 2),
    **dict.fromkeys(("int4", "uint4", "float4_e2m1fn"), 4),
    **dict.fromkeys(("bool", "int8", "uint8"), 8),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), 8),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 16),
    **dict.fromkeys(("int32", "uint32", "float32"), 32),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 64),
    "complex128": 128,
}

_MAX_RANK = 64
_ROW_AXIS = 2  # where a file says nothing

_GRAPH = {
    **dict.fromkeys(("memplan_graph", "tensors", "operators"), True),
    **dict.fromkeys(("name", "source", "alignment", "planned"), False),
    **dict.fromkeys(("inputs", "outputs", "views", "aliases", "groups", "row_axis"), False),
}
_TENSOR = {"name": True, **dict.fromkeys(("bytes", "dtype", "shape", "kind", "pin"), False)}
_VIEW = {"tensor": True, "of": True, "offset": False}
_OPERATOR = {
    **dict.fromkeys(("name", "type", "inputs", "outputs", "stream", "workspace"), False),
    **dict.fromkeys(("in_place", "blocks", "loop", "module", "line"), False),
    **dict.fromkeys(("reads", "why_whole", "macs"), False),
}
_READ = {"tensor": True, "rows": True, "columns": True}
_BLOCK = dict.fromkeys(("name", "operators", "inputs", "outputs"), False)


def matches(head: bytes, path: Path) -> bool:
    """Return whether a file with this beginning is a graph of memplan."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and b'"memplan_graph"' in head


def read(path: Path, options: Options) -> Loaded:
    """Read a file."""
    graph = read_graph(read_text(path), str(path))
    with of_file(path):
        loaded = of_graph(
            graph, include=options.include, in_place=options.in_place, pins=options.pins
        )
    return replace(loaded, source="graph")


def read_graph(text: str, name: str) -> Graph:
    """Read a graph; a `FormatError` names the field, or the line where the text is not JSON."""
    with of_file(Path(name)):
        return _Reader(name).graph(text)


def write_graph(graph: Graph) -> str:
    """Format a graph, one tensor, view and outermost operator a line."""
    names = [tensor.name for tensor in graph.tensors]
    head: dict[str, object] = {"memplan_graph": VERSION}
    head |= _drop_defaults(name=graph.name, source=graph.source)
    head["alignment"] = graph.alignment
    head["planned"] = sorted(graph.planned)
    head["inputs"] = [names[index] for index in graph.inputs]
    head["outputs"] = [names[index] for index in graph.outputs]
    if graph.row_axis != _ROW_AXIS:
        head["row_axis"] = graph.row_axis
    parts = [f"{dumps(field)}: {dumps(value)}" for field, value in head.items()]
    parts.append(lines("tensors", map(_format_tensor, graph.tensors)))
    if graph.views:
        rows = ({"tensor": names[v.tensor], "of": names[v.base], "offset": v.offset}
                for v in graph.views)  # fmt: skip
        parts.append(lines("views", rows))
    if graph.aliases:
        parts.append(lines("aliases", ([names[a], names[b]] for a, b in graph.aliases)))
    if graph.groups:
        parts.append(lines("groups", ([names[index] for index in g] for g in graph.groups)))
    parts.append(lines("operators", (_format_operator(op, names) for op in graph.operators)))
    return join(parts)


class _Reader(Fields):
    """Reads a graph; errors give places in the document as `operators[3].inputs[0]`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._index: dict[str, int] = {}
        self._tensors: tuple[Tensor, ...] = ()
        self._row_axis = _ROW_AXIS

    def graph(self, text: str) -> Graph:
        document = self.parse(text)
        version = document.get("memplan_graph") if isinstance(document, dict) else None
        if version is None:
            raise self.error(
                f'the file is JSON, but not a graph: it does not contain "memplan_graph": {VERSION}'
            )
        if type(version) is not int or version != VERSION:
            raise self.error(
                f"the graph has version {shown(version)}; this memplan reads version {VERSION}"
            )
        self.check(document, "the document", _GRAPH)
        rows = self.objects(document["tensors"], "tensors", _TENSOR)
        for at, row in enumerate(rows):
            name = self.text(row, "name", f"tensors[{at}]")
            if not name or name in self._index:
                wrong = "another tensor has this name" if name else "every tensor needs a name"
                raise self.error(f"tensors[{at}].name is {shown(name)}; {wrong}")
            self._index[name] = at
        inputs = self.names(document.get("inputs"), "inputs")
        outputs = self.names(document.get("outputs"), "outputs")
        kinds = {**dict.fromkeys(outputs, Kind.OUTPUT), **dict.fromkeys(inputs, Kind.INPUT)}
        optional: dict[str, Any] = {}
        if (planned := document.get("planned")) is not None:
            kind_rows = enumerate(self.array(planned, "planned"))
            optional["planned"] = frozenset(self.kind(k, f"planned[{at}]") for at, k in kind_rows)
        view_rows = enumerate(self.objects(document.get("views") or [], "views", _VIEW))
        views = tuple(self.view(row, f"views[{at}]") for at, row in view_rows)
        tensors = self._tensors = tuple(
            self.tensor(row, f"tensors[{at}]", kinds.get(at)) for at, row in enumerate(rows)
        )
        self.check_bytes(tensors, {view.tensor for view in views})
        self._row_axis = self.whole(document, "row_axis", "the document", _ROW_AXIS)
        if self._row_axis not in (1, 2):
            raise self.error(f"the document.row_axis is {self._row_axis}; it must be 1 or 2")
        operators = self.operators(document["operators"], "operators", 0)
        return Graph(
            self.text(document, "name", "the document"),
            tensors,
            in_order(operators, views),
            inputs,
            outputs,
            views,
            self.pairs(document.get("aliases"), "aliases"),
            self.whole(document, "alignment", "the document", 1),
            source=self.text(document, "source", "the document"),
            groups=self.groups(document.get("groups"), "groups"),
            row_axis=self._row_axis,
            **optional,
        )

    def check_bytes(self, tensors: Sequence[Tensor], views: set[int]) -> None:
        """Reject tensors with fewer bytes than their elements take.

        More bytes may be padding. Views may repeat elements, and constants may be packed.
        """
        for at, tensor in enumerate(tensors):
            if at in views or tensor.kind is Kind.CONSTANT or tensor.shape is None:
                continue
            least = -(-prod(tensor.shape) * BITS.get(tensor.dtype, 0) // 8)
            if tensor.bytes < least:
                raise self.error(
                    f"tensors[{at}].bytes is {tensor.bytes}, but its dtype and shape take {least}: "
                    "correct one of them, or leave bytes out"
                )

    def tensor(self, row: dict[str, Any], where: str, named: Kind | None) -> Tensor:
        kind = named or Kind.INTERMEDIATE
        if row.get("kind") is not None:
            kind = self.kind(row["kind"], f"{where}.kind")
        dtype = self.text(row, "dtype", where)
        shape = self.shape(row.get("shape"), f"{where}.shape")
        if row.get("bytes") is not None:
            size = self.whole(row, "bytes", where, 0)
        elif shape is None or not dtype:
            raise self.error(f"{where} has no size: give bytes, or both dtype and shape")
        elif dtype not in BITS:
            raise self.error(
                f"{where}.dtype is {shown(dtype)}, of unknown size: "
                f"give bytes, or one of {listed(BITS, quote=False)}"
            )
        else:
            size = -(-prod(shape) * BITS[dtype] // 8)
        pin = None if row.get("pin") is None else self.whole(row, "pin", where, 0)
        return Tensor(row["name"], size, kind, dtype, shape, pin)

    def shape(self, value: object, where: str) -> tuple[int, ...] | None:
        if value is None:
            return None
        sides = self.array(value, where)
        if len(sides) > _MAX_RANK:
            raise self.error(f"{where} has {len(sides)} dimensions; at most {_MAX_RANK} are read")
        return tuple(self.number(side, f"{where}[{at}]") for at, side in enumerate(sides))

    def view(self, row: dict[str, Any], where: str) -> View:
        return View(
            self.index(row["tensor"], f"{where}.tensor"),
            self.index(row["of"], f"{where}.of"),
            self.whole(row, "offset", where, 0),
        )

    def operators(self, value: object, where: str, depth: int) -> tuple[Operator, ...]:
        if depth > MAX_DEPTH:
            raise self.error(f"the graph has blocks nested more than {MAX_DEPTH} deep")
        rows = self.objects([] if value is None else value, where, _OPERATOR)
        return tuple(self.operator(row, f"{where}[{at}]", depth) for at, row in enumerate(rows))

    def operator(self, row: dict[str, Any], where: str, depth: int) -> Operator:
        blocks = self.objects(row.get("blocks") or [], f"{where}.blocks", _BLOCK)
        outputs = self.names(row.get("outputs"), f"{where}.outputs")
        return Operator(
            name=self.text(row, "name", where),
            type=self.text(row, "type", where),
            inputs=self.names(row.get("inputs"), f"{where}.inputs"),
            outputs=outputs,
            stream=self.whole(row, "stream", where, 0),
            workspace=self.whole(row, "workspace", where, 0),
            in_place=self.pairs(row.get("in_place"), f"{where}.in_place"),
            blocks=tuple(
                self.block(b, f"{where}.blocks[{at}]", depth) for at, b in enumerate(blocks)
            ),
            loop=self.scalar(row.get("loop"), f"{where}.loop", bool) or False,
            module=self.text(row, "module", where),
            line=self.text(row, "line", where),
            **self.rows(row, where, outputs),
            macs=self.whole(row, "macs", where, 0),
        )

    def rows(self, row: dict[str, Any], where: str, outputs: tuple[int, ...]) -> dict[str, Any]:
        """Return what an operator says of the rows that it needs."""
        why = self.text(row, "why_whole", where)
        if row.get("reads") is None:
            return {"why_whole": why} if why else {}
        if why:
            raise self.error(f"{where} has reads and why_whole; give one of them")
        rows = self.objects(row["reads"], f"{where}.reads", _READ)
        result = self.size(outputs[0], f"{where}.outputs[0]") if outputs else None
        if result is None:
            raise self.error(f"{where} has reads, but no outputs")
        reads = (self.read(r, f"{where}.reads[{at}]", result) for at, r in enumerate(rows))
        return {"reads": tuple(reads), "why_whole": ""}

    def read(self, row: dict[str, Any], where: str, result: Size) -> Read:
        tensor = self.index(row["tensor"], f"{where}.tensor")
        size = self.size(tensor, f"{where}.tensor")
        maps = []
        for axis, field in enumerate(("rows", "columns")):
            rule = read_map(self, row[field], f"{where}.{field}")
            if not fits(rule, size[axis], result[axis]):
                raise self.error(
                    f"{where}.{field} does not make {result[axis]} {field} of {size[axis]}"
                )
            maps.append(rule)
        return Read(tensor, *maps)

    def size(self, tensor: int, where: str) -> Size:
        found = find_size(self._tensors[tensor].shape, self._row_axis)
        if found is None:
            name = quoted(self._tensors[tensor].name)
            raise self.error(
                f"{where} is {name}, which is no picture: a shape of four axes, the first one 1"
            )
        return found

    def block(self, row: dict[str, Any], where: str, depth: int) -> Block:
        return Block(
            self.text(row, "name", where),
            self.operators(row.get("operators"), f"{where}.operators", depth + 1),
            self.names(row.get("inputs"), f"{where}.inputs"),
            self.names(row.get("outputs"), f"{where}.outputs"),
        )

    def pairs(self, value: object, where: str) -> tuple[tuple[int, int], ...]:
        found = []
        for at, pair in enumerate(self.array([] if value is None else value, where)):
            names = self.names(pair, f"{where}[{at}]")
            if len(names) != 2:
                raise self.error(f"{where}[{at}] has {len(names)} names; it must have two")
            found.append((names[0], names[1]))
        return tuple(found)

    def groups(self, value: object, where: str) -> tuple[tuple[int, ...], ...]:
        rows = enumerate(self.array([] if value is None else value, where))
        return tuple(self.names(row, f"{where}[{at}]") for at, row in rows)

    def names(self, value: object, where: str) -> tuple[int, ...]:
        """Return the indices of the tensors that an array names."""
        listed = self.array([] if value is None else value, where)
        return tuple(self.index(name, f"{where}[{at}]") for at, name in enumerate(listed))

    def index(self, name: object, where: str) -> int:
        if type(name) is not str:
            raise self.error(f"{where} is {shown(name)}; it must be the name of a tensor")
        if name not in self._index:
            raise self.error(f"{where} is {shown(name)}; no tensor has this name")
        return self._index[name]

    def kind(self, value: object, where: str) -> Kind:
        if type(value) is not str or value not in list(Kind):
            raise self.error(f"{where} is {shown(value)}; it must be one of {', '.join(Kind)}")
        return Kind(value)

    def text(self, row: dict[str, Any], field: str, where: str) -> str:
        return self.scalar(row.get(field), f"{where}.{field}", str) or ""

    def whole(self, row: dict[str, Any], field: str, where: str, default: int) -> int:
        value = row.get(field)
        return default if value is None else self.number(value, f"{where}.{field}")


def _format_tensor(tensor: Tensor) -> dict[str, object]:
    row: dict[str, object] = {"name": tensor.name, "bytes": tensor.bytes}
    row["kind"] = str(tensor.kind)
    row |= _drop_defaults(dtype=tensor.dtype)
    if tensor.shape is not None:
        row["shape"] = tensor.shape
    if tensor.pin is not None:
        row["pin"] = tensor.pin
    return row


def _format_operator(operator: Operator, names: list[str]) -> dict[str, object]:
    def get_names(indices: Iterable[int]) -> list[str]:
        return [names[index] for index in indices]

    rows: dict[str, object] = {}
    if not operator.why_whole:
        rows["reads"] = [
            {
                "tensor": names[read.tensor],
                "rows": format_map(read.rows),
                "columns": format_map(read.columns),
            }
            for read in operator.reads
        ]
    elif operator.why_whole != UNKNOWN_ROWS:
        rows["why_whole"] = operator.why_whole
    common = _drop_defaults(
        name=operator.name,
        type=operator.type,
        inputs=get_names(operator.inputs),
        outputs=get_names(operator.outputs),
        stream=operator.stream,
        workspace=operator.workspace,
        in_place=[get_names(pair) for pair in operator.in_place],
        blocks=[
            _drop_defaults(
                name=block.name,
                inputs=get_names(block.inputs),
                outputs=get_names(block.outputs),
            )
            | {"operators": [_format_operator(inner, names) for inner in block.operators]}
            for block in operator.blocks
        ],
        loop=operator.loop,
        module=operator.module,
        line=operator.line,
        macs=operator.macs,
    )
    return common | rows


def _drop_defaults(**fields: object) -> dict[str, object]:
    """Return the fields that do not have their default value."""
    return {field: value for field, value in fields.items() if value}
