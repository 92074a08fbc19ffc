"""Reads protocol buffers without the weights, which are most of a file and not needed here."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from memplan.errors import quoted
from memplan.sources.onnx.protos import STRING, bits_of, bytes_of, dtype_of

__all__ = ["Field", "WireError", "iterate_fields", "looks_like_model", "strip_weights"]

# Tensors up to this many bytes keep their data, as shapes are computed from small constants.
_KEPT = 4096
# The library's own parser refuses messages that are nested deeper than this.
_DEEPEST = 100

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}

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
    **dict.fromkeys((1, 5), _VARINT),  # ir_version, model_version
    **dict.fromkeys((2, 3, 4, 6, _GRAPH, 8, 14, _TRAINING, 25, 26), _LENGTH),
}
_GRAPH_FIELDS = frozenset({1, 2, 5, 8, 10, 11, 12, 13, 14, 15, 16})


class WireError(ValueError):
    """Bytes that are no protocol buffer; the text goes after "the file "."""


class Field(NamedTuple):
    """A field of a message, by its places in the data."""

    number: int
    wire: int
    start: int  # of its tag
    body: int  # of what it holds
    end: int


def strip_weights(data: bytes | mmap.mmap) -> bytes:
    """Return a serialized `ModelProto` without the data of its weights.

    Names, types and shapes of all tensors stay. Data that is left out is never read, so it does
    not become resident if the file is mapped into memory.

    Raises
    ------
    WireError
        If the bytes end early, or are no protocol buffer.
    """
    return _strip(data, 0, len(data), "model", 0)


def _strip(data: bytes | mmap.mmap, begin: int, end: int, message: str, depth: int) -> bytes:
    if depth > _DEEPEST:
        raise WireError(f"nests messages more than {_DEEPEST} deep")
    inner = _INNER[message]
    pieces: list[bytes] = []
    kept = begin  # everything before it is in `pieces`, or left out
    for field in iterate_fields(data, begin, end):
        if field.wire != _LENGTH or field.end - field.body <= _KEPT:
            continue  # a field this small holds no data worth leaving out
        if field.number in inner:
            part = _strip(data, field.body, field.end, inner[field.number], depth + 1)
            tag = _varint_bytes(field.number << 3 | _LENGTH)
            pieces += [data[kept : field.start], tag, _varint_bytes(len(part)), part]
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
        elif field.number == _ELEMENT and field.wire == _VARINT:
            element = _varint(data, field.body, field.end)[0]
        elif field.number == _SIZES:  # each by itself, or all in one field
            at = field.body
            while at < field.end:
                size, at = _varint(data, at, field.end)
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


def iterate_fields(data: bytes | mmap.mmap, begin: int, end: int) -> Iterator[Field]:
    """Yield the fields of a message; raises `WireError` as `strip_weights`."""
    at = begin
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"is not a protocol buffer: no field begins at byte {start}")
        body = at
        if wire == _VARINT:
            _, at = _varint(data, at, end)
        elif wire == _LENGTH:
            size, body = _varint(data, at, end)
            at = body + size
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise WireError(f"is not a protocol buffer: no field begins at byte {start}")
        if at > end:
            raise WireError(f"is cut off: the field at byte {start} ends {at - end} bytes later")
        yield Field(number, wire, start, body, at)


def _varint(data: bytes | mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise WireError(f"is cut off at byte {end}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise WireError(f"is not a protocol buffer: the number before byte {at} does not end")


def _varint_bytes(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def looks_like_model(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a `ModelProto`.

    All fields have to be fields of a model, with the right types, up to a graph, of which the
    first field has to be one of a graph.
    """
    at = 0
    try:
        while at < len(head):
            tag, body = _varint(head, at, len(head))
            number, wire = tag >> 3, tag & 7
            if _MODEL_FIELDS.get(number) != wire:
                return False
            value, at = _varint(head, body, len(head))  # the number itself, or a length
            if number == _GRAPH:
                tag, _ = _varint(head, at, len(head))
                return value > 0 and tag & 7 == _LENGTH and tag >> 3 in _GRAPH_FIELDS
            if wire == _LENGTH:
                at += value
    except WireError:
        return False
    return False
