"""Reads protocol buffers without the weights, which are most of a file and not needed here."""

from __future__ import annotations

import mmap
from math import prod

from memplan.base.errors import quoted
from memplan.programs.sources.wire import (
    LENGTH,
    VARINT,
    Field,
    WireError,
    encode_varint,
    iterate_fields,
    read_varint,
)
from memplan.runtimes.onnx.read.protos import STRING, bits_of, bytes_of, dtype_of

__all__ = ["looks_like_model", "strip_weights"]

# Tensors up to this many bytes keep their data, as shapes are computed from small constants.
_KEPT = 4096
# The library's own parser refuses messages that are nested deeper than this.
_DEEPEST = 100

# By message: the fields that can lead to weights, by their numbers in onnx.proto.
_INNER: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
# float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data
_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})
# raw_data, and those of which every element has the same number of bytes: float_data, double_data
_WIDTHS = {9: 1, 4: 4, 10: 8}
_SIZES, _ELEMENT, _NAME = 1, 2, 8  # of a tensor
_TRAINING = 20  # a field of the model: graphs for training, which inference never runs

_GRAPH = 7
_MODEL_FIELDS = {
    **dict.fromkeys((1, 5), VARINT),  # ir_version, model_version
    **dict.fromkeys((2, 3, 4, 6, _GRAPH, 8, 14, _TRAINING, 25, 26), LENGTH),
}
_GRAPH_FIELDS = frozenset({1, 2, 5, 8, 10, 11, 12, 13, 14, 15, 16})


def strip_weights(data: bytes | mmap.mmap) -> bytes:
    """Return a serialized `ModelProto` without the data of its weights.

    Names, types and shapes of all tensors stay. Data that is left out is never read, so it does not
    become resident if the file is mapped into memory. A `WireError` says that the bytes end early,
    or are no protocol buffer.
    """
    return _strip(data, 0, len(data), "model", 0)


def _strip(data: bytes | mmap.mmap, begin: int, end: int, message: str, depth: int) -> bytes:
    if depth > _DEEPEST:
        raise WireError(f"nests messages more than {_DEEPEST} deep")
    inner = _INNER[message]
    pieces: list[bytes] = []
    kept = begin  # everything before it is in `pieces`, or left out
    for field in iterate_fields(data, begin, end):
        if field.wire != LENGTH or field.end - field.body <= _KEPT:
            continue  # a field this small holds no data worth leaving out
        if field.number in inner:
            part = _strip(data, field.body, field.end, inner[field.number], depth + 1)
            tag = encode_varint(field.number << 3 | LENGTH)
            pieces += [data[kept : field.start], tag, encode_varint(len(part)), part]
        elif _is_left_out(message, field.number):
            if message == "tensor" and field.number in _WIDTHS:
                _check_data(data, begin, end, field)
            pieces.append(data[kept : field.start])
        else:
            continue
        kept = field.end
    return b"".join([*pieces, data[kept:end]])


def _is_left_out(message: str, number: int) -> bool:
    if message == "tensor":
        return number in _DATA
    return message == "model" and number == _TRAINING


def _check_data(data: bytes | mmap.mmap, begin: int, end: int, held: Field) -> None:
    """Raise `WireError` if the data of a tensor are not those of its type and shape."""
    name, element, sizes, count = "", 0, [], 0
    for field in iterate_fields(data, begin, end):
        if field.number == _NAME:
            name = bytes(data[field.body : field.end]).decode(errors="replace")
        elif field.number == _ELEMENT and field.wire == VARINT:
            element = read_varint(data, field.body, field.end)[0]
        elif field.number == _SIZES:  # each by itself, or all in one field
            at = field.body
            while at < field.end:
                size, at = read_varint(data, at, field.end)
                sizes.append(size)
        count += field.number == held.number
    if dtype_of(element) is None or element == STRING or count > 1:
        return
    there, width = held.end - held.body, _WIDTHS[held.number]
    wanted = bytes_of(element, tuple(sizes)) if width == 1 else prod(sizes) * bits_of(element) // 8
    if there != wanted:
        raise WireError(
            f"has {there} bytes of data for tensor {quoted(name)}; its type and its shape have "
            f"{wanted}"
        )


def looks_like_model(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a `ModelProto`.

    All fields have to be fields of a model, with the right types, up to a graph, of which the
    first field has to be one of a graph.
    """
    at = 0
    try:
        while at < len(head):
            tag, body = read_varint(head, at, len(head))
            number, wire = tag >> 3, tag & 7
            if _MODEL_FIELDS.get(number) != wire:
                return False
            value, at = read_varint(head, body, len(head))  # the number itself, or a length
            if number == _GRAPH:
                tag, _ = read_varint(head, at, len(head))
                return value > 0 and tag & 7 == LENGTH and tag >> 3 in _GRAPH_FIELDS
            if wire == LENGTH:
                at += value
    except WireError:
        return False
    return False
