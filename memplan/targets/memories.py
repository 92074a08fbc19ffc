"""Writes programs whose buffers lie in several memories, for the runtimes that obey that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplan.memories import Assigned, Memory
from memplan.memories.models import assign_layouts
from memplan.notes import Note
from memplan.pipeline import Variant, Writer
from memplan.targets.c_header import write_header
from memplan.targets.c_writer import CHeader

__all__ = ["Housed", "house", "house_in_c"]

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
    given: Variant,
    memories: Sequence[Memory],
    allowed: Allowed,
    *,
    name: str,
    **asked: Any,
) -> Housed:
    """Assign a program to memories, and write it for its runtime.

    Parameters
    ----------
    writer
        Of its runtime: TensorFlow Lite Micro, or a program in C.
    given
        The program, perhaps in another order.
    memories, allowed, asked
        Arguments of `memplan.assign`.
    name
        Of its files, without a suffix.

    Raises
    ------
    MemplanError, PlanError
        As `memplan.assign`, and if the runtime cannot have it.
    """
    if isinstance(writer, CHeader):
        return house_in_c(given, memories, allowed, name=name, **asked)
    from memplan.targets.tflite_micro.memories import house_in_tflm

    return house_in_tflm(Path(writer.name), given, memories, allowed, name=name, **asked)


def house_in_c(
    given: Variant,
    memories: Sequence[Memory],
    allowed: Allowed,
    *,
    name: str,
    **asked: Any,
) -> Housed:
    """Write a program as a header in C, with an array for each memory; see `house`."""
    found = assign_layouts(given.loaded, memories, in_place=True, allowed=allowed, **asked)
    order = None if given.order is None else given.order.order
    text = write_header(found.loaded or given.loaded, found, name=name, order=order)
    return Housed(
        found, {f"{name}.h": text.encode()}, "a header in C with an array for each memory"
    )
