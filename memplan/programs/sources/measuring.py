"""Peaks of each format's own runtime for the same program, measured or re-implemented."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from memplan.base.notes import Code, Note
from memplan.programs.sources.loaded import Beside, Figure
from memplan.programs.sources.options import Options

__all__ = ["find_beside", "import_runtime", "join_notes", "measure"]

# By source: the package of its runtime, which has `measure.measure(path, options)`.
_RUNTIMES: Final = {
    "onnx": "memplan.runtimes.onnx",
    "tflite": "memplan.runtimes.tflm",
    "torch": "memplan.runtimes.torch",
}


def measure(source: str, path: Path, options: Options) -> Figure | None:
    """Return the peak of a source's own runtime, or `None` if there is no way to get it.

    The source (`Loaded.source`) has read the file with the same options without an error.
    """
    if source not in _RUNTIMES:
        return None
    return cast("Figure | None", import_runtime(source, "measure").measure(path, options))


def find_beside(source: str, path: Path) -> Beside | None:
    """Return what a source's own runtime keeps in its arena beside a plan.

    `None` for all but TFLite models: no other runtime has one block of memory for all it needs.
    """
    if source != "tflite":
        return None
    return cast("Beside", import_runtime(source, "arena").find_beside(path))


def import_runtime(source: str, module: str) -> Any:
    """Return a module of a source's own runtime, which is not loaded before it is asked."""
    return importlib.import_module(f"{_RUNTIMES[source]}.{module}")


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
