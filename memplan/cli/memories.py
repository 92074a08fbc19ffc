"""`memplan plan FILE --memory A --memory B`: buffers in several memories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.answer import Answer, Part
    from memplan.base.notes import Note
    from memplan.machine.description import Description
    from memplan.machine.memories import Memory, Stretch
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded
    from memplan.programs.sources.options import Board

__all__ = ["Memories", "note_kept", "put_into", "refuse_alone", "tell_memory", "verify"]


@dataclass(frozen=True)
class Memories:
    """Several memories instead of one arena."""

    memory: Annotated[
        list[str] | None,
        typer.Option(
            "--memory",
            metavar="NAME=SIZE",
            help="A memory that buffers may lie in, the fastest first: sram=256KiB, then "
            "psram=8MiB,read=80MB/s,write=40MB/s; also ,base=ADDRESS,align=N,block=SIZE.",
        ),
    ] = None
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="FILE",
            help="The machine in TOML: memories, what is reserved, the board.",
        ),
    ] = None
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="ID=NAME",
            help="With --memory: this buffer may lie only in this memory, or in several, joined by "
            "commas. May be repeated.",
        ),
    ] = None
    reads: Annotated[
        list[str] | None,
        typer.Option(
            "--reads",
            metavar="TYPE=N",
            help="With --memory: operators of this type read each input N times, not once; "
            "TYPE=N,M has a number for each input. May be repeated.",
        ),
    ] = None
    residency: Annotated[
        bool,
        typer.Option(
            "--residency",
            help="With --memory: buffers of a slow memory may be in a faster one between some of "
            "their accesses.",
        ),
    ] = False

    def __post_init__(self) -> None:
        given = {"--allow": self.allow, "--reads": self.reads, "--residency": self.residency}
        for option, is_given in given.items():
            if is_given and not (self.memory or self.machine):
                raise typer.BadParameter("it needs --memory", param_hint=f"'{option}'")
        if self.memory and self.machine:
            raise typer.BadParameter("the file has the memories", param_hint="'--memory'")

    @cached_property
    def described(self) -> Description:
        """What `--machine` says; nothing without it."""
        from memplan.machine.description import Description, read_description

        return Description() if self.machine is None else read_description(self.machine)

    @property
    def texts(self) -> list[str]:
        """The memories, as `--memory` takes them."""
        return [*(self.memory or ()), *self.described.memories]

    @property
    def all_reads(self) -> list[str]:
        """How often operators read, as `--reads` takes it."""
        return [*self.described.reads, *(self.reads or ())]

    def find_board(self, on: options.OnBoard) -> Board | None:
        """Return the board that is named; otherwise that of the machine, if it has one."""
        return (on if on.board is not None else options.OnBoard(self.described.board)).find()

    def add_reserved(self, constraints: options.Constraints) -> options.Constraints:
        """Return constraints with what the machine reserves."""
        reserve = [*(constraints.reserve or ()), *self.described.reserved]
        return replace(constraints, reserve=reserve or None)

    def parse(self) -> tuple[tuple[Memory, ...], dict[str, Any]]:
        """Return the memories, and what else is asked, as arguments of `memplan.assign`."""
        from memplan.machine.memories.text import parse_memories, parse_reads

        allowed: dict[str, list[str]] = {}
        for text in self.allow or ():
            id, _, names = text.rpartition("=")  # an id may have a "=" in it
            if not id or id in allowed:
                raise typer.BadParameter(
                    f"{text!r} is not ID=NAME, or this buffer is given twice",
                    param_hint="'--allow'",
                )
            allowed[id] = names.split(",")
        reads = parse_reads(self.all_reads)
        asked = {"allowed": allowed, "reads": reads, "residency": self.residency}
        return parse_memories(self.texts), asked


def note_kept(input: str, board: Board) -> Note:
    """Return how much of one of the memories TFLM takes for itself."""
    from pathlib import Path

    from memplan.base.notes import Code, Note
    from memplan.runtimes.tflm.arena import find_beside
    from memplan.view.words.parts import tell_unknown

    beside = find_beside(Path(input), board)
    text = (
        f"TFLM on {board} keeps {beside.bytes} bytes in one of the memories"
        f"{tell_unknown(beside.unknown)}; memplan fit leaves them free, and this plan does not"
    )
    return Note(Code.ARENA_UNMEASURED, text)


def put_into(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return files by their paths in a folder."""
    return {os.path.join(folder, name): data for name, data in files.items()}


