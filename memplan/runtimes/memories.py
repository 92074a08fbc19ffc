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
    """A program in several memories."""

    found: Assigned  # what is where
    files: Mapping[str, bytes]  # what its runtime needs, by the name of a file
    how: str  # what the files are, in words
    notes: tuple[Note, ...] = ()  # what was assumed


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
    """Assign a program to memories, and write it for its runtime, which has to be able to have it.

    The writer is of TensorFlow Lite Micro, or of a program in C. Of the variants, which are the
    program in one or more orders, the one with the least traffic counts. The name is that of the
    files, without a suffix; the board is where a TFLite model will run, if the variants are read
    for one. Other arguments are those of `memplan.assign`.
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
