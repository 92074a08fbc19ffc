"""Peaks of each format's own runtime for the same program, measured or re-implemented."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from memplan.base.notes import Code, Note
from memplan.programs.sources.loaded import Beside, Figure
from memplan.programs.sources.options import Options
from memplan.programs.sources.registry import find_format, import_runtime

__all__ = ["find_beside", "join_notes", "measure"]


def measure(source: str, path: Path, options: Options) -> Figure | None:
    """Return the peak of a source's own runtime, or `None` if there is no way to get it.

    The source (`Loaded.source`) has read the file with the same options without an error.
    """
    if not find_format(source).runtime:
        return None
    return cast("Figure | None", import_runtime(source, "measure").measure(path, options))


def find_beside(source: str, path: Path) -> Beside | None:
    """Return what a source's own runtime keeps in its arena beside a plan.

    `None` for all but TFLite models: no other runtime has one block of memory for all it needs.
    """
    if not find_format(source).has_arena:
        return None
    return cast("Beside", import_runtime(source, "arena").find_beside(path))


def join_notes(notes: Iterable[Note], figures: Iterable[Figure]) -> tuple[Note, ...]:
    """Return the notes of a reader with what the runtime says, whose word counts.

    What a reader knows of a runtime's kernels is left out as soon as the runtime itself was asked.
    A figure that shows that the planned sizes are too small is an alarm, whatever the format.
    """
    joined = dict.fromkeys(notes)
    for figure in figures:
        if figure.how == "measured" or figure.notes:
            joined = {note: None for note in joined if note.code is not Code.RUNTIME_REFUSES}
        joined |= dict.fromkeys(figure.notes)
        beyond = [figure.beyond] if figure.beyond else []
        if figure.live > figure.load:
            beyond.insert(0, f"{figure.live} bytes live at one time, {figure.load} planned")
        if beyond:
            text = f"{figure.runtime} needs more than the sizes that are planned: "
            joined[Note(Code.MEASURED_ABOVE, text + "; ".join(beyond))] = None
    return tuple(joined)
