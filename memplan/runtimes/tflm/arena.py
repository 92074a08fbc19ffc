"""Finds the smallest arena with which TensorFlow Lite Micro accepts a model, by trials.

A plan can only make the head of an arena smaller. The tail follows the head, which lives as long as
the interpreter: structs for tensors and operators, quantization, state. It depends on the machine
(pointers are half as wide on most chips) and on the version, so it can only be measured.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from memplan.base.errors import MemplanError, listed
from memplan.base.notes import Code, Note
from memplan.programs.sources.children import run_child
from memplan.programs.sources.loaded import Arena, Beside, Loaded
from memplan.programs.sources.options import Board
from memplan.runtimes.tflm.board_arena import compute_arena
from memplan.runtimes.tflm.measure import (
    LARGEST,
    SPARE,
    Answer,
    ask,
    compute_head,
    find_version,
)
from memplan.runtimes.tflm.read.model import Model, load

__all__ = ["find_beside", "hold_capacity", "minimal_arena"]

_CHILD: Final = Path(__file__).with_name("_arena_child.py")


def minimal_arena(path: Path, model: Model | None = None, *, timeout: float = 120.0) -> int | None:
    """Return the smallest `tensor_arena` for a model in bytes, a multiple of 16.

    Parameters
    ----------
    path
        A `.tflite` file, planned or not.
    model
        What is in it, if it was parsed before.
    timeout
        Seconds for the whole search.

    Returns
    -------
    int or None
        Measured with the interpreter of the installed tflite-micro, on this machine; `None` if it
        is not installed, or if trials are not safe (on Windows).

    Raises
    ------
    FormatError
        If the file is damaged.
    MemplanError
        If TFLM refuses the model with an arena of any size, or takes too long.
    """
    model = model or load(path)
    if find_version() is None or sys.platform == "win32":
        return None
    low = compute_head(model)
    kept = sum(t.bytes for t in model.tensors() if t.variable or t.data)
    order = {"path": str(path), "low": low, "limit": min(2 * low + kept + SPARE, LARGEST)}
    run = run_child(_CHILD, order, timeout)
    if run is None:
        raise MemplanError(
            f"{path}: TensorFlow Lite Micro did not finish within {timeout:g} seconds"
        )
    if run.returncode != 0 or not run.stdout:
        answer = ask(path, model)
        reason = "" if answer is None or not answer.refusal else f": {answer.refusal}"
        raise MemplanError(
            f"{path}: TensorFlow Lite Micro refuses this model with an arena of any size{reason}"
        )
    return int(json.loads(run.stdout))


def find_beside(path: Path, board: Board | None = None) -> Beside:
    """Return what TFLM keeps beside the head of a model: of the file as it is, or on a board."""
    if board is None:
        return _explain_beside(ask(path))
    found = compute_arena(path, board)
    return Beside(found.persistent, f"computed for {board}", found.preparing, found.unknown)


def _explain_beside(answer: Answer | None) -> Beside:
    if answer is None:
        how = "tflite-micro is not installed (pip install 'memplan[tflm]'), or does not answer"
        return Beside(None, how)
    if answer.refusal:
        return Beside(None, f"{answer.runtime} does not take the file as it is")
    how = f"measured by {answer.runtime} on this machine, 64-bit, with the reference kernels"
    return Beside(answer.tail, how)


def hold_capacity(loaded: Loaded, path: Path, capacity: int, board: Board | None = None) -> Loaded:
    """Return a TFLite model whose whole arena has a capacity: the plan gets what TFLM leaves.

    The path is that of its file, the capacity in bytes, and the board where it will run, if not on
    this machine.
    """
    unknown: tuple[str, ...] = ()
    if board is None:
        arena = _measure_beside(path, capacity)
    else:
        beside = find_beside(path, board)
        unknown = beside.unknown
        arena = Arena(
            capacity, beside.bytes, beside.least, beside.how, on_board=True, unknown=unknown
        )
    left = capacity if arena.beside is None else capacity - arena.beside
    left = max(1, left) if capacity >= arena.least else 1  # nothing fits into one byte
    notes = loaded.notes
    if unknown:
        text = (
            f"the capacity of {capacity} bytes is held against an arena without what is not known "
            f"of {listed(unknown, quote=False)} on {board}"
        )
        notes = (*notes, Note(Code.ARENA_UNMEASURED, text))
    if arena.beside is None:
        text = (
            f"the capacity of {capacity} bytes is held against the planned part of the arena only; "
            f"what TensorFlow Lite Micro keeps beside it is unknown: {arena.how}"
        )
        notes = (*notes, Note(Code.ARENA_UNMEASURED, text))
    return replace(loaded, problem=loaded.problem.with_capacity(left), arena=arena, notes=notes)


def _measure_beside(path: Path, capacity: int) -> Arena:
    """Return what TFLM needs of an arena beside the head, with the file as it is."""
    answer = ask(path)
    beside = _explain_beside(answer)
    if answer is None or beside.bytes is None:
        return Arena(capacity, None, 0, beside.how)
    try:
        smallest = minimal_arena(path)
    except MemplanError:  # it takes the model only with weights unpacked, or is too slow
        smallest = None
    if smallest is None:
        return Arena(capacity, None, 0, f"{answer.runtime} does not take the file as it is")
    # Where preparing needs more than the parts together, a smaller plan makes no difference.
    least = smallest if smallest > answer.head + answer.tail else 0
    return Arena(capacity, beside.bytes, least, beside.how)
