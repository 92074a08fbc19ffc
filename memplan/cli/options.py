"""The options that commands share, in groups, and values as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.programs.sources import Loaded
    from memplan.programs.sources.options import Board
    from memplan.programs.sources.options import Options as ModelOptions


class PlanFormat(StrEnum):
    """How problems and plans are written."""

    CSV = "csv"
    JSON = "json"


class Dialect(StrEnum):
    """The columns for lifetimes in CSV; `end` is inclusive."""

    LOWER_UPPER = "lower-upper"
    START_END = "start-end"
    BEGIN_END = "begin-end"


def parse_bytes(text: str) -> int:
    """Read `1048576`, `0x100000`, `1MiB`, `1.5K`, `1MB`.

    KiB, MiB, ... and K, M, ... are powers of 1024; KB, MB, ... are powers of 1000.
    """
    from memplan.base.errors import MemplanError
    from memplan.base.sizes import parse_size

    try:
        return parse_size(text)
    except MemplanError as error:
        raise typer.BadParameter(str(error)) from None


def parse_share(text: str) -> float:
    """Read `10%` or `0.1`; not less than nothing."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share < float("inf"):
        raise typer.BadParameter(f"{text!r} is not a share; write 10% or 0.1")
    return share


def parse_seconds(text: str) -> float:
    """Read a positive number of seconds, which is not `nan` or `inf`."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"{text!r} is not a positive number of seconds")
    return value


def parse_counts(text: str, option: str) -> list[int]:
    """Read `100,1000`; the error names the option."""
    counts = text.split(",")
    if not all(count.strip().isascii() and count.strip().isdigit() for count in counts):
        raise typer.BadParameter(
            f"{text!r} is not a list of numbers such as 100,1000", param_hint=f"'{option}'"
        )
    return [int(count) for count in counts]


def write_to(help: str) -> Any:
    """Declare `--output FILE`, which every command that writes a file has."""
    return typer.Option("--output", "-o", metavar="FILE", help=help)


Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A model (.onnx, .tflite, .pt2), an XLA dump, a CUDA snapshot, a recorded trace, a "
        "graph, or a problem (CSV or JSON). The content decides what it is, not the name. `-` is "
        "standard input.",
        callback=keep,
    ),
]
Capacity = Annotated[
    int | None,
    typer.Option(
        "--capacity",
        "-c",
        parser=parse_bytes,
        metavar="SIZE",
        help="Limit on the peak: 1048576, 1MiB, 96K, in place of that in the file; for a TFLite "
        "model, on the whole arena of TensorFlow Lite Micro.",
    ),
]
Alignment = Annotated[
    int,
    typer.Option(
        "--alignment",
        metavar="N",
        min=1,
        max=1 << 62,
        show_default=False,
        help="Make every offset a multiple of N bytes, in addition to the file's own alignments.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        "-t",
        parser=parse_seconds,
        metavar="SECONDS",
        help="Stop each search after this time.",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        min=1,
        help="Stop each search after this many nodes, or states of an order; unlike a time, this "
        "gives the same plan on every machine.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        help="Number of threads. It changes the time, and the plan only where --timeout ends "
        "the search.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Random seed; plans may differ, hardly their quality.")
]
Top = Annotated[int, typer.Option("--top", min=1, help="How many buffers to list.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the same facts as one JSON object, for scripts.")
]
Dim = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=N", help="Value of a symbolic dimension of a model. May be repeated."
    ),
]
InPlace = Annotated[
    bool,
    typer.Option(
        "--in-place",
        help="Let operators of a model overwrite inputs that no later operator reads.",
    ),
]
Measure = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="Run a .pt2 program once with PyTorch, and show what each operator really allocates.",
    ),
]
Pure = Annotated[
    list[str] | None,
    typer.Option(
        "--pure",
        metavar="TYPE",
        help="Treat operators of this type, which memplan does not know, as free of side effects. "
        "May be repeated.",
    ),
]
Spill = Annotated[
    str | None,
    typer.Option(
        "--spill",
        metavar="RATE",
        help="Move tensors to another memory and back at this rate: 25GB/s, or 12GB/s,25GB/s to "
        "write and to read.",
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="FILE",
        help="Measured times in CSV: operator,seconds. Without them, multiplications and bytes "
        "are counted.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit with 2 if anything was assumed or left out, that is, with any note."
    ),
]
Minimize = Annotated[
    bool,
    typer.Option(
        "--minimize", help="Look for the smallest peak even if there is a capacity to fit."
    ),
]


# A command with a parameter of one of these classes has all of its options: `running.add_command`
# puts them in place of the parameter.


@dataclass(frozen=True)
class Constraints:
    """What a plan must keep to besides what the input says."""

    capacity: Capacity = None
    reserve: Annotated[
        list[str] | None,
        typer.Option(
            "--reserve",
            metavar="LOWER:UPPER",
            help="Addresses [LOWER, UPPER) that no buffer may use. May be repeated.",
        ),
    ] = None
    pin: Annotated[
        list[str] | None,
        typer.Option(
            "--pin", metavar="ID=OFFSET", help="Place this buffer at this offset. May be repeated."
        ),
    ] = None

    def add_to(self, loaded: Loaded) -> Loaded:
        """Return an input with the reserved addresses and the pins; not with the capacity.

        An offset in the input that lies on reserved addresses is an `InfeasibleError`.
        """
        from memplan.base.errors import InfeasibleError, ProblemError

        problem = loaded.problem
        if self.reserve:
            try:
                problem = problem.with_reserved([*problem.reserved, *self.list_reserved()])
            except ProblemError as error:
                if error.field != "pin":
                    raise
                raise InfeasibleError(f"proved: no plan leaves --reserve free: {error}") from None
        if self.pin:
            problem = problem.with_pins(_parse_pins(self.pin))
        return replace(loaded, problem=problem)

    def list_reserved(self) -> list[tuple[int, int]]:
        """Return the reserved addresses."""
        return [_parse_block(text) for text in self.reserve or ()]


@dataclass(frozen=True)
class Limits:
    """When a search ends."""

    timeout: Timeout = None
    nodes: Nodes = None


@dataclass(frozen=True)
class Search(Limits):
    """How a plan is searched for."""

    threads: Threads = None
    seed: Seed = 0


@dataclass(frozen=True)
class Trials:
    """How the plans are searched for that a command makes for its answer, but does not print."""

    timeout: Timeout = None
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            min=1,
            help="Search nodes for each plan that is tried, and for each question about a "
            "capacity; the defaults are 100,000 and 1,000,000.",
        ),
    ] = None


@dataclass(frozen=True)
class Paths:
    """Which paths of control flow are planned by themselves."""

    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="NAME=BRANCH",
            help="Also plan the runs that take this branch, or all of several, joined by commas; "
            "`all` plans every path. May be repeated.",
        ),
    ] = None
    known: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            metavar="NAME",
            help="With --path: the caller knows before the run which branch this operator takes. "
            "By default these are the operators whose condition is an input of the program. May be "
            "repeated.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.known and not self.path:
            raise typer.BadParameter("it needs --path", param_hint="'--known'")

    def arguments(self, nodes: int | None) -> dict[str, Any]:
        """Return what `memplan.scenarios.paths.plan_paths` is asked."""
        from memplan.solvers.refereed import NODES

        paths = None if self.path == ["all"] else [*map(_parse_path, self.path or ())]
        return {"paths": paths, "known": self.known, "nodes": nodes or NODES}


@dataclass(frozen=True)
class Rewriting:
    """What another program may cost, and differ in."""

    max_extra: Annotated[
        float | None,
        typer.Option(
            "--max-extra-macs",
            parser=parse_share,
            metavar="SHARE",
            help="The most work that bands and re-runs may add, as a share of the program's. By "
            "default it is not limited where there is a capacity to fit, and 10% elsewhere.",
        ),
    ] = None
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="WHAT",
            help="Also write what is refused by default: `inexact`, bands whose outputs differ in "
            "some bits or could not be compared; `refused`, a model that TensorFlow Lite Micro "
            "refuses here.",
        ),
    ] = None
    pure: Pure = None

    def __post_init__(self) -> None:
        for each in self.accept or ():
            if each not in ("inexact", "refused"):
                raise typer.BadParameter(
                    f"{each!r} is neither inexact nor refused", param_hint="'--accept'"
                )

    @property
    def allow_inexact(self) -> bool:
        """Whether outputs may differ in some bits, or could not be compared."""
        return "inexact" in (self.accept or ())

    @property
    def allow_refused(self) -> bool:
        """Whether a model may be written that its own runtime refuses."""
        return "refused" in (self.accept or ())

    def list_limits(self) -> dict[str, Any]:
        """Return the same as arguments of `memplan.fit`."""
        return {
            "max_extra": self.max_extra,
            "allow_inexact": self.allow_inexact,
            "allow_refused": self.allow_refused,
            "pure": self.pure or (),
        }


Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="HOW",
        help="How the file is read. `include=KIND`, `exclude=KIND`: also plan, or do not "
        "plan, this kind of tensor: constants, inputs, outputs, variables, workspaces. "
        "`runtime-order`: an ONNX model in onnxruntime's default order. `fused`: as "
        "onnxruntime runs it here, with fused operators. `no-offsets`: without the offsets in "
        "the file. `device=N`, `allocation=N`: of a CUDA snapshot, or an XLA dump; by default "
        "the one with the most bytes. `limit-factor=N`: the file may expand to N times the "
        "usual limits; only for files that you trust. `every-size`: of more than 64 sizes "
        "read each. May be repeated.",
    ),
]

# What `--read` takes: a word alone, or one with a value.
_READ_WORDS = ("fused", "no-fused", "runtime-order", "no-offsets", "every-size")
_READ_VALUES = ("include", "exclude", "device", "allocation", "limit-factor")


@dataclass(frozen=True)
class Model:
    """How the command line asks for an input to be read; a problem has only an alignment."""

    dim: Dim = None
    in_place: InPlace = False
    strict: Strict = False
    alignment: Alignment = 1
    read: Read = None
    runtime: Annotated[
        bool,
        typer.Option(
            "--runtime/--no-runtime",
            help="Ask the format's own runtime, if it is installed, how much memory it needs, and "
            "which shapes it computes where the file is not clear.",
        ),
    ] = True
    pins: bool = True  # no option: keep the offsets in the file
    allow_refused: bool = False  # no option: write a model that its own runtime refuses

    def __post_init__(self) -> None:
        for each in self.read or ():
            word, equals, value = each.partition("=")
            if word not in (_READ_VALUES if equals else _READ_WORDS) or (equals and not value):
                known = ", ".join((*_READ_WORDS, *(f"{name}=" for name in _READ_VALUES)))
                raise typer.BadParameter(f"{each!r} is none of {known}", param_hint="'--read'")
        _ = self.part, self.limit_factor  # numbers, which are checked before the work

    def _says(self, word: str) -> bool:
        return word in (self.read or ())

    def _list_values(self, *words: str) -> list[str]:
        pairs = [each.partition("=") for each in self.read or ()]
        return [value for word, equals, value in pairs if equals and word in words]

    def _find_number(self, *words: str, least: int, most: int) -> int | None:
        values = self._list_values(*words)
        if not values:
            return None
        text = values[-1]
        if not text.isascii() or not text.isdecimal() or not least <= int(text[:18]) <= most:
            raise typer.BadParameter(
                f"{words[0]} is {text!r}, not a number from {least} to {most}",
                param_hint="'--read'",
            )
        return int(text)

    @property
    def include(self) -> list[str]:
        """The kinds of tensors that are planned too."""
        return self._list_values("include")

    @property
    def exclude(self) -> list[str]:
        """The kinds of tensors that are not planned."""
        return self._list_values("exclude")

    @property
    def part(self) -> int | None:
        """Which device of a snapshot, or which allocation of a dump."""
        return self._find_number("device", "allocation", least=0, most=1 << 40)

    @property
    def limit_factor(self) -> int:
        """How much a file may expand while it is read, in usual limits."""
        return self._find_number("limit-factor", least=1, most=10_000) or 1

    @property
    def runtime_order(self) -> bool:
        """Whether operators run in the runtime's order, not in that of the file."""
        return self._says("runtime-order")

    @property
    def fused(self) -> bool:
        """Whether operators are fused as the runtime fuses them."""
        return self._says("fused")

    @property
    def may_fuse(self) -> bool | None:
        """What was said of fused operators in a file that is written; `None` if nothing."""
        return True if self.fused else False if self._says("no-fused") else None

    @property
    def keeps_offsets(self) -> bool:
        """Whether the offsets in the file count."""
        return self.pins and not self._says("no-offsets")

    @property
    def every_size(self) -> bool:
        """Whether the program is read at each of many sizes."""
        return self._says("every-size")

    def reading(self) -> ModelOptions:
        """Return the same for a source."""
        from memplan.programs.sources.options import Options

        dims = parse_dims(self.dim or ())
        return Options(
            dims=dims,
            in_place=self.in_place,
            pins=self.keeps_offsets,
            limit_factor=self.limit_factor,
            runtime_order=self.runtime_order,
            fused=self.fused,
        )


