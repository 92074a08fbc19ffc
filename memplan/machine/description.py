"""A machine in a file: its memories, what is reserved, and the board of TensorFlow Lite Micro.

board = "esp32-s3"            # as --board takes it; kernels may follow: "esp32-s3,reference"
reserved = ["0:0x400"]        # addresses that no buffer may use, in every memory

[[memory]]                    # the fastest first; all but the name may be left out
name = "sram"
size = "320KiB"

[[memory]]
name = "psram"
size = "8MiB"
read = "80MB/s"               # or what a byte costs: 8
write = "40MB/s"
base = 0x3C000000
align = 16
block = "1MiB"

[reads]                       # how often operators read their inputs, as --reads says it
CONV_2D = 9
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from memplan.base.errors import FormatError, MemplanError, listed, quoted, suggest
from memplan.base.files import read_text
from memplan.base.sizes import parse_size
from memplan.machine.memories.memory import Memory
from memplan.machine.memories.text import parse_memories, parse_reads

__all__ = ["Description", "read_description"]

_KEYS: Final = ("board", "memory", "reads", "reserved")
_FIELDS: Final = ("name", "size", "read", "write", "base", "align", "block")


@dataclass(frozen=True)
class Description:
    """What a file says of a machine.

    Attributes
    ----------
    memories, reads
        The memories, and how often operators of a type read, each as the command line takes it.
    board
        The name of the board; `None` if the file names none.
    reserved
        Addresses `LOWER:UPPER` that no buffer may use.
    """

    memories: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    board: str | None = None
    reserved: tuple[str, ...] = ()

    def list_memories(self) -> tuple[Memory, ...]:
        """Return the memories, the fastest first."""
        return parse_memories(self.memories)

    def list_reserved(self) -> tuple[tuple[int, int], ...]:
        """Return the reserved addresses `(lower, upper)`."""
        pairs = (text.partition(":") for text in self.reserved)
        return tuple((parse_size(lower), parse_size(upper)) for lower, _, upper in pairs)


def read_description(path: str | os.PathLike[str]) -> Description:
    """Read the description of a machine in TOML, as the module shows it.

    Raises
    ------
    FormatError
        If the file cannot be read, is no TOML, or says something that is not known.
    """
    import tomllib

    name = os.fspath(path)
    try:
        record = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(name, f"this is no TOML: {str(error).lower()}") from None
    try:
        _check_keys(record, _KEYS, "the file")
        board = record.get("board")
        if board is not None and not isinstance(board, str):
            raise MemplanError("board is not a name in quotes")
        memories = record.get("memory", [])
        if not isinstance(memories, list) or not all(isinstance(each, dict) for each in memories):
            raise MemplanError("memories are tables; begin each with [[memory]]")
        found = Description(
            tuple(map(_write_memory, memories)),
            tuple(_write_reads(record.get("reads", {}))),
            board,
            tuple(_check_reserved(record.get("reserved", []))),
        )
        found.list_memories()
        parse_reads(found.reads)
    except FormatError:
        raise
    except MemplanError as error:
        raise FormatError(name, str(error)) from None
    return found


def _check_keys(record: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    for key in record:
        if key not in known:
            raise MemplanError(
                f"{quoted(key)} is nothing that {what} has; known are "
                f"{listed(known, quote=False)}{suggest(key, known)}"
            )


def _write_memory(record: Mapping[str, Any]) -> str:
    """Return a memory as the command line has it: `psram=8MiB,read=80MB/s`."""
    _check_keys(record, _FIELDS, "a memory")
    for key, value in record.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise MemplanError(f"{key} of a memory is neither a number nor words in quotes")
    if "name" not in record:
        raise MemplanError("a memory has no name")
    text = str(record["name"])
    text += f"={record['size']}" if "size" in record else ""
    others = [f"{key}={record[key]}" for key in _FIELDS[2:] if key in record]
    return ",".join([text, *others])


def _write_reads(record: object) -> Iterator[str]:
    if not isinstance(record, dict):
        raise MemplanError("reads is a table of types of operators; begin it with [reads]")
    for type_, counts in record.items():
        parts = counts if isinstance(counts, list) else [counts]
        yield f"{type_}={','.join(map(str, parts))}"


def _check_reserved(record: object) -> Iterator[str]:
    if not isinstance(record, list):
        raise MemplanError('reserved is a list, such as ["0:0x400"]')
    for text in record:
        lower, colon, upper = str(text).partition(":")
        if not colon or parse_size(lower) >= parse_size(upper):
            raise MemplanError(f"{quoted(str(text))} is not LOWER:UPPER")
        yield f"{lower}:{upper}"
