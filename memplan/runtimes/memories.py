"""Writes programs whose buffers lie in several memories, for the runtimes that obey that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplan.base.notes import Note
from memplan.memories import Assigned, Memory
from memplan.memories.models import assign_layouts
from memplan.pipeline import Variant, Writer
from memplan.runtimes.c.header import write_header
from memplan.runtimes.c.writer import CHeader
from memplan.runtimes.tflm.read.boards import Board

__all__ = ["Housed", "house"]

Allowed = Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class Housed:
    """A program in several memories.

    Attributes
    ----------
    found
        What is where.
    files
        What its runtime needs, by the name of a file.
    how
        What the files are, in words.
    notes
        What was assumed.
    """

    found: Assigned
    files: Mapping[str, bytes]
    how: str
    notes: tuple[Note, ...] = ()


def house(
    writer: Writer,
    variants: Sequence[Variant],
    memories: Sequence[Memory],
    allowed: Allowed,
    *,
    name: str,
    board: Board | None = None,
    **asked: Any,
) -> Housed:
    """Assign a program to memories, and write it for its runtime.

    Parameters
    ----------
    writer
        Of its runtime: TensorFlow Lite Micro, or a program in C.
    variants
        The program in one or more orders, of which the one with the least traffic counts.
    memories, allowed, asked
        Arguments of `memplan.assign`.
    name
        Of its files, without a suffix.
    board
        Where a TFLite model will run, if the variants are read for a board.

    Raises
    ------
    MemplanError, PlanError
        As `memplan.assign`, and if the runtime cannot have it.
    """
    if isinstance(writer, CHeader):
        made = [_house_in_c(each, memories, allowed, name=name, **asked) for each in variants]
    else:
        from memplan.runtimes.tflm.arena import find_beside
        from memplan.runtimes.tflm.write.memories import house_in_tflm

        path = Path(writer.name)
        beside = find_beside(path, board)
        made = [
            house_in_tflm(path, each, memories, allowed, beside, name=name, board=board, **asked)
            for each in variants
        ]
    return min(made, key=lambda each: each.found.traffic)


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
    text = write_header(found.loaded or given.loaded, found, name=name, order=order)
    return Housed(
        found, {f"{name}.h": text.encode()}, "a header in C with an array for each memory"
    )
