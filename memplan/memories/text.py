"""Memories as people write them: `sram=256KiB`, `psram=8MiB,read=20,base=0x3C000000`.

A command gets them one by one, the fastest first. People rarely know what an access costs, but they
know which memory is slower: without costs, a byte of the first one costs 1 and a byte of each other
one ten times as much as in the one before. Of two memories, the factor changes no choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from memplan.errors import MemplanError, quoted
from memplan.memories.memory import Memory
from memplan.sizes import parse_size

__all__ = ["format_memory", "parse_memories", "parse_memory"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")  # it becomes the name of a file
_NUMBER: Final = re.compile(r"[0-9]{1,18}|0x[0-9a-fA-F]{1,15}", re.ASCII)
_FIELDS: Final = ("read", "write", "base", "align")
_SLOWER: Final = 10


def parse_memories(texts: Sequence[str]) -> tuple[Memory, ...]:
    """Read memories, the fastest first.

    Raises
    ------
    MemplanError
        For what is no memory, and for addresses of two memories that overlap.
    """
    found: list[Memory] = []
    for text in texts:
        memory = parse_memory(text, found[-1] if found else None)
        end = memory.base + (memory.capacity or 0)
        for other in found:
            other_end = other.base + (other.capacity or 0)
            if (other.base or memory.base) and other.base < end and memory.base < other_end:
                raise MemplanError(
                    f"the addresses of memories {quoted(other.name)} and {quoted(memory.name)} "
                    "overlap"
                )
        found.append(memory)
    return tuple(found)


def parse_memory(text: str, before: Memory | None = None) -> Memory:
    """Read one memory; costs that it does not say follow from the memory before it.

    Raises
    ------
    MemplanError
        If it is none.
    """
    first, *others = text.split(",")
    name, equals, size = first.partition("=")
    fields = _parse_fields(others)
    if fields is None or not _NAME.fullmatch(name) or (equals and not size):
        raise MemplanError(
            f"{text!r} is no memory; write NAME=SIZE, and behind it, if you know them, "
            "read=COST,write=COST,base=ADDRESS,align=BYTES"
        )
    usual = (1, 1) if before is None else (_SLOWER * before.read, _SLOWER * before.write)
    read = fields.get("read", fields.get("write", usual[0]))
    return Memory(
        name,
        parse_size(size) if equals else None,
        read=read,
        write=fields.get("write", fields.get("read", usual[1])),
        alignment=fields.get("align", 1),
        base=fields.get("base", 0),
    )


def _parse_fields(texts: Sequence[str]) -> Mapping[str, int] | None:
    """Return the numbers of a memory by name, or `None` if it has others."""
    found: dict[str, int] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if key not in _FIELDS or key in found or not _NUMBER.fullmatch(value):
            return None
        found[key] = int(value, 0 if value[:2] == "0x" else 10)
    return found


def format_memory(memory: Memory) -> str:
    """Return a memory as `parse_memory` reads it, with all that it says."""
    size = "" if memory.capacity is None else f"={memory.capacity}"
    return (
        f"{memory.name}{size},read={memory.read},write={memory.write},"
        f"base={memory.base},align={memory.alignment}"
    )
