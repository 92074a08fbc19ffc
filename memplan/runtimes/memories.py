"""Writes programs whose buffers lie in several memories, for the runtimes that obey that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memplan.base.files import temporary_folder
from memplan.levers.pipeline import Variant, Writer
from memplan.machine.memories import Memory
from memplan.machine.memories.models import assign_layouts
from memplan.programs.sources.loaded import Beside
from memplan.programs.sources.options import Board
from memplan.runtimes.c.header import write_header
from memplan.runtimes.c.writer import CHeader
from memplan.runtimes.housed import Housed

__all__ = ["house"]

Allowed = Mapping[str, Iterable[str]]


def house(
    writer: Writer,
    given: Variant,
    memories: Sequence[Memory],
    allowed: Allowed,
    *,
    name: str,
    board: Board | None = None,
    **asked: Any,
) -> Housed:
    """Assign a program to memories, and write it for its runtime, which has to be able to have it.

    The writer is of TensorFlow Lite Micro, or of a program in C. The name is that of the files,
    without a suffix; the board is where a TFLite model will run, if the program is read for one.
    Other arguments are those of `memplan.machine.memories.assign`.
    """
    if isinstance(writer, CHeader):
        return _house_in_c(given, memories, allowed, name=name, **asked)
    from memplan.runtimes.tflm.write.memories import house_in_tflm

    path = Path(writer.name)
    beside = _find_beside(path, given, board)
    return house_in_tflm(path, given, memories, allowed, beside, name=name, board=board, **asked)


def _find_beside(path: Path, given: Variant, board: Board | None) -> Beside:
    """Return what TFLM keeps beside the tensors; it keeps more for operators that bands add."""
    from memplan.runtimes.tflm.arena import find_beside

    if given.cut is None:
        return find_beside(path, board)
    with temporary_folder(str(path)) as folder:
        changed = Path(folder) / path.name
        changed.write_bytes(given.data)
        return find_beside(changed, board)


def _house_in_c(
    given: Variant,
    memories: Sequence[Memory],
    allowed: Allowed,
    *,
    name: str,
    **asked: Any,
) -> Housed:
    """Write a program as a header in C, with an array for each memory."""
    found = assign_layouts(given.loaded, memories, in_place=True, allowed=allowed, **asked)
    order = None if given.order is None else given.order.order
    if given.again is not None:
        order = given.again.operators
    text = write_header(
        found.loaded or given.loaded, found, name=name, order=order, bands=given.cut
    )
    how = "a header in C with an array for each memory"
    return Housed(found, {f"{name}.h": text.encode()}, how, given.loaded.notes)
