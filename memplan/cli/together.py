"""`memplan plan A B --together`: several programs in one arena."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.runtimes.tflm.board_arena import BoardArena
    from memplan.runtimes.tflm.read.boards import Board
    from memplan.together import Together as Planned

__all__ = ["Together", "run"]


@dataclass(frozen=True)
class Together:
    """Several programs in one arena."""

    together: Annotated[
        bool,
        typer.Option(
            "--together",
            help="Plan several programs in one arena. They run one after another, in any order.",
        ),
    ] = False
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="TENSOR",
            help="With --together: what must survive until its program runs again, as TENSOR, "
            "PROGRAM:TENSOR, `outputs` or `inputs`. May be repeated.",
        ),
    ] = None
    overlap: Annotated[
        list[str] | None,
        typer.Option(
            "--overlap",
            metavar="A,B",
            help="With --together: two programs that may run at the same time. May be repeated.",
        ),
    ] = None

    def __post_init__(self) -> None:
        for option, given in (("--keep", self.keep), ("--overlap", self.overlap)):
            if given and not self.together:
                raise typer.BadParameter("it needs --together", param_hint=f"'{option}'")

    def pairs(self) -> list[tuple[str, str]]:
        """Return the programs that may overlap."""
        return [_parse_pair(text) for text in self.overlap or ()]


def _parse_pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first.strip() and second.strip()):
        raise typer.BadParameter(f"{text!r} is not A,B", param_hint="'--overlap'")
    return first.strip(), second.strip()


def run(
    inputs: Sequence[str],
    model: options.Model,
    capacity: int | None,
    search: options.Search,
    shared: Together,
    folder: str | None,
    board: Board | None = None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Plan programs in one arena, print what that needs, and write a plan for each.

    The plan of each program goes into the folder as "NAME.plan.json"; the capacity is of the arena,
    and the board is where the programs will run, if not on this machine.
    """
    output.check_folder(folder)
    pairs = shared.pairs()
    output.check_libraries(*inputs)
    programs = [reading.read_input(each, model, board=board) for each in inputs]
    reading.require_unit(capacity, *programs)

    from memplan import formats
    from memplan.formats.json import write_plan
    from memplan.together import name_programs, plan_together

    names = name_programs([output.names.get(each, each) for each in inputs])
    found = plan_together(
        programs,
        names=names,
        keep=shared.keep or (),
        overlap=pairs,
        in_place=model.in_place,
        capacity=capacity,
        **vars(search),
    )
    files: dict[str, str] = {}
    if folder is not None:
        files = {name: os.path.join(folder, f"{name}.plan.json") for name in found.names}
        rows = zip(files.values(), found.programs, strict=True)
        formats.write_files({path: write_plan(each.plan).encode() for path, each in rows})
    beside = [] if board is None else _find_beside(inputs, board)
    if as_json:
        output.line(output.make_json(_summarise(found, files, beside)))
    elif not quiet:
        from memplan.runtimes.tflm.read.boards import tell_unknown
        from memplan.view.words import parts, together

        output.console().print(together.describe_together(found))
        if beside:
            sizes = zip(beside, found.names, strict=True)
            kept = ", ".join(f"{each.persistent:,} for {name}" for each, name in sizes)
            whole = found.peak + sum(each.persistent for each in beside)
            unknown = sorted({type for each in beside for type in each.unknown})
            in_all = f"{whole:,} bytes in all{tell_unknown(unknown)}"
            output.line(f"TFLM on {board} keeps beside it {kept}: {in_all}")
        notes = {note.text: note for each in found.programs for note in each.notes}
        if notes:
            output.console().print(parts.render_notes(tuple(notes.values())))
        output.tell_written(*files.values())
    output.tell_interrupted(found.interrupted, found.plan.status)


def _find_beside(inputs: Sequence[str], board: Board) -> list[BoardArena]:
    """Return the arena of each program, of which TFLM keeps a part beside the shared one."""
    from pathlib import Path

    from memplan.runtimes.tflm.board_arena import compute_arena

    return [compute_arena(Path(each), board) for each in inputs]


def _summarise(
    found: Planned, files: dict[str, str], beside: Sequence[BoardArena]
) -> dict[str, Any]:
    return {
        "status": str(found.plan.status),
        "interrupted": found.interrupted,
        "peak": found.peak,
        "lower_bound": found.plan.lower_bound,
        "capacity": found.problem.capacity,
        "by_hand": found.by_hand,
        "separate": found.separate,
        "programs": [
            {
                "name": name,
                "source": each.loaded.source,
                "in_place": each.in_place,
                "peak": each.plan.peak,
                "buffers": len(each.problem),
                "kept": {id: found.offset(name, id) for id in kept},
                "overlap": sorted(
                    found.names[b if a == number else a]
                    for a, b in found.overlap
                    if number in (a, b)
                ),
                "beside": beside[number].persistent if beside else None,
                "unknown": beside[number].unknown if beside else (),
                "output": files.get(name),
            }
            for number, (name, each, kept) in enumerate(
                zip(found.names, found.programs, found.kept, strict=True)
            )
        ],
        "seconds": round(found.seconds, 6),
    }
