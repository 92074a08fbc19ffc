"""The plan of XLA's heap simulator, from either kind of dump."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import gcd

from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Label

__all__ = ["Chunk", "Heap", "span_all_steps", "tidy"]

_UNKNOWN = Label((), str(Kind.INTERMEDIATE))
MAX_ALIGNMENT = 256  # the largest that any of XLA's backends asks for


@dataclass(frozen=True, slots=True)
class Chunk:
    """Values that XLA puts on the same bytes, because they are one or written in place."""

    values: tuple[str, ...]  # as "instruction{shape index}"; the one that is made first comes first
    bytes: int  # the size of the largest value
    offset: int  # where XLA put the values, in bytes
    start: int  # when one of them is needed: `[start, end)`
    end: int
    gaps: tuple[tuple[int, int], ...] = ()  # times in between, `[start, end)`, when none of them is
    # Its label, where instructions are known: "name (opcode)". The values are not in it.
    origin: Label = _UNKNOWN


@dataclass(frozen=True, slots=True)
class Heap:
    """One allocation that XLA planned."""

    module: str  # the name of the program
    bytes: int  # of the allocation: XLA's peak
    chunks: tuple[Chunk, ...]  # what XLA placed in it
    number: int = 0  # of the allocation, among those of its program

    @property
    def alignment(self) -> int:
        """The largest power of two that every offset of XLA's keeps, within reason.

        The dump does not say what the backend asks for. This is at least that, and XLA's own plan
        keeps it, so that the best plan is no worse than XLA's.
        """
        common = gcd(*(chunk.offset for chunk in self.chunks))
        return min(common & -common, MAX_ALIGNMENT) if common else MAX_ALIGNMENT


def span_all_steps(values: Iterable[Chunk], steps: int) -> list[Chunk]:
    """Return values of unknown lifetimes as chunks that live from beginning to end.

    Values that XLA put on common bytes are one chunk. XLA knew that they are never needed at once;
    the dump does not show it.
    """
    found: list[Chunk] = []
    names: list[list[str]] = []
    for value in sorted(values, key=lambda v: (v.offset, -v.bytes)):
        last = found[-1] if found else None
        if last is not None and value.offset < last.offset + last.bytes:
            top = max(last.offset + last.bytes, value.offset + value.bytes)
            found[-1] = replace(last, bytes=top - last.offset)
            names[-1] += value.values
        else:
            found.append(replace(value, start=0, end=steps))
            names.append(list(value.values))
    return [replace(one, values=tuple(all)) for one, all in zip(found, names, strict=True)]


def tidy(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Return chunks in the order of time, without empty ones."""
    kept = [chunk for chunk in chunks if chunk.bytes and chunk.end > chunk.start]
    return tuple(sorted(kept, key=lambda chunk: (chunk.start, chunk.offset)))
