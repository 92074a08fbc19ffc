"""Checks attributes and constants of a model before anything reads them.

What onnxruntime refuses is refused here, in one sentence, for every command: an attribute of
another type, a window without a length, a constant whose data are not those of its shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Final

from memplan.base.errors import GraphError, quoted
from memplan.base.extras import require
from memplan.runtimes.onnx.read.protos import (
    STRING,
    bits_of,
    bytes_of,
    describe_node,
    dtype_of,
    opsets_of,
    row_of,
    walk_graphs,
)

__all__ = ["check_values"]

# The least value of attributes; each holds one for every axis of a window, or only one.
_LEAST: Final[Mapping[str, int]] = {
    **dict.fromkeys(("blocksize", "dilations", "group", "kernel_shape", "strides"), 1),
    "output_padding": 0,
}
_INT, _INTS = 2, 7  # of AttributeProto.AttributeType
_WINDOW: Final = ("kernel_shape", "strides", "dilations", "output_padding")
_AUTO_PADS: Final = (b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID")
# Fields of a tensor that hold its elements, and how many bits of an element each holds.
_FIELDS: Final[Mapping[str, int]] = {
    "float_data": 32,
    "int32_data": 32,
    "int64_data": 64,
    "double_data": 64,
    "uint64_data": 64,
}


def check_values(model: Any) -> None:
    """Raise `GraphError` if an attribute or a constant of a model is not what ONNX says it is.

    The model has no functions of its own. Data that were left out of a constant are not missed.
    """
    opsets = opsets_of(model)
    for graph in walk_graphs(model.graph):
        for one in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
            _check_tensor(one, f"tensor {quoted(one.name)}")
        for node in graph.node:
            _check_node(node, opsets)


def _check_node(node: Any, opsets: Mapping[str, int]) -> None:
    domain = "" if node.domain == "ai.onnx" else node.domain
    where = describe_node(node)
    schema = _find_schema(node.op_type, opsets.get(domain, 1), domain)
    for one in node.attribute:
        if one.ref_attr_name:
            raise GraphError(
                f"{where} takes its attribute {quoted(one.name)} from a function, but is in none"
            )
        for tensor in ([one.t] if one.HasField("t") else []) + list(one.tensors):
            _check_tensor(tensor, f"attribute {quoted(one.name)} of {where}")
    if schema is not None:
        for fault in _iterate_misfits(node, schema):
            raise GraphError(f"{where} {fault}")
    if not domain:
        for fault in _iterate_impossible(node):
            raise GraphError(f"{where} {fault}")


class _Schema:
    """What ONNX says of an operator: how many inputs and results, and types of attributes."""

    def __init__(self, schema: Any) -> None:
        self.inputs = (schema.min_input, schema.max_input)
        self.outputs = (schema.min_output, schema.max_output)
        self.types = {name: _number(one.type) for name, one in schema.attributes.items()}
        self.required = [name for name, one in schema.attributes.items() if one.required]


def _number(kind: Any) -> int:
    return int(getattr(kind, "value", kind))


@lru_cache(maxsize=4096)
def _find_schema(kind: str, version: int, domain: str) -> _Schema | None:
    try:
        return _Schema(require("onnx.defs", extra="onnx").get_schema(kind, version, domain))
    except Exception:  # the native library raises types of its own: it has no such operator
        return None


def _iterate_misfits(node: Any, schema: _Schema) -> Iterator[str]:
    """Yield what an operator has that ONNX does not say of it."""
    for given, (least, most), what in (
        (node.input, schema.inputs, "inputs"),
        (node.output, schema.outputs, "outputs"),
    ):
        if not least <= len(given) <= most:
            more = f"from {least} to {most}" if least < most < 2**31 - 1 else f"{least} or more"
            more = str(least) if least == most else more
            yield f"has {len(given)} {what}; it must have {more}"
    there = set()
    for one in node.attribute:
        wanted = schema.types.get(one.name)
        there.add(one.name)
        if wanted is not None and one.type != wanted:
            names = require("onnx", extra="onnx").AttributeProto.AttributeType.Name
            yield (
                f"has an attribute {quoted(one.name)} of the type {names(one.type)}; it must be "
                f"{names(wanted)}"
            )
    for name in schema.required:
        if name not in there:
            yield f"has no attribute {quoted(name)}, which it needs"


def _iterate_impossible(node: Any) -> Iterator[str]:
    """Yield values of attributes with which no operator can run."""
    lengths: dict[str, int] = {}
    for one in node.attribute:
        name, values = one.name, list(one.ints) if one.type == _INTS else [one.i]
        if one.type in (_INT, _INTS) and values and min(values) < _LEAST.get(name, min(values)):
            yield f"has {_format(values)} as {quoted(name)}; none may be below {_LEAST[name]}"
        if not row_of(node).is_windowed:
            continue
        if name == "auto_pad" and one.s not in _AUTO_PADS:
            yield f"has an unknown {quoted(name)}, {quoted(one.s.decode(errors='replace'))}"
        if name in _WINDOW and values:
            lengths[name] = 2 * len(values)
        if name == "pads" and values:
            lengths[name] = len(values)
    if len(set(lengths.values())) > 1:
        least, most = (find(lengths, key=lengths.__getitem__) for find in (min, max))
        yield f"has {quoted(least)} and {quoted(most)} for a different number of axes"


def _format(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:6]))
    return f"[{shown}]" if len(values) <= 6 else f"[{shown}, ...]"


def _check_tensor(tensor: Any, where: str) -> None:
    """Raise `GraphError` if the data of a tensor are not those of its type and shape."""
    if any(size < 0 for size in tensor.dims):
        raise GraphError(f"{where} has a negative size in its shape {_format(list(tensor.dims))}")
    if dtype_of(tensor.data_type) is None or tensor.data_location == 1:
        return  # the first is told where the tensor is used
    count, shape = prod(tensor.dims), tuple(tensor.dims)
    given: list[tuple[int, int, str]] = []  # what is there, what must be, and of what
    if tensor.HasField("raw_data"):
        given.append((len(tensor.raw_data), bytes_of(tensor.data_type, shape), "bytes"))
    if tensor.data_type == STRING:
        given = [(len(tensor.string_data), count, "texts")]
    for name, width in _FIELDS.items():
        held = getattr(tensor, name)
        if held:
            bits = bits_of(tensor.data_type)
            # Small elements have a number each; those below a byte are packed as in raw data.
            wanted = -(-count * bits // width) if bits > width else count
            wanted = -(-count * bits // 8) if bits < 8 else wanted
            given.append((len(held), wanted, "numbers"))
    for there, must, what in given:
        if there and there != must:
            raise GraphError(
                f"{where} has {there} {what} of data; its type and its shape "
                f"{_format(list(shape))} have {must}"
            )
