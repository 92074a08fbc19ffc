"""Memories as people write them: `sram=256KiB`, `psram=8MiB,read=80MB/s,base=0x3C000000`.

A command gets them one by one, the fastest first. People rarely know what an access costs, but they
know which memory is slower: without costs, a byte of the first one costs 1 and a byte of each other
one ten times as much as in the one before. Of two memories, the factor changes no choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from memplan.base.errors import MemplanError, quoted, suggest
from memplan.base.sizes import parse_rates, parse_size
from memplan.machine.memories.memory import Memory

__all__ = ["format_memory", "parse_memories", "parse_reads"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")  # it becomes the name of a file
_NUMBER: Final = re.compile(r"[0-9]{1,18}|0x[0-9a-fA-F]{1,15}", re.ASCII)
_COST: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9}|/[1-9][0-9]{0,17})?", re.ASCII)
_FIELDS: Final = ("read", "write", "base", "align", "block")
_SLOWER: Final = 10
_SECOND: Final = 10**9  # in nanoseconds, which a byte of a memory with a rate costs


def parse_memories(texts: Sequence[str]) -> tuple[Memory, ...]:
    """Read memories, the fastest first.

    A cost is a number in any unit that is the same for all, or a rate such as `80MB/s`, and then
    costs are nanoseconds. A memory without costs is ten times as slow as the one before it; the
    first one costs 1, or beside rates, a tenth of the next.
    """
    read = [_parse_memory(text) for text in texts]
    kinds = {is_rate for _, rates in read for is_rate in rates}
    if len(kinds) > 1:
        raise MemplanError(
            "some costs are rates, such as 80MB/s, and others are numbers; write all as one of both"
        )
    found = tuple(_assume([memory for memory, _ in read], beside_rates=True in kinds))
    for at, memory in enumerate(found):
        end = memory.base + (memory.capacity or 0)
        for other in found[:at]:
            other_end = other.base + (other.capacity or 0)
            if (other.base or memory.base) and other.base < end and memory.base < other_end:
                raise MemplanError(
                    f"the addresses of memories {quoted(other.name)} and {quoted(memory.name)} "
                    "overlap"
                )
    return found


def _assume(memories: Sequence[Memory], *, beside_rates: bool) -> Iterator[Memory]:
    """Yield memories with the costs that follow from those of the others."""
    read = write = Fraction(1)
    if beside_rates:
        first = next(at for at, memory in enumerate(memories) if not memory.assumed)
        factor = _SLOWER**first
        read, write = Fraction(memories[first].read), Fraction(memories[first].write)
        read, write = read / factor, write / factor
    for at, memory in enumerate(memories):
        if not memory.assumed:
            read, write = Fraction(memory.read), Fraction(memory.write)
        elif at:
            read, write = read * _SLOWER, write * _SLOWER
        yield replace(memory, read=read, write=write)


def _parse_memory(text: str) -> tuple[Memory, set[bool]]:
    """Read one memory; return also whether each of its costs is a rate."""
    first, *others = text.split(",")
    name, equals, size = first.partition("=")
    if not _NAME.fullmatch(name):
        raise MemplanError(
            f"{quoted(name)} is no memory; write NAME=SIZE, such as sram=256KiB, with a name of "
            "letters, digits, '_', '.' and '-' that begins with a letter"
        )
    try:
        capacity = parse_size(size) if equals else None
    except MemplanError as error:
        raise MemplanError(f"memory {quoted(name)}: {error}") from None
    fields, rates = _parse_fields(name, others)
    read = fields.get("read", fields.get("write", Fraction(1)))
    memory = Memory(
        name,
        capacity,
        read=read,
        write=fields.get("write", read),
        alignment=int(fields.get("align", 1)),
        base=int(fields.get("base", 0)),
        assumed="read" not in fields and "write" not in fields,
        block=int(fields["block"]) if "block" in fields else None,
    )
    return memory, rates


def _parse_fields(name: str, texts: Sequence[str]) -> tuple[Mapping[str, Fraction], set[bool]]:
    """Return what stands behind the size of a memory, and which of its costs are rates."""
    found: dict[str, Fraction] = {}
    rates = set()
    for text in texts:
        key, _, value = text.partition("=")
        if key not in _FIELDS:
            raise _refuse(name, text, f"is none of its fields{suggest(key, _FIELDS)}")
        if key in found:
            raise _refuse(name, text, f"is given twice: {key} has a value already")
        if key in ("read", "write"):
            found[key], is_rate = _parse_cost(name, text, value)
            rates.add(is_rate)
        elif key == "block":
            found[key] = Fraction(_parse_block(name, text, value))
        elif _NUMBER.fullmatch(value):
            found[key] = Fraction(int(value, 0 if value[:2] == "0x" else 10))
        else:
            raise _refuse(name, text, "needs a whole number, such as 64 or 0x3C000000")
    return found, rates


def _parse_block(name: str, text: str, value: str) -> int:
    """Return the largest block of a memory, in bytes."""
    try:
        return parse_size(value)
    except MemplanError:
        raise _refuse(name, text, "needs a size, such as 64KiB") from None


def _parse_cost(name: str, text: str, value: str) -> tuple[Fraction, bool]:
    """Return what a byte costs, and whether that is said as a rate."""
    if _COST.fullmatch(value):
        return Fraction(value), False
    try:
        rate, _ = parse_rates(value)
    except MemplanError:
        raise _refuse(name, text, "is no cost of a byte; write 8, 12.5, or 80MB/s") from None
    return Fraction(_SECOND, rate), True


def _refuse(name: str, text: str, why: str) -> MemplanError:
    known = "read=COST, write=COST, base=ADDRESS, align=BYTES and block=SIZE may follow a size"
    return MemplanError(f"memory {quoted(name)}: {quoted(text)} {why} ({known})")


def parse_reads(texts: Sequence[str]) -> dict[str, tuple[Fraction, ...]]:
    """Read how often operators read their inputs: `CONV_2D=9`, or `CONV_2D=9,1` for each input."""
    found: dict[str, tuple[Fraction, ...]] = {}
    for text in texts:
        type_, _, counts = text.rpartition("=")
        parts = counts.split(",")
        if not type_ or not all(map(_COST.fullmatch, parts)):
            raise MemplanError(
                f"{quoted(text)} does not say how often operators of a type read; write TYPE=N, or "
                "TYPE=N,M with a number for each input, such as CONV_2D=9,1"
            )
        if type_ in found:
            raise MemplanError(f"how often operators of type {quoted(type_)} read is given twice")
        found[type_] = tuple(map(Fraction, parts))
    return found


def format_memory(memory: Memory) -> str:
    """Return a memory as `parse_memories` reads it, with all that it says."""
    size = "" if memory.capacity is None else f"={memory.capacity}"
    return (
        f"{memory.name}{size},read={memory.read},write={memory.write},"
        f"base={memory.base},align={memory.alignment}"
        + ("" if memory.block is None else f",block={memory.block}")
    )
