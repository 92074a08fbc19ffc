"""Sizes as people write them: `256KiB`, `1.5M`, `0x100000`; and rates: `25GB/s`.

A number without a unit is so many bytes. Where that is absurdly little for what has to fit, a unit
was forgotten: a search would prove at length that nothing fits into 320 bytes.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from memplan.base.errors import MemplanError, quoted

__all__ = ["Size", "parse_rates", "parse_size", "require_unit", "write_size"]

_SIZE: Final = re.compile(
    r"([0-9]{1,40}(?:\.[0-9]{1,20})?) ?([kmgtpe]?i?b?)", re.ASCII | re.IGNORECASE
)
_HEX: Final = re.compile(r"0x[0-9a-f]{1,40}", re.ASCII | re.IGNORECASE)
_PREFIXES: Final = "kmgtpe"
_MOST: Final = 1 << 62  # bytes; the largest address of a problem
_MOST_BARE: Final = 1 << 14  # bytes; larger numbers are not meant in another unit
_ABSURD: Final = 64  # times a size that one buffer alone is larger
_LEAST: Final = 1 << 12  # bytes of that buffer; examples have smaller ones, and count in units


class Size(int):
    """Bytes as they were written; `is_bare` says whether without a unit."""

    is_bare = False


def require_unit(size: int | None, least: int) -> None:
    """Ask for a unit where a number was written without one, and is absurd as bytes.

    The size is what `parse_size` returned; other numbers, and `None`, are taken as they are.
    `least` is the bytes of one thing that has to fit, such as the largest buffer.
    """
    if size is not None and size < 1:
        raise _no_bytes(size)
    bare = isinstance(size, Size) and size.is_bare
    if bare and size is not None and size < _MOST_BARE and max(size * _ABSURD, _LEAST) <= least:
        raise MemplanError(
            f"{size} has no unit, and one buffer alone has {least:,} bytes; write {size}KiB or "
            f"{size}MiB, or {size}B for so few bytes"
        )


def _no_bytes(size: int) -> MemplanError:
    return MemplanError(f"{size} is not a size; there must be at least one byte")


def parse_size(size: int | str) -> int:
    """Read `1048576`, `0x100000`, `1MiB`, `1.5K`, `1MB`, `12B` as bytes, up to 2^62.

    KiB, MiB, ... and K, M, ... are powers of 1024; KB, MB, ... are powers of 1000. What is written
    without a unit can be asked about (`require_unit`).
    """
    if isinstance(size, int):
        if size < 1:
            raise _no_bytes(size)
        return _within_addresses(size, str(size))
    text = size.strip()
    if _HEX.fullmatch(text):
        return _within_addresses(int(text, 16), text)
    match = _SIZE.fullmatch(text)
    unit = match[2].lower() if match else ""
    if match is None or unit in ("i", "ib"):
        raise MemplanError(f"{quoted(text)} is not a size; write 1048576, 1MiB, 96K or 1MB")
    base = 1000 if unit.endswith("b") and not unit.endswith("ib") else 1024
    power = _PREFIXES.index(unit[0]) + 1 if unit[:1] in tuple(_PREFIXES) else 0
    count = Fraction(match[1]) * base**power
    if count.denominator != 1:
        raise MemplanError(f"{quoted(text)} is not a whole number of bytes")
    found = Size(_within_addresses(int(count), text))
    found.is_bare = not unit
    return found


def _within_addresses(size: int, text: str) -> int:
    """Return a size; raise `MemplanError` if no problem has so many addresses."""
    if size > _MOST:
        raise MemplanError(f"{text} is too large; a size is at most 2^62 bytes (4EiB)")
    return size


def write_size(size: int) -> str:
    """Return a size as `parse_size` reads it, exactly and with its unit: "96KiB", "1000B"."""
    power = max(p for p in range(len(_PREFIXES) + 1) if size % 1024**p == 0)
    unit = f"{_PREFIXES[power - 1].upper()}iB" if power else "B"
    return f"{size // 1024**power}{unit}"


def parse_rates(rates: str) -> tuple[int, int]:
    """Read `25GB/s`, or `12GB/s,25GB/s` for writing and reading, as bytes in a second.

    Raises
    ------
    MemplanError
        For what is not one rate or two, each of at least one byte in a second.
    """
    parts = [part.strip() for part in rates.split(",")]
    try:
        found = [parse_size(part.removesuffix("/s").strip()) for part in parts]
    except MemplanError:
        found = []
    if not (1 <= len(found) <= 2 and min(found) > 0 and all(part.endswith("/s") for part in parts)):
        raise MemplanError(
            f"{quoted(rates)} is not a rate; write 25GB/s, or 12GB/s,25GB/s to write and to read"
        )
    return found[0], found[-1]
