"""What the commands share: their options, and sizes as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from memplan.problem import Problem

_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([kmgtp]?i?b?)", re.ASCII | re.IGNORECASE)
_HEX = re.compile(r"0x[0-9a-f]{1,16}", re.ASCII | re.IGNORECASE)
_PREFIXES = "kmgtp"


class Format(StrEnum):
    """How problems and plans are written."""

    CSV = "csv"
    JSON = "json"

    @property
    def literal(self) -> Literal["csv", "json"]:
        """The format as the library names it."""
        return "json" if self is Format.JSON else "csv"


class Dialect(StrEnum):
    """The columns for lifetimes in CSV; `end` is inclusive."""

    LOWER_UPPER = "lower-upper"
    START_END = "start-end"
    BEGIN_END = "begin-end"


def parse_bytes(text: str) -> int:
    """Read `1048576`, `0x100000`, `1MiB`, `1.5K`, `1MB`.

    KiB, MiB, ... and K, M, ... are powers of 1024; KB, MB, ... are powers of 1000.

    Raises
    ------
    typer.BadParameter
        For what is not a whole number of bytes.
    """
    text = text.strip()
    if _HEX.fullmatch(text):
        return int(text, 16)
    match = _SIZE.fullmatch(text)
    unit = match[2].lower() if match else ""
    if match is None or unit in ("i", "ib"):
        raise typer.BadParameter(f"{text!r} is not a size; write 1048576, 1MiB, 96K or 1MB")
    base = 1000 if unit.endswith("b") and not unit.endswith("ib") else 1024
    power = _PREFIXES.index(unit[0]) + 1 if unit[:1] in tuple(_PREFIXES) else 0
    count = Fraction(match[1]) * base**power
    if count.denominator != 1:
        raise typer.BadParameter(f"{text!r} is not a whole number of bytes")
    return int(count)


def parse_seconds(text: str) -> float:
    """Read a positive number of seconds.

    Raises
    ------
    typer.BadParameter
        For anything else, `nan` and `inf` included.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"{text!r} is not a positive number of seconds")
    return value


Input = Annotated[str, typer.Argument(metavar="INPUT", help="A problem: CSV or JSON.")]
PlanInput = Annotated[str, typer.Argument(metavar="PLAN", help="A plan: CSV or JSON.")]
Capacity = Annotated[
    int | None,
    typer.Option(
        "--capacity",
        "-c",
        parser=parse_bytes,
        metavar="SIZE",
        help="Limit on the peak: 1048576, 1MiB, 96K. In place of the file's own.",
    ),
]
Reserve = Annotated[
    list[str] | None,
    typer.Option(
        "--reserve",
        metavar="LOWER:UPPER",
        help="Addresses that no buffer may touch, half-open. May be repeated.",
    ),
]
Pin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="ID=OFFSET", help="Fix a buffer's offset. May be repeated."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", "-t", parser=parse_seconds, metavar="SECONDS", help="Stop after this time."
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes", min=1, help="Stop after so many search nodes: a limit that repeats exactly."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Threads; they change the time, never the plan."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another plan as good.")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many buffers to name.")]
Minimize = Annotated[
    bool,
    typer.Option(
        "--minimize", help="Look for the smallest peak, also where there is a capacity to fit."
    ),
]


def read_problem(
    path: str,
    capacity: int | None = None,
    reserve: Sequence[str] | None = None,
    pin: Sequence[str] | None = None,
) -> Problem:
    """Load a problem and add what the command line says."""
    from memplan import formats

    problem = formats.load(path, capacity=capacity)
    if reserve:
        problem = problem.with_reserved([*problem.reserved, *map(_block, reserve)])
    return problem.with_pins(_pins(pin)) if pin else problem


def _block(text: str) -> tuple[int, int]:
    lower, _, upper = text.partition(":")
    return _address(lower, text, "LOWER:UPPER"), _address(upper, text, "LOWER:UPPER")


def _pins(texts: Sequence[str]) -> dict[str, int | None]:
    pins: dict[str, int | None] = {}
    for text in texts:
        id, _, offset = text.rpartition("=")  # an id may have a "=" in it, an offset has none
        if id in pins:
            raise typer.BadParameter(f"{id!r} is pinned twice", param_hint="'--pin'")
        pins[id] = _address(offset, text, "ID=OFFSET")
    return pins


def _address(part: str, text: str, form: str) -> int:
    try:
        return parse_bytes(part)
    except typer.BadParameter:
        hint = "'--pin'" if form.startswith("ID") else "'--reserve'"
        raise typer.BadParameter(f"{text!r} is not {form}", param_hint=hint) from None
