"""What is written of a program whose buffers lie in several memories, whatever its runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memplan.base.notes import Note
from memplan.machine.memories import Assigned

__all__ = ["Housed"]


@dataclass(frozen=True)
class Housed:
    """A program in several memories."""

    found: Assigned  # what is where
    files: Mapping[str, bytes]  # what its runtime needs, by the name of a file
    how: str  # what the files are, in words
    notes: tuple[Note, ...] = ()  # what was assumed
