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
    from memplan.programs.sources.options import Options as ModelOptions
    from memplan.runtimes.tflm.read.boards import Board


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
        help="Limit on the peak: 1048576, 1MiB, 96K. It replaces the capacity in the file. For a "
        "TFLite model, it limits the whole arena of TensorFlow Lite Micro.",
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
        help="Stop the search after this time.",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        min=1,
        help="Stop the search after this many nodes; unlike a time, this gives the same plan on "
        "every machine.",
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
LimitFactor = Annotated[
    int,
    typer.Option(
        "--limit-factor",
        metavar="N",
        min=1,
        max=10_000,
        help="Let a file expand to N times the usual limits while it is read. Use it only for "
        "files that you trust.",
    ),
]
Part = Annotated[
    int | None,
    typer.Option(
        "--device",
        "--allocation",
        metavar="N",
        min=0,
        help="Which device of a CUDA snapshot, or which allocation of an XLA dump, to plan; by "
        "default the one with the most bytes.",
    ),
]
Measure = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="Run a .pt2 program once with PyTorch, and show what each operator really allocates.",
    ),
]
States = Annotated[
    int | None,
    typer.Option(
        "--states",
        min=1,
        help="Stop the search for an order, or for re-runs, after this many states; unlike a time, "
        "this gives the same answer on every machine.",
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
class Sizes:
    """Which of several sizes are asked for."""

    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Only sizes that keep to this, such as 'batch*tokens<=4096'. May be repeated.",
        ),
    ] = None
    read_all: Annotated[
        bool,
        typer.Option(
            "--read-all",
            help="Read the program at every size. Otherwise, of more than 64 sizes some are read, "
            "and what follows rests on polynomials through these.",
        ),
    ] = False


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

    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            "-t",
            parser=parse_seconds,
            metavar="SECONDS",
            help="Stop each search after this time.",
        ),
    ] = None
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            min=1,
            help="Search nodes for each plan that is tried, and for each question about a "
            "capacity; the defaults are 100,000 and 1,000,000.",
        ),
    ] = None
    threads: Threads = None
    seed: Seed = 0


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
            help="The most work that bands may add, as a share of the model's multiplications. By "
            "default it is not limited, but for `apply` without --capacity: 10%.",
        ),
    ] = None
    allow_inexact: Annotated[
        bool,
        typer.Option(
            "--allow-inexact",
            help="Also write bands whose outputs differ in some bits, or could not be compared.",
        ),
    ] = False
    allow_refused: Annotated[
        bool,
        typer.Option(
            "--allow-refused",
            help="Also write a model that TensorFlow Lite Micro refuses here, for a build of it "
            "that takes it.",
        ),
    ] = False
    pure: Pure = None


@dataclass(frozen=True)
class Model:
    """How the command line asks for an input to be read; a problem has only an alignment."""

    dim: Dim = None
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="KIND",
            help="Also plan this kind of tensor of a model: constants, inputs, outputs, variables, "
            "workspaces. May be repeated.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="KIND", help="Do not plan this kind of tensor. May be repeated."
        ),
    ] = None
    in_place: InPlace = False
    strict: Strict = False
    alignment: Alignment = 1
    limit_factor: LimitFactor = 1
    runtime_order: Annotated[
        bool,
        typer.Option(
            "--runtime-order",
            help="Run the operators of an ONNX model in onnxruntime's default order, not in that "
            "of the file.",
        ),
    ] = False
    fused: Annotated[
        bool,
        typer.Option(
            "--fused",
            help="Read an ONNX model as onnxruntime runs it here, with fused operators in its own "
            "order.",
        ),
    ] = False
    part: Part = None
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

    def reading(self) -> ModelOptions:
        """Return the same for a source."""
        from memplan.programs.sources.options import Options

        dims = parse_dims(self.dim or ())
        return Options(
            dims=dims,
            in_place=self.in_place,
            pins=self.pins,
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
            metavar="NAME",
            help="Count what a TFLite model needs on this board: cortex-m0 to cortex-m85, esp32, "
            "esp32-s3, ..., 32-bit, 64-bit. Of a chip (stm32h7) it says which core that has.",
        ),
    ] = None
    kernels: Annotated[
        str | None,
        typer.Option(
            "--kernels",
            metavar="NAME",
            help="The kernels on the board: reference, cmsis-nn or esp-nn; by default those of the "
            "chip's maker.",
        ),
    ] = None

    def find(self) -> Board | None:
        """Return the board; `None` if none is named."""
        if self.board is None and self.kernels is None:
            return None
        from memplan.runtimes.tflm.read.boards import find_board

        return find_board(self.board, self.kernels)


def parse_dims(texts: Sequence[str]) -> dict[str, int]:
    """Read `NAME=SIZE`, several also in one text."""
    dims: dict[str, int] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name or not value.isascii() or not value.isdecimal() or len(value) > 18:
            advice = "; `memplan envelope` shows several sizes" if set(value) & set(",:") else ""
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
