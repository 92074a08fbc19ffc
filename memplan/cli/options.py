"""What the commands share: their options, and sizes as people write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.graph import Graph, Kind
    from memplan.notes import Note
    from memplan.plan import Plan
    from memplan.sources import Figure, Loaded
    from memplan.sources.options import Options as ModelOptions
    from memplan.yardsticks.torch_run import Measured


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
    from memplan.errors import MemplanError
    from memplan.sizes import parse_size

    try:
        return parse_size(text)
    except MemplanError as error:
        raise typer.BadParameter(str(error)) from None


def parse_share(text: str) -> float:
    """Read `10%` or `0.1`.

    Raises
    ------
    typer.BadParameter
        For what is not a share, or less than nothing.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest or not 0 <= share < float("inf"):
        raise typer.BadParameter(f"{text!r} is not a share; write 10% or 0.1")
    return share


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
        help="A model (.onnx, .tflite, .pt2), an XLA dump, a CUDA snapshot, a recorded trace, a "
        "graph, or a problem (CSV or JSON). The content decides, not the name. `-` is standard "
        "input.",
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
        "TFLite model: limit on the whole arena of TensorFlow Lite Micro.",
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
Reserve = Annotated[
    list[str] | None,
    typer.Option(
        "--reserve",
        metavar="LOWER:UPPER",
        help="Addresses [LOWER, UPPER) that no buffer may use. May be repeated.",
    ),
]
Pin = Annotated[
    list[str] | None,
    typer.Option(
        "--pin", metavar="ID=OFFSET", help="Place this buffer at this offset. May be repeated."
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
# The budget of plans that a command makes for its answer, but does not print.
PlanNodes = Annotated[
    int | None,
    typer.Option(
        "--nodes", min=1, help="Search nodes for each plan that is tried; the default is 100,000."
    ),
]
PlanTimeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        "-t",
        parser=parse_seconds,
        metavar="SECONDS",
        help="Stop each search after this time.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="Number of threads. It changes the time, but never the plan."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Random seed; plans of equal quality may differ.")
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
    typer.Option(
        "--exclude", metavar="KIND", help="Do not plan this kind of tensor. May be repeated."
    ),
]
Branches = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="NAME=BRANCH",
        help="Also plan runs that take this branch, and several if joined by commas; `all` plans "
        "every path. May be repeated.",
    ),
]
Known = Annotated[
    list[str] | None,
    typer.Option(
        "--known",
        metavar="NAME",
        help="With --path: the caller knows before the run which branch this operator takes. May "
        "be repeated. The default are those whose condition is an input of the program.",
    ),
]
InPlace = Annotated[
    bool,
    typer.Option(
        "--in-place",
        help="Let operators of a model overwrite inputs that no later operator reads.",
    ),
]
Runtime = Annotated[
    bool,
    typer.Option(
        "--runtime/--no-runtime",
        help="Ask the format's own runtime, if it is installed, what it needs and which of two "
        "shapes it makes.",
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
        help="The device of a CUDA snapshot, or the allocation of an XLA dump, to plan; by "
        "default the one with the most bytes.",
    ),
]
RuntimeOrder = Annotated[
    bool,
    typer.Option(
        "--runtime-order",
        help="Run the operators of an ONNX model in onnxruntime's default order, and not in that "
        "of the file.",
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
        help="Stop the search for an order after this much work; unlike a time, this gives the "
        "same order on every machine.",
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
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit with 2 if anything was assumed or left out (if there is a note)."
    ),
]
Minimize = Annotated[
    bool,
    typer.Option(
        "--minimize", help="Look for the smallest peak even if there is a capacity to fit."
    ),
]


@dataclass(frozen=True, slots=True)
class Model:
    """How the command line asks for an input to be read; a problem has only an alignment.

    A command with a parameter of this class has all options below: `running.add_command` puts
    them in place of the parameter.
    """

    dim: Dim = None
    include: Include = None
    exclude: Exclude = None
    in_place: InPlace = False
    strict: Strict = False
    alignment: Alignment = 1
    limit_factor: LimitFactor = 1
    runtime_order: RuntimeOrder = False
    part: Part = None
    runtime: Runtime = True
    pins: bool = True  # no option: keep the offsets in the file
    allow_refused: bool = False  # no option: write a model that its own runtime refuses

    def reading(self) -> ModelOptions:
        """Return the same for a source."""
        from memplan.sources.options import Options

        dims = parse_dims(self.dim or ())
        return Options(
            dims=dims,
            in_place=self.in_place,
            pins=self.pins,
            limit_factor=self.limit_factor,
            runtime_order=self.runtime_order,
        )


def measure(loaded: Loaded, path: str, model: Model) -> tuple[Loaded, Measured]:
    """Run a program for `--measure`; the input gets a note if the run held more than is planned.

    Raises
    ------
    typer.BadParameter
        If it is none, or other tensors are planned than PyTorch allocates.
    FormatError
        If there is a note, and notes are errors.
    """
    hint = "'--measure'"
    if loaded.source != "torch":
        raise typer.BadParameter(
            f"only programs of PyTorch (.pt2) can be run, not {loaded.source}", param_hint=hint
        )
    if model.include or model.exclude:
        raise typer.BadParameter("leave out --include and --exclude", param_hint=hint)
    from memplan.yardsticks.torch_run import measure_file

    found = measure_file(Path(path), model.reading())
    notes = found.make_notes()
    refuse_notes(path, notes if model.strict else ())
    return replace(loaded, notes=(*loaded.notes, *notes)), found