@dataclass(frozen=True)
class OnBoard:
    """Where a TFLite model will run, if not on this machine."""

    board: Annotated[
        str | None,
        typer.Option(
            "--board",
            metavar="NAME[,KERNELS]",
            help="Count what a TFLite model needs on this board: cortex-m0 to cortex-m85, esp32, "
            "esp32-s3, ..., 32-bit, 64-bit. Kernels are reference, cmsis-nn or esp-nn; by default "
            "those of the chip's maker.",
        ),
    ] = None

    def find(self) -> Board | None:
        """Return the board; `None` if none is named."""
        if self.board is None:
            return None
        from memplan.runtimes.tflm.read.boards import find_board

        name, _, kernels = self.board.partition(",")
        return find_board(name or None, kernels or None)


def parse_dims(texts: Sequence[str]) -> dict[str, int]:
    """Read `NAME=SIZE`, several also in one text."""
    dims: dict[str, int] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name or not value.isascii() or not value.isdecimal() or len(value) > 18:
            advice = "; `memplan plan` shows several sizes" if set(value) & set(",:") else ""
            raise typer.BadParameter(f"{text!r} is not NAME=N{advice}", param_hint="'--dim'")
        if name in dims:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="'--dim'")
        dims[name] = int(value)
    return dims


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
    except typer.BadParameter as error:
        hint = "'--pin'" if form.startswith("ID") else "'--reserve'"
        message = f"{text!r} is not {form}: {error.message}"
        raise typer.BadParameter(message, param_hint=hint) from None


def _parse_path(text: str) -> dict[str, str]:
    """Read `NAME=BRANCH`, several also in one text."""
    made: dict[str, str] = {}
    for each in text.split(","):
        name, equals, branch = each.rpartition("=")
        if not (equals and name and branch) or name in made:
            raise typer.BadParameter(
                f"{each!r} is not NAME=BRANCH, or the name occurs twice; `--path all` plans "
                "every path",
                param_hint="'--path'",
            )
        made[name] = branch
    return made
