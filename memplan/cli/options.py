"""What the commands share: their options, and sizes as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.graph import Kind
    from memplan.notes import Note
    from memplan.sources import Loaded
    from memplan.sources.options import Options as ModelOptions
    from memplan.yardsticks.torch_run import Measured

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


def parse_counts(text: str, option: str) -> list[int]:
    """Read `100,1000`.

    Raises
    ------
    typer.BadParameter
        For anything else; the message names the option.
    """
    counts = text.split(",")
    if not all(count.strip().isascii() and count.strip().isdigit() for count in counts):
        raise typer.BadParameter(
            f"{text!r} is not a list of numbers such as 100,1000", param_hint=f"'{option}'"
        )
    return [int(count) for count in counts]


Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A model (.onnx, .tflite, .pt2), a dump, a snapshot, a graph, or a problem as CSV or "
        "JSON; its content says which. `-` is standard input.",
        callback=keep,
    ),
]
PlanInput = Annotated[
    str, typer.Argument(metavar="PLAN", help="A plan: CSV or JSON.", callback=keep)
]
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
# The budget of plans that a command makes for its answer, but does not print.
PlanNodes = Annotated[
    int | None,
    typer.Option(
        "--nodes", min=1, help="Search nodes for each plan that is tried; 100,000 if left out."
    ),
]
PlanTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        "-t",
        parser=parse_seconds,
        metavar="SECONDS",
        help="Stop each of these searches after this time.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Threads; they change the time, never the plan."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another plan as good.")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many buffers to name.")]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=N", help="Size of a symbolic dimension of a model. May be repeated."
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="KIND",
        help="Also plan this kind of tensor of a model: constants, inputs, outputs, variables, "
        "workspaces. May be repeated.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="KIND", help="Do not plan this kind. May be repeated."),
]
InPlace = Annotated[
    bool,
    typer.Option(
        "--in-place",
        help="Let operators of a model write over inputs that no later operator reads.",
    ),
]
Runtime = Annotated[
    bool,
    typer.Option(
        "--runtime/--no-runtime",
        help="Ask the format's own runtime what it would use, where it is installed.",
    ),
]
LimitFactor = Annotated[
    int,
    typer.Option(
        "--limit-factor",
        metavar="N",
        min=1,
        max=10_000,
        help="Let a file expand N times as far as usual while it is read; only where it is "
        "trusted.",
    ),
]
Measure = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="Run a .pt2 program once with PyTorch, and say what each operator really allocates.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit with 2 where something was assumed or left out, as a note says."
    ),
]
Minimize = Annotated[
    bool,
    typer.Option(
        "--minimize", help="Look for the smallest peak, also where there is a capacity to fit."
    ),
]


@dataclass(frozen=True, slots=True)
class Model:
    """What the command line says about reading a model; nothing, for a problem."""

    dim: Sequence[str] | None = None
    include: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    in_place: bool = False
    strict: bool = False
    pins: bool = True
    limit_factor: int = 1

    def reading(self) -> ModelOptions:
        """Return the same for a source."""
        from memplan.sources.options import Options

        dims = _parse_dims(self.dim or ())
        return Options(dims=dims, in_place=self.in_place, limit_factor=self.limit_factor)


def measure(loaded: Loaded, path: str, model: Model) -> Measured:
    """Run a program for `--measure`.

    Raises
    ------
    typer.BadParameter
        If it is none, or other tensors are planned than PyTorch allocates.
    """
    hint = "'--measure'"
    if loaded.source != "torch":
        raise typer.BadParameter(
            f"only programs of PyTorch (.pt2) can be run, not {loaded.source}", param_hint=hint
        )
    if model.include or model.exclude:
        raise typer.BadParameter("leave out --include and --exclude", param_hint=hint)
    from memplan.yardsticks.torch_run import measure_file

    return measure_file(Path(path), model.reading())


def read_input(
    path: str,
    capacity: int | None = None,
    reserve: Sequence[str] | None = None,
    pin: Sequence[str] | None = None,
    model: Model = Model(),
) -> Loaded:
    """Load an input of any kind, and add to its problem what the command line says.

    Nothing is laid out in place, because `memplan.planning` chooses between the layouts.
    """
    from memplan import sources

    loaded = sources.load(
        path,
        capacity=capacity,
        dims=_parse_dims(model.dim or ()),
        pins=model.pins,
        limit_factor=model.limit_factor,
    )
    refuse_notes(path, loaded.notes if model.strict else ())
    if model.include or model.exclude:
        loaded = _with_kinds(loaded, model)
    problem = loaded.problem
    if reserve:
        problem = problem.with_reserved([*problem.reserved, *map(_parse_block, reserve)])
    if pin:
        problem = problem.with_pins(_parse_pins(pin))
    return replace(loaded, problem=problem)


def refuse_notes(path: str, notes: Sequence[Note]) -> None:
    """Make an error of what was assumed or left out, as `--strict` asks.

    Raises
    ------
    FormatError
        If there is any note.
    """
    from memplan.errors import FormatError
    from memplan.view.units import plural

    if notes:
        others = f" (and {plural(len(notes) - 1, 'more note')})" if len(notes) > 1 else ""
        raise FormatError(path, f"{notes[0].text} [{notes[0].code}]{others}")


def _with_kinds(loaded: Loaded, model: Model) -> Loaded:
    from memplan import sources
    from memplan.errors import MemplanError

    also = _parse_kinds(model.include or (), "'--include'")
    never = _parse_kinds(model.exclude or (), "'--exclude'")
    if loaded.graph is None:
        raise MemplanError(f"a {loaded.source} file does not tell kinds of tensors apart")
    chosen = sources.of_graph(
        replace(loaded.graph, planned=(loaded.graph.planned | also) - never),
        figures=loaded.figures,
        notes=loaded.notes,
    )
    return replace(chosen, problem=chosen.problem.with_capacity(loaded.problem.capacity))


def _parse_dims(texts: Sequence[str]) -> dict[str, int]:
    dims: dict[str, int] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name or not value.isascii() or not value.isdecimal() or len(value) > 18:
            raise typer.BadParameter(f"{text!r} is not NAME=N", param_hint="'--dim'")
        if name in dims:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="'--dim'")
        dims[name] = int(value)
    return dims


def _parse_kinds(texts: Sequence[str], hint: str) -> frozenset[Kind]:
    from memplan.graph import Kind

    kinds = []
    for text in texts:
        try:
            kinds.append(Kind(text.removesuffix("s")))
        except ValueError:
            known = ", ".join(f"{kind}s" for kind in Kind)
            raise typer.BadParameter(f"{text!r} is none of {known}", param_hint=hint) from None
    return frozenset(kinds)


def _parse_block(text: str) -> tuple[int, int]:
    lower, _, upper = text.partition(":")
    return _parse_address(lower, text, "LOWER:UPPER"), _parse_address(upper, text, "LOWER:UPPER")


def _parse_pins(texts: Sequence[str]) -> dict[str, int | None]:
    pins: dict[str, int | None] = {}
    for text in texts:
        id, _, offset = text.rpartition("=")  # an id may have a "=" in it, an offset has none
        if id in pins:
            raise typer.BadParameter(f"{id!r} is pinned twice", param_hint="'--pin'")
        pins[id] = _parse_address(offset, text, "ID=OFFSET")
    return pins


def _parse_address(part: str, text: str, form: str) -> int:
    try:
        return parse_bytes(part)
    except typer.BadParameter:
        hint = "'--pin'" if form.startswith("ID") else "'--reserve'"
        raise typer.BadParameter(f"{text!r} is not {form}", param_hint=hint) from None