def tell_memory(found: Answer, part: Part, reads: Sequence[str] | None = None) -> Plan:
    """Return the plan of a part, which says of which memory it is, if there are several.

    It says too of which buffers it holds pieces, and when; and how often operators read, if that
    was given.
    """
    from memplan.machine.memories import Assigned
    from memplan.machine.memories.text import format_memory
    from memplan.scenarios.together import Together

    for claim in found.claims:
        if isinstance(claim, Together):  # states are told beside the buffers of a program
            return claim.programs[claim.names.index(part.program)].plan
        if not isinstance(claim, Assigned):
            continue
        for memory in claim.memories:
            if memory.name == part.place.partition("/")[0]:
                ids = set(part.plan.ids)
                pieces = [asdict(each) for each in claim.stretches if each.copy in ids]
                said: dict[str, Any] = {"memory": format_memory(memory)}
                said |= {"stretches": pieces} if pieces else {}
                said |= {"reads": list(reads)} if reads else {}
                return part.plan.with_stats(**said)
    return part.plan


def refuse_alone(plan: Plan, path: str) -> None:
    """Refuse the plan of one memory where all are needed."""
    if "memory" in plan.stats:
        raise typer.BadParameter(
            f"{path} is the plan of one of several memories; give the folder of all of them",
            param_hint="'PLAN'",
        )


def verify(loaded: Loaded, folder: str, plans: Mapping[str, Plan], *, in_place: bool) -> None:
    """Check the plans of all memories in a folder; say why, and exit with 1, if one is wrong."""
    from memplan.base.errors import FormatError, PlanError
    from memplan.machine.memories.accesses import list_accesses, sum_bytes
    from memplan.machine.memories.text import parse_memories, parse_reads
    from memplan.referee import verify_assigned
    from memplan.solvers.planning import layouts
    from memplan.view.words.assigned import describe_valid

    texts = []
    for path, plan in plans.items():
        text = plan.stats["memory"]
        if not isinstance(text, str):
            raise FormatError(path, "its `memory` is not as `memplan plan --memory` writes it")
        texts.append(text)
    memories, given = parse_memories(texts), [*plans.values()]
    reads = parse_reads(_read_reads(plans))
    stretches = [each for path, plan in plans.items() for each in _read_stretches(path, plan)]
    wrong = None
    for layout in layouts(loaded, in_place=in_place):
        problem = layout.problem.with_capacity(None)
        timed = list_accesses(layout, reads=reads)
        accessed = dict(zip(problem.ids, sum_bytes(timed), strict=True))
        steps = {
            id: [(each.time, each.read, each.written) for each in row]
            for id, row in zip(problem.ids, timed, strict=True)
        }
        try:
            traffic = verify_assigned(problem, memories, given, {}, accessed, (), stretches, steps)
        except PlanError as error:
            wrong = wrong or error
            continue
        output.console().print(describe_valid(problem, memories, given, traffic))
        return
    output.message(f"{folder}: {wrong}")
    raise typer.Exit(output.INFEASIBLE)


def _read_reads(plans: Mapping[str, Plan]) -> list[str]:
    """Return how often operators read, as the plans of all memories say it, which have to agree."""
    from memplan.base.errors import FormatError

    found: Any = None
    for path, plan in plans.items():
        stated = plan.stats.get("reads", [])
        is_list = isinstance(stated, list) and all(isinstance(each, str) for each in stated)
        if not is_list or found not in (None, stated):
            raise FormatError(path, "its `reads` are not those that `memplan plan --reads` writes")
        found = stated
    return found or []


def _read_stretches(path: str, plan: Plan) -> list[Stretch]:
    """Return when a plan holds pieces of buffers of other memories, as `make_plans` says it."""
    from memplan.base.errors import FormatError
    from memplan.machine.memories import Stretch

    types = {each.name: each.type for each in fields(Stretch)}
    stated = plan.stats.get("stretches", [])
    if not isinstance(stated, list) or not all(
        isinstance(each, dict)
        and {key: type(value).__name__ for key, value in each.items()} == types
        for each in stated
    ):
        raise FormatError(path, "its stretches are not as `memplan plan --residency` writes them")
    return [Stretch(**each) for each in stated]
