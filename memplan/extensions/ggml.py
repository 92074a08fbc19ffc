"""What an allocator of ggml did for one graph, as `examples/ggml` writes it (docs/ggml.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NoReturn

from memplan.base.errors import FormatError, MemplanError, quoted
from memplan.base.files import read_text
from memplan.base.notes import Note
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES
from memplan.programs.sources.loaded import Figure, Loaded, note_limit
from memplan.programs.sources.options import Options

__all__ = ["Events", "matches", "parse", "read"]

_HEAD: Final = "ggml-events 1"
# By the first word of a line: how many numbers follow.
_FORMS: Final = {"+": (1, 1), "-": (1, 2), "alignment": (1, 1), "limit": (1, 1), "ggml": (1, 99)}
_KNOWN: Final = (
    '"+ BYTES", "- BLOCK", "- BLOCK KEPT", "alignment BYTES", "limit BYTES" and "ggml BYTES ..."'
)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True)
class Events:
    """A list of events."""

    # A buffer for each block, with its number as its id; a time is the number of an event. From the
    # end of a block some bytes may be freed before the others: a gap with a window.
    problem: Problem
    limit: int | None  # the most bytes of a chunk
    # The bytes of each chunk by ggml's own addresses; empty if the list does not say.
    chunks: tuple[int, ...]


def matches(head: bytes, path: Path) -> bool:
    """Return whether a file with this beginning is a list of events."""
    return head.startswith(_HEAD.encode())


def read(path: Path, options: Options) -> Loaded:
    """Read a list of events, and make the problem of its blocks."""
    events = parse(read_text(path), str(path))
    figures: tuple[Figure, ...] = ()
    notes: tuple[Note, ...] = ()
    if events.chunks:
        what = f"in {len(events.chunks)} chunks" if len(events.chunks) > 1 else ""
        figures = (Figure("ggml", sum(events.chunks), "recorded", what),)
    if events.limit is not None and events.problem.max_load > events.limit:
        notes = (note_limit(events.limit),)
    return Loaded(
        events.problem,
        "ggml-events",
        len(events.problem),
        figures=figures,
        notes=notes,
        block_limit=events.limit,
    )


def parse(text: str, name: str) -> Events:
    """Return the events of a text; a `FormatError` names the line."""
    reader = _Reader(name)
    lines = text.splitlines()
    if not lines or lines[0].strip() != _HEAD:
        raise FormatError(
            name, f'this is not "{_HEAD}", the only version that memplan reads', line=1
        )
    for number, line in enumerate(lines[1:], start=2):
        words = line.split()
        if words and not words[0].startswith("#"):
            reader.take(number, words)
    try:
        return reader.finish()
    except MemplanError as error:
        raise FormatError(name, str(error)) from None


class _Reader:
    """Takes one line after the other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._alignment = 1
        self._limit: int | None = None
        self._chunks: tuple[int, ...] = ()
        self._start: list[int] = []
        self._end: list[int] = []
        self._size: list[int] = []
        self._kept: list[int] = []  # by block: how many of its bytes are allocated now
        self._cuts: list[list[tuple[int, int]]] = []  # by block: from when on, how many are kept
        self._now = 0

    def take(self, line: int, words: list[str]) -> None:
        form = _FORMS.get(words[0])
        if form is None or not form[0] <= len(words) - 1 <= form[1]:
            self._fail(line, f"{quoted(' '.join(words))} is not one of {_KNOWN}")
        numbers = [self._number(line, each) for each in words[1:]]
        match words[0]:
            case "+":
                self._allocate(numbers[0])
            case "-":
                self._free(line, numbers[0], numbers[1] if len(numbers) == 2 else 0)
            case "alignment":
                self._alignment = numbers[0]
            case "limit":
                self._limit = numbers[0]
            case "ggml":
                self._chunks = tuple(numbers)

    def finish(self) -> Events:
        gaps: list[tuple[int, int, int, int, int]] = []
        for row, cuts in enumerate(self._cuts):
            end = self._now if self._end[row] < 0 else self._end[row]
            self._end[row] = end
            gaps += [
                (row, time, until, 0, kept)
                for (time, kept), (until, _) in pairwise([*cuts, (end, 0)])
            ]
        problem = Problem.from_arrays(
            self._start,
            self._end,
            self._size,
            alignment=[self._alignment] * len(self._size),
            gaps=[list(column) for column in zip(*gaps, strict=True)] if gaps else None,
        )
        return Events(problem, self._limit, self._chunks)

    def _allocate(self, size: int) -> None:
        self._start.append(self._now)
        self._end.append(-1)
        self._size.append(size)
        self._kept.append(size)
        self._cuts.append([])
        self._now += 1

    def _free(self, line: int, row: int, kept: int) -> None:
        if row >= len(self._size):
            self._fail(line, f"block {row} is not allocated yet; blocks are numbered from 0")
        if self._end[row] >= 0:
            self._fail(line, f"block {row} is free already")
        if kept >= self._kept[row] > 0:
            self._fail(
                line, f"block {row} has only {self._kept[row]} bytes, of which none is freed"
            )
        self._kept[row] = kept
        if kept:
            self._cuts[row].append((self._now, kept))
        else:
            self._end[row] = self._now
        self._now += 1

    def _number(self, line: int, word: str) -> int:
        if _NUMBER.fullmatch(word) is None or int(word) > MAX_BYTES:
            self._fail(line, f"{quoted(word)} is not a whole number from 0 to 2^62")
        return int(word)

    def _fail(self, line: int, message: str) -> NoReturn:
        raise FormatError(self._name, message, line=line)
