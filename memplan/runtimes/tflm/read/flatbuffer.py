"""FlatBuffers, read with every offset checked.

The runtime library of FlatBuffers has no verifier in Python, and follows every offset that a file
holds. This module never reads outside of the file, refuses vectors longer than the file, and visits
no more bytes than the file has, so a damaged file leads to an error of one sentence.

    table ──► -soffset ──► vtable: [its bytes][the table's bytes][offset of field 0][of field 1]...
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memplan.base.errors import FormatError

__all__ = ["Table", "root"]

_U16: Final = struct.Struct("<H")
_I32: Final = struct.Struct("<i")
_U32: Final = struct.Struct("<I")
_SCALARS: Final = {"b": 1, "B": 1, "i": 4, "I": 4, "Q": 8}
_SMALLEST: Final = 8  # a root offset and a file identifier


class _File:
    """The bytes, and how much may still be visited."""

    __slots__ = ("_left", "data", "name")

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        # An element of a vector takes four bytes. Vectors may share bytes, but this limit keeps
        # nested vectors over the same bytes from multiplying the work.
        self._left = len(data)

    def fail(self, sentence: str) -> FormatError:
        return FormatError(self.name, f"the file is damaged or cut off: {sentence}")

    def require(self, what: str, at: int, size: int) -> None:
        if not 0 <= at <= at + size <= len(self.data):
            raise self.fail(f"{what} at byte {at} ends after its last byte ({len(self.data)})")

    def visit(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise self.fail("its tables refer to the same bytes too many times")

    def u32(self, what: str, at: int) -> int:
        self.require(what, at, 4)
        return int(_U32.unpack_from(self.data, at)[0])


class Table:
    """A table of a file; fields are named by their slot in the schema."""

    __slots__ = ("_file", "_size", "_vtable", "_vtable_size", "at")

    def __init__(self, file: _File, at: int) -> None:
        file.visit(1)
        file.require("a table", at, 4)
        self._file = file
        self.at = at
        self._vtable = at - _I32.unpack_from(file.data, at)[0]
        file.require("the layout of a table", self._vtable, 4)
        self._vtable_size = _U16.unpack_from(file.data, self._vtable)[0]
        self._size = _U16.unpack_from(file.data, self._vtable + 2)[0]
        file.require("the layout of a table", self._vtable, self._vtable_size)
        file.require("a table", at, self._size)

    def _field(self, slot: int, size: int) -> int | None:
        """Return where a field is, or `None` where the file leaves it at its default."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return None
        offset = _U16.unpack_from(self._file.data, self._vtable + entry)[0]
        if offset == 0:
            return None
        if not 4 <= offset <= offset + size <= self._size:
            raise self._file.fail(f"a field of the table at byte {self.at} is outside of it")
        return self.at + int(offset)

    def fields(self) -> dict[int, int]:
        """Return by slot where the fields are, without absent ones."""
        slots = range((self._vtable_size - 4) // 2)
        return {slot: at for slot in slots if (at := self._field(slot, 1)) is not None}

    def number(self, slot: int, kind: str, default: int = 0) -> int:
        """Return a scalar; `kind` is a letter of `struct`."""
        at = self._field(slot, _SCALARS[kind])
        if at is None:
            return default
        return int(struct.unpack_from(f"<{kind}", self._file.data, at)[0])

    def table(self, slot: int) -> Table | None:
        """Return a table that this one refers to."""
        at = self.target(slot)
        return None if at is None else Table(self._file, at)

    def tables(self, slot: int) -> Iterator[Table]:
        """Yield the tables of a vector of them."""
        at, count = self.vector(slot, 4)
        for entry in range(at, at + 4 * count, 4):
            yield Table(self._file, entry + self._file.u32("a table", entry))

    def numbers(self, slot: int) -> tuple[int, ...] | None:
        """Return a vector of `int32`; `None` where there is none."""
        if self.target(slot) is None:
            return None
        at, count = self.vector(slot, 4)
        self._file.visit(count)
        return tuple(np.frombuffer(self._file.data, "<i4", count, at).tolist())

    def raw(self, slot: int) -> NDArray[Any]:
        """Return a vector of bytes, shape (bytes,), without a copy of it."""
        at, count = self.vector(slot, 1)
        return np.frombuffer(self._file.data, np.uint8, count, at)

    def length(self, slot: int) -> int:
        """Return how many entries a vector of tables has."""
        return self.vector(slot, 4)[1]

    def text(self, slot: int) -> str:
        """Return a string; bytes that are not UTF-8 are replaced, as names need not be valid."""
        raw = self.raw(slot)
        self._file.visit(len(raw) // 4)
        return raw.tobytes().decode("utf-8", errors="replace")

    def target(self, slot: int) -> int | None:
        """Return where a field leads to, or `None` where there is none."""
        at = self._field(slot, 4)
        return None if at is None else at + self._file.u32("an offset", at)

    def vector(self, slot: int, size: int) -> tuple[int, int]:
        """Return where the entries of a vector begin, and how many there are."""
        at = self.target(slot)
        if at is None:
            return 0, 0
        count = self._file.u32("a vector", at)
        self._file.require(f"a vector of {count} entries", at + 4, size * count)
        return at + 4, count


def root(data: bytes, name: str, identifier: bytes) -> Table:
    """Return the outermost table of a file.

    A `FormatError` says that the file is too short, or not of this kind; and later, from the table,
    where an offset leads out of the file.
    """
    if len(data) < _SMALLEST:
        raise FormatError(name, f"the file has {len(data)} bytes, too few for any model")
    if data[4:8] != identifier:
        raise FormatError(name, f"this is not a {identifier.decode()} FlatBuffers file")
    file = _File(data, name)
    return Table(file, file.u32("the model", 0))