def ask_runtime(loaded: Loaded, path: str, model: Model) -> tuple[Loaded, tuple[Figure, ...]]:
    """Ask the format's own runtime, if it is installed, what it needs and what it refuses.

    Raises
    ------
    FormatError
        If it says anything that is a note, and notes are errors.
    """
    if loaded.graph is None:
        return loaded, ()
    from memplan import yardsticks

    figure = yardsticks.measure(loaded.source, Path(path), model.reading())
    figures = () if figure is None else (figure,)
    notes = yardsticks.join_notes(loaded.notes, figures)
    refuse_notes(path, notes if model.strict else ())
    return replace(loaded, notes=notes), figures


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
    from memplan.planning import capacity_to_load, hold_capacity, settle_sizes

    read = partial(
        sources.load,
        path,
        capacity=capacity_to_load(path, capacity),
        pins=model.pins,
        limit_factor=model.limit_factor,
        runtime_order=model.runtime_order,
        part=model.part,
    )
    loaded = read(dims=model.reading().dims)
    if model.runtime:
        loaded = settle_sizes(loaded, path, model.reading(), read)
    if model.strict and any(note.code == "runtime-refuses" for note in loaded.notes):
        loaded, _ = ask_runtime(loaded, path, model)  # it knows better what it takes
    refuse_notes(path, loaded.notes if model.strict else ())
    if model.include or model.exclude:
        loaded = _with_kinds(loaded, model)
    if model.alignment > 1:
        loaded = _with_alignment(loaded, model.alignment)
    loaded = hold_capacity(loaded, path, capacity)
    refuse_notes(path, loaded.notes if model.strict else ())
    return constrain(loaded, reserve, pin)


def constrain(loaded: Loaded, reserve: Sequence[str] | None, pin: Sequence[str] | None) -> Loaded:
    """Add reserved addresses and pins of the command line to a problem."""
    problem = loaded.problem
    if reserve:
        problem = problem.with_reserved([*problem.reserved, *map(_parse_block, reserve)])
    if pin:
        problem = problem.with_pins(_parse_pins(pin))
    return replace(loaded, problem=problem)


def follow_order(loaded: Loaded, plan: Plan) -> Loaded:
    """Return a program in the order that a plan of `memplan plan --order` says, if it says one.

    Raises
    ------
    GraphError, PlanError
        As `memplan.rewrite.put_in_order`.
    """
    if "order" not in plan.stats:
        return loaded
    from memplan.rewrite import put_in_order

    return put_in_order(loaded, plan.stats["order"])


def find_plan(path: str) -> Plan | None:
    """Return the plan in a file, or `None` if the file is not a plan."""
    from memplan import formats
    from memplan.errors import FormatError

    try:
        return formats.load_plan(path)
    except FormatError:
        return None


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
    from memplan.errors import MemplanError

    graph = loaded.graph
    also = _parse_kinds(model.include or (), "'--include'")
    never = _parse_kinds(model.exclude or (), "'--exclude'")
    if graph is None:
        raise MemplanError(f"a {loaded.source} file does not distinguish kinds of tensors")
    return _with_graph(loaded, replace(graph, planned=(graph.planned | also) - never))


def _with_alignment(loaded: Loaded, unit: int) -> Loaded:
    """Align every offset to `unit` too; a program aligns the offsets of all its layouts."""
    if loaded.graph is None:
        return replace(loaded, problem=loaded.problem.with_alignment(unit))
    both = math.lcm(loaded.graph.alignment, unit)
    return _with_graph(loaded, replace(loaded.graph, alignment=both))


def _with_graph(loaded: Loaded, graph: Graph) -> Loaded:
    """Return an input whose graph was changed, laid out again."""
    from memplan import sources

    made = sources.of_graph(graph, figures=loaded.figures, notes=loaded.notes)
    problem = made.problem.with_capacity(loaded.problem.capacity)
    return replace(made, problem=problem, source=loaded.source)


def parse_dims(texts: Sequence[str]) -> dict[str, int]:
    """Read `NAME=SIZE`, several also in one text."""
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


def parse_paths(path: list[str], known: list[str] | None) -> dict[str, Any]:
    """Return the arguments of `memplan.paths.plan_paths` for what --path and --known say."""
    if path == ["all"]:
        return {"paths": None, "known": known}
    paths = []
    for text in path:
        made: dict[str, str] = {}
        for each in text.split(","):
            name, equals, branch = each.rpartition("=")
            if not (equals and name and branch) or name in made:
                raise typer.BadParameter(
                    f"{each!r} is not NAME=BRANCH, or the name is there twice; `--path all` plans "
                    "every path",
                    param_hint="'--path'",
                )
            made[name] = branch
        paths.append(made)
    return {"paths": paths, "known": known}
