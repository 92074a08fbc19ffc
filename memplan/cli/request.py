"""All that one call of `memplan plan` asks, as its options were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output, sizes
from memplan.cli.memories import Memories
from memplan.cli.outputs import Outputs, Writing, sort_outputs

if TYPE_CHECKING:
    from memplan.programs.sources.options import Board

__all__ = [
    "Question",
    "Request",
    "Showing",
    "refuse_handed",
    "refuse_unused",
    "refuse_without_levers",
]


@dataclass(frozen=True)
class Question:
    """What may be done to the programs, what runs when, and what sharing costs."""

    levers: Annotated[
        list[str] | None,
        typer.Option(
            "--levers",
            metavar="LIST",
            help="What may be done to a program, joined by commas: order, in-place, again, bands, "
            "waits, unread. The best of what they make is planned.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="TENSOR",
            help="Of several programs: what must survive until its program runs again, as TENSOR, "
            "PROGRAM:TENSOR, `outputs` or `inputs`. May be repeated.",
        ),
    ] = None
    overlap: Annotated[
        list[str] | None,
        typer.Option(
            "--overlap",
            metavar="A,B",
            help="Two of several programs that may run at the same time. May be repeated.",
        ),
    ] = None
    often: Annotated[
        list[str] | None,
        typer.Option(
            "--often",
            metavar="PROGRAM=N",
            help="Of several programs: this one runs N times while the others run once; traffic "
            "counts so. May be repeated.",
        ),
    ] = None
    penalties: Annotated[
        str | None,
        typer.Option(
            "--penalties",
            metavar="PAIRS.csv",
            help="Pay as little as --capacity allows for pairs that share addresses; the file has "
            "the columns first,second,cost.",
        ),
    ] = None
    block_limit: Annotated[
        int | None,
        typer.Option(
            "--block-limit",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="Place the buffers in several blocks, none larger than this or its largest "
            "buffer: as few as possible, of as few bytes as possible.",
        ),
    ] = None

    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Only sizes that keep to this, such as 'batch*tokens<=4096'. May be repeated.",
        ),
    ] = None
    minimize: options.Minimize = False
    solver: Annotated[
        str,
        typer.Option("--solver", metavar="NAME", help="The solver; see `memplan solvers`."),
    ] = "auto"
    spill: options.Spill = None
    costs: options.Costs = None

    def list_levers(self, *, in_place: bool) -> tuple[str, ...]:
        """Return the names of the levers, also of the one that has an option of its own."""
        names = [each.strip() for text in self.levers or () for each in text.split(",")]
        return tuple(dict.fromkeys([*filter(None, names), *["in-place"] * in_place]))

    def list_pairs(self) -> list[tuple[str, str]]:
        """Return the programs that may overlap."""
        return [_parse_pair(text) for text in self.overlap or ()]

    def count_runs(self) -> dict[str, int]:
        """Return how often programs run, by name."""
        found = {}
        for text in self.often or ():
            name, _, count = text.rpartition("=")
            if not name or not count.isdecimal() or len(count) > 9 or name in found:
                raise typer.BadParameter(
                    f"{text!r} is not PROGRAM=N, or the program is given twice",
                    param_hint="'--often'",
                )
            found[name] = int(count)
        return found


def _parse_pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first.strip() and second.strip()):
        raise typer.BadParameter(f"{text!r} is not A,B", param_hint="'--overlap'")
    return first.strip(), second.strip()


@dataclass(frozen=True)
class Showing:
    """What is printed."""

    as_json: options.AsJson = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False
    top: options.Top = 10
    measure: options.Measure = False
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Show the best plan so far; by default on a terminal.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class Request:
    """All that one call of the command asks, as its options were given."""

    inputs: Sequence[str]
    question: Question
    memories: Memories
    on: options.OnBoard
    rewriting: options.Rewriting
    model: options.Model
    constraints: options.Constraints
    paths: options.Paths
    search: options.Search
    writing: Writing
    showing: Showing

    @cached_property
    def board(self) -> Board | None:
        """The board; `None` if none is named."""
        return self.memories.find_board(self.on)

    @cached_property
    def outputs(self) -> Outputs:
        """What is written, by what it is."""
        return sort_outputs(self.writing, self.inputs)

    @property
    def has_sizes(self) -> bool:
        """Whether a dimension has several sizes."""
        return sizes.has_ranges(self.model.dim)

    @property
    def is_one_arena(self) -> bool:
        """Whether it is of one program, of one size, in one arena."""
        asked = self.question
        others = (asked.keep, asked.overlap, asked.often, asked.penalties, asked.block_limit)
        return len(self.inputs) == 1 and not (any(others) or self.memories.texts or self.has_sizes)

    @property
    def changes(self) -> set[str]:
        """The levers that change the program, and not only its layout."""
        return {*self.levers} - {"in-place", "in place"}

    @property
    def is_as_it_is(self) -> bool:
        """Whether the program is planned as it is, of one size, in one arena."""
        others = (self.changes, self.writing.program, self.paths.path)
        return self.is_one_arena and not any(others)

    @property
    def is_envelope(self) -> bool:
        """Whether only the sizes of one program are asked about."""
        asked, constraints = self.question, self.constraints
        parted = (asked.block_limit, self.memories.texts, self.paths.path)
        others = (asked.penalties, self.writing.program, *parted)
        bounds = (constraints.capacity, constraints.reserve, constraints.pin, asked.minimize)
        return (
            len(self.inputs) == 1
            and self.has_sizes
            and not (any(others) or any(bounds) or self.levers or asked.solver != "auto")
        )

    @property
    def is_arena(self) -> bool:
        """Whether all lies in one arena, in which sharing costs nothing."""
        asked = self.question
        return not (self.memories.texts or asked.penalties or asked.block_limit)

    @cached_property
    def levers(self) -> tuple[str, ...]:
        """The names of the levers."""
        return self.question.list_levers(in_place=self.model.in_place)


def refuse_unused(request: Request) -> None:
    """Refuse options that say nothing about one program as it is, of one size, in one arena."""
    if request.question.where or request.model.every_size:
        hint = "'--where'" if request.question.where else "'--read'"
        raise typer.BadParameter("it needs several sizes, as in --dim batch=1:64", param_hint=hint)
    refuse_without_levers(request)
    rewriting, writing = request.rewriting, request.writing
    limits = {
        "--max-extra-macs": rewriting.max_extra is not None,
        "--accept": rewriting.accept is not None,
    }
    output.refuse_given(limits, "it needs --levers, or a model as output")
    refuse_handed(request)
    output.refuse_given({"--plan": writing.plan is not None}, "it needs a model or a header (.h)")


def refuse_without_levers(request: Request) -> None:
    """Refuse what says something about levers that are not pulled."""
    levers, asked = {*request.levers}, request.question
    given = {"--spill": asked.spill is not None, "--costs": asked.costs is not None}
    if "again" not in levers:
        output.refuse_given(given, "it needs --levers again")
    if request.rewriting.pure and not {"again", "order"} & levers:
        raise typer.BadParameter("it needs --levers order or again", param_hint="'--pure'")


def refuse_handed(request: Request) -> None:
    """Refuse what says something about a header, where none is written."""
    given = {"--name": request.writing.name is not None}
    output.refuse_given(given, "it is of a header; give -o FILE.h")
