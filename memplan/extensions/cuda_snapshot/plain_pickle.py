"""Pickles of plain data, read without the `pickle` module.

This is the stack machine that `pickletools` documents, with only the opcodes that make
dictionaries with plain keys, lists, tuples, strings, numbers, booleans and `None`. It has no
opcode that names a class or calls anything, so a file cannot make it run code. A size in the file
is rejected if the file has fewer bytes.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["PickleError", "load"]

_MAX_INT_BYTES = 16  # of a number; those of a snapshot need eight
# Python hashes numbers modulo a prime above 2^60. Many larger keys could all collide, and make a
# dictionary take quadratic time.
_LARGE_KEY = 1 << 60
_MAX_LARGE_KEYS = 1000
_KEYS = frozenset({str, int, bool, float, type(None)})

# Opcodes that find a class, call it, or set the state of its instance.
_RUNS = frozenset(b"ciobR\x81\x92\x93\x82\x83\x84PQ")


class PickleError(ValueError):
    """An error for bytes that are not a pickle of plain data; the sentence says why."""


def load(data: bytes) -> Any:
    """Return the object in a pickle of plain data; a `PickleError` says that it is none."""
    return _Machine(data).run()


class _Machine:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []  # the values above the last mark
        self._below: list[list[Any]] = []  # the values below each mark
        self._memo: list[Any] = []
        self._large_keys = 0

    def run(self) -> Any:
        data, steps = self._data, _STEPS
        try:
            while (code := data[self._at]) != 0x2E:  # STOP
                self._at += 1
                step = steps.get(code)
                if step is None:
                    raise PickleError(_explain_rejection(code))
                step(self)
        except IndexError:  # of the data, or of the stack
            raise PickleError("the pickle is cut off, or damaged") from None
        if len(self._stack) != 1 or self._below:
            raise PickleError("the pickle is damaged: it ends with more or less than one value")
        return self._stack[0]

    # Reading the arguments of opcodes

    def take(self, count: int) -> bytes:
        start = self._at
        self._at = end = start + count
        if end > len(self._data):
            raise PickleError("the pickle is cut off")
        return self._data[start:end]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    # The effects of opcodes

    def mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def pop_marked(self) -> list[Any]:
        """Remove the last mark and the values above it, and return these."""
        values, self._stack = self._stack, self._below.pop()
        return values

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop()

    def string(self, width: int) -> None:
        try:
            self._stack.append(self.take(self.number(width)).decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise PickleError("the pickle is damaged: it has text that is not UTF-8") from None

    def signed(self, count: int) -> None:
        if count > _MAX_INT_BYTES:
            raise PickleError(f"the pickle is damaged: it has a number of {count} bytes")
        self._stack.append(int.from_bytes(self.take(count), "little", signed=True))

    def float(self) -> None:
        self._stack.append(struct.unpack(">d", self.take(8))[0])

    def tuple(self, count: int) -> None:
        parts = [self._stack.pop() for _ in range(count)]
        self._stack.append(tuple(reversed(parts)))

    def append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise PickleError("the pickle is damaged: it appends to a value that is not a list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        target, keys = self._stack[-1], values[::2]
        if type(target) is not dict or len(values) % 2:
            raise PickleError("the pickle is damaged: it has keys without values or dictionary")
        if not _KEYS.issuperset(map(type, keys)):
            raise PickleError("the pickle has a dictionary with keys other than text and numbers")
        self._large_keys += sum(type(key) is int and abs(key) > _LARGE_KEY for key in keys)
        if self._large_keys > _MAX_LARGE_KEYS:
            raise PickleError(f"the pickle has more than {_MAX_LARGE_KEYS:,} keys beyond 2^60")
        target.update(zip(keys, values[1::2], strict=True))

    def memoize(self) -> None:
        self._memo.append(self._stack[-1])

    def memoize_at(self, at: int) -> None:
        # Picklers count up. If any number were accepted, five bytes could ask for gigabytes.
        if at > len(self._memo):
            raise PickleError("the pickle is damaged: it keeps values out of order")
        self._memo[at : at + 1] = [self._stack[-1]]

    def recall(self, at: int) -> None:
        self._stack.append(self._memo[at])


def _explain_rejection(code: int) -> str:
    name = next((op.name for op in pickletools.opcodes if ord(op.code) == code), None)
    if name is None:
        return "the pickle is damaged: it has a byte that is not an opcode"
    if code in _RUNS:
        return (
            f"the pickle would run code when it is read (opcode {name}), which memplan never allows"
        )
    return f"the pickle holds more than plain data (opcode {name})"


_STEPS: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda m: _ignore(m.take(1)),  # PROTO
    0x95: lambda m: _ignore(m.take(8)),  # FRAME
    0x28: _Machine.mark,
    0x30: lambda m: _ignore(m.pop()),
    0x31: lambda m: _ignore(m.pop_marked()),
    0x4E: lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    0x4A: lambda m: m.signed(4),  # BININT
    0x4B: lambda m: m.push(m.number(1)),
    0x4D: lambda m: m.push(m.number(2)),
    0x8A: lambda m: m.signed(m.number(1)),  # LONG1
    0x8B: lambda m: m.signed(m.number(4)),
    0x47: _Machine.float,
    0x8C: lambda m: m.string(1),  # SHORT_BINUNICODE
    0x58: lambda m: m.string(4),
    0x8D: lambda m: m.string(8),
    0x5D: lambda m: m.push([]),
    0x61: lambda m: m.append([m.pop()]),
    0x65: lambda m: m.append(m.pop_marked()),
    0x29: lambda m: m.push(()),
    0x74: lambda m: m.push(tuple(m.pop_marked())),
    0x85: lambda m: m.tuple(1),
    0x86: lambda m: m.tuple(2),
    0x87: lambda m: m.tuple(3),
    0x7D: lambda m: m.push({}),
    0x73: lambda m: m.set_items([m.pop(), m.pop()][::-1]),
    0x75: lambda m: m.set_items(m.pop_marked()),
    0x94: _Machine.memoize,
    0x71: lambda m: m.memoize_at(m.number(1)),  # BINPUT
    0x72: lambda m: m.memoize_at(m.number(4)),
    0x68: lambda m: m.recall(m.number(1)),  # BINGET
    0x6A: lambda m: m.recall(m.number(4)),
}


def _ignore(_: object) -> None:
    pass
