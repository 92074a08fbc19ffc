"""The wire format of protocol buffers: the fields of a message, and numbers of any length."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "LENGTH",
    "VARINT",
    "Field",
    "WireError",
    "encode_varint",
    "iterate_fields",
    "read_varint",
]

VARINT, LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}  # by kind: the bytes of a number


class WireError(ValueError):
    """Bytes that are no protocol buffer; the text goes after "the file "."""


class Field(NamedTuple):
    """A field of a message, by its places in the data."""

    number: int
    wire: int
    start: int  # of its tag
    body: int  # of what it holds
    end: int


def iterate_fields(data: bytes | mmap.mmap, begin: int, end: int) -> Iterator[Field]:
    """Yield the fields of a message; raises `WireError` where it is none."""
    at = begin
    while at < end:
        start = at
        tag, at = read_varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"is not a protocol buffer: no field begins at byte {start}")
        body = at
        if wire == VARINT:
            _, at = read_varint(data, at, end)
        elif wire == LENGTH:
            size, body = read_varint(data, at, end)
            at = body + size
        elif wire in _FIXED:
            at += _FIXED[wire]
        else:
            raise WireError(f"is not a protocol buffer: no field begins at byte {start}")
        if at > end:
            raise WireError(f"is cut off: the field at byte {start} ends {at - end} bytes later")
        yield Field(number, wire, start, body, at)


def read_varint(data: bytes | mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """Return a number and where it ends; raises `WireError` where it does not."""
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


def encode_varint(value: int) -> bytes:
    """Return the bytes of a number."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
