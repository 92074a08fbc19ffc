"""Sizes as people write them: `256KiB`, `1.5M`, `0x100000`; and rates: `25GB/s`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from memplan.errors import MemplanError

__all__ = ["parse_rates", "parse_size"]

_SIZE: Final = re.compile(
    r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([kmgtp]?i?b?)", re.ASCII | re.IGNORECASE
)
_HEX: Final = re.compile(r"0x[0-9a-f]{1,16}", re.ASCII | re.IGNORECASE)
_PREFIXES: Final = "kmgtp"


def parse_size(size: int | str) -> int:
    """Read `1048576`, `0x100000`, `1MiB`, `1.5K`, `1MB` as bytes.

    KiB, MiB, ... and K, M, ... are powers of 1024; KB, MB, ... are powers of 1000.

    Raises
    ------
    MemplanError
        For what is not a whole number of bytes, or none at all.
    """
    if isinstance(size, int):
        if size < 1:
            raise MemplanError(f"{size} is not a size; there must be at least one byte")
        return size
    text = size.strip()
    if _HEX.fullmatch(text):
        return int(text, 16)
    match = _SIZE.fullmatch(text)
    unit = match[2].lower() if match else ""
    if match is None or unit in ("i", "ib"):
        raise MemplanError(f"{text!r} is not a size; write 1048576, 1MiB, 96K or 1MB")
    base = 1000 if unit.endswith("b") and not unit.endswith("ib") else 1024
    power = _PREFIXES.index(unit[0]) + 1 if unit[:1] in tuple(_PREFIXES) else 0
    count = Fraction(match[1]) * base**power
    if count.denominator != 1:
        raise MemplanError(f"{text!r} is not a whole number of bytes")
    return int(count)


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
            f"{rates!r} is not a rate; write 25GB/s, or 12GB/s,25GB/s to write and to read"
        )
    return found[0], found[-1]
