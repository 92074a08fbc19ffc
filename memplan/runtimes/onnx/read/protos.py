"""Access to the messages of ONNX: graphs inside of graphs, attributes, weights, and types."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from math import prod
from typing import Any

from memplan.base.errors import quoted
from memplan.base.extras import require
from memplan.runtimes.onnx.operators import Row, find_row

__all__ = [
    "STRING",
    "add_weight",
    "bits_of",
    "bytes_of",
    "copy",
    "describe_node",
    "dtype_of",
    "element_of",
    "has_subgraphs",
    "initializers",
    "is_known",
    "is_standard",
    "known_shape",
    "make_type",
    "number",
    "numbers",
    "opsets_of",
    "row_of",
    "subgraphs",
    "tensor_type",
    "type_of",
    "types_in",
    "types_of",
    "walk_graphs",
    "walk_nodes",
]

STRING = 8
_SEPARATE = 4  # the version from which on weights are no inputs
_KIND = 30  # characters of an operator's type that a sentence has

# By number of `TensorProto.DataType`, also of types that an old version of the library lacks.
_TYPES: dict[int, tuple[str, int]] = {
    1: ("float32", 32),
    2: ("uint8", 8),
    3: ("int8", 8),
    4: ("uint16", 16),
    5: ("int16", 16),
    6: ("int32", 32),
    7: ("int64", 64),
    STRING: ("string", 0),  # objects elsewhere on the heap
    9: ("bool", 8),
    10: ("float16", 16),
    11: ("float64", 64),
    12: ("uint32", 32),
    13: ("uint64", 64),
    14: ("complex64", 64),
    15: ("complex128", 128),
    16: ("bfloat16", 16),
    17: ("float8e4m3fn", 8),
    18: ("float8e4m3fnuz", 8),
    19: ("float8e5m2", 8),
    20: ("float8e5m2fnuz", 8),
    21: ("uint4", 4),
    22: ("int4", 4),
    23: ("float4e2m1", 4),
    24: ("float8e8m0", 8),
    25: ("uint2", 2),
    26: ("int2", 2),
    27: ("float6e2m3", 6),
    28: ("float6e3m2", 6),
}


def copy(message: Any) -> Any:
    """Return a copy of a message, which outlives the one around the original."""
    made = type(message)()
    made.CopyFrom(message)
    return made


# Operators


def is_standard(node: Any) -> bool:
    """Return whether an operator is one of ONNX itself."""
    return node.domain in ("", "ai.onnx")


def type_of(node: Any) -> str:
    """Return the type of an operator as a graph has it, with its domain."""
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)


def row_of(node: Any) -> Row:
    """Return what is known of an operator."""
    return find_row(node.op_type if is_standard(node) else type_of(node))


def describe_node(node: Any) -> str:
    """Return an operator in words."""
    kind = quoted(node.op_type)[1:-1][:_KIND]
    return f"operator {quoted(node.name or node.op_type)} ({kind})"


def subgraphs(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the graphs inside of a node, with the names of their attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def has_subgraphs(node: Any) -> bool:
    """Return whether there are graphs inside of a node."""
    return any(True for _ in subgraphs(node))


def walk_graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph (or function), and those inside, each behind the one around it."""
    yield graph
    for node in graph.node:
        for _, inner in subgraphs(node):
            yield from walk_graphs(inner)


def walk_nodes(graph: Any) -> Iterator[Any]:
    """Yield the operators of a graph (or function), and behind each those inside of it."""
    for node in graph.node:
        yield node
        for _, inner in subgraphs(node):
            yield from walk_nodes(inner)


def number(node: Any, name: str, default: int = 0) -> int:
    """Return an attribute of an operator, or its default."""
    return next((int(one.i) for one in node.attribute if one.name == name), default)


def numbers(node: Any, name: str) -> list[int]:
    """Return an attribute of an operator that is a list; empty if it is left out."""
    return next((list(map(int, one.ints)) for one in node.attribute if one.name == name), [])


# Weights and types


def initializers(graph: Any) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return element type and shape of the weights of a graph, also of those stored sparsely."""
    found = {one.name: (one.data_type, tuple(one.dims)) for one in graph.initializer}
    for one in graph.sparse_initializer:
        found[one.values.name] = (one.values.data_type, tuple(one.dims))
    return found


def add_weight(model: Any, weight: Any) -> None:
    """Add a weight to the outermost graph; before version 4 of the format it is an input too."""
    model.graph.initializer.append(weight)
    if model.ir_version < _SEPARATE:
        declared = model.graph.input.add(name=weight.name).type
        declared.CopyFrom(make_type(weight.data_type, tuple(weight.dims)))


def dtype_of(number: int) -> str | None:
    """Return the name of an element type, or `None` for one that ONNX does not have."""
    return _TYPES[number][0] if number in _TYPES else None


def element_of(dtype: str) -> int | None:
    """Return the number of an element type, by its name; `None` for one that ONNX does not have."""
    return next((number for number, (name, _) in _TYPES.items() if name == dtype), None)


def bits_of(number: int) -> int:
    """Return the bits of an element of a type that ONNX has."""
    return _TYPES[number][1]


def bytes_of(number: int, shape: tuple[int, ...]) -> int:
    """Return the bytes of a tensor; types below a byte are packed, and the last byte padded."""
    return -(-prod(shape) * _TYPES[number][1] // 8)


def opsets_of(model: Any) -> dict[str, int]:
    """Return the versions of the domains that a model uses; that of ONNX is ""."""
    return {
        "" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import
    }


def types_of(graph: Any) -> dict[str, Any]:
    """Return the types that a graph declares for its values, by name."""
    values = (*graph.value_info, *graph.output, *graph.input)
    return {value.name: value.type for value in values if value.name}


def types_in(graph: Any, outside: ChainMap[str, Any]) -> ChainMap[str, Any]:
    """Return the types of the values and weights of a graph, and of those around it."""
    types = outside.new_child(types_of(graph))
    for name, weight in initializers(graph).items():
        types[name] = make_type(*weight)
    return types


def make_type(element: int, shape: tuple[int, ...]) -> Any:
    """Return the type of a tensor with all sizes."""
    return require("onnx.helper", extra="onnx").make_tensor_type_proto(element, shape)


def tensor_type(declared: Any | None) -> Any | None:
    """Return the type of a tensor (also of one that may be absent), `None` for other values."""
    if declared is None:
        return None
    if declared.HasField("optional_type"):
        declared = declared.optional_type.elem_type
    return declared.tensor_type if declared.HasField("tensor_type") else None


def is_known(declared: Any | None) -> bool:
    """Whether no size is to be found: it is known, or the value is a sequence or a text."""
    if declared is None:
        return False
    one = tensor_type(declared)
    if one is None:
        return bool(declared.WhichOneof("value"))
    return one.elem_type != 0 and known_shape(declared) is not None


def known_shape(declared: Any | None) -> tuple[int, ...] | None:
    """Return the shape of a tensor, if all of it is known."""
    one = tensor_type(declared)
    if one is None or not one.HasField("shape"):
        return None
    if not all(dim.HasField("dim_value") for dim in one.shape.dim):
        return None
    return tuple(dim.dim_value for dim in one.shape.dim)
