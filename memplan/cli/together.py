"""`memplan plan A B --together`: several programs in one arena."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.sources.tflite.boards import Board
    from memplan.together import Together

__all__ = ["run"]


def run(
    inputs: Sequence[str],
    model: options.Model,
    capacity: int | None,
    search: options.Search,
    shared: options.Together,
    folder: str | None,
    board: Board | None = None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Plan programs in one arena, print what that needs, and write a plan for each.

    Parameters
    ----------
    inputs
        The files of the programs.
    model, capacity, search, shared
        As options of the command; the capacity is of the arena.
    folder
        Where the plan of each program goes, as "NAME.plan.json".
    board
        Where the programs will run, if not on this machine.
    as_json, quiet
        What is printed.
    """
    if folder is not None and not os.path.isdir(folder):
        raise typer.BadParameter(
            f"{folder!r} is no folder; each program has a plan of its own, which goes into it",
            param_hint="'--output'",
        )
    pairs = shared.pairs()
    output.check_libraries(*inputs)
    programs = [reading.read_input(each, model, board=board) for each in inputs]

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
    if as_json:
        output.line(output.make_json(_summarise(found, files)))
    elif not quiet:
        from memplan.view.words import parts, together

        output.console().print(together.describe_together(found))
        notes = {note.text: note for each in found.programs for note in each.notes}
        if notes:
            output.console().print(parts.render_notes(tuple(notes.values())))
        for path in files.values():
            output.line(f"{path}: written")


def _summarise(found: Together, files: dict[str, str]) -> dict[str, Any]:
    return {
        "status": str(found.plan.status),
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
                "output": files.get(name),
            }
            for number, (name, each, kept) in enumerate(
                zip(found.names, found.programs, found.kept, strict=True)
            )
        ],
        "seconds": round(found.seconds, 6),
    }
