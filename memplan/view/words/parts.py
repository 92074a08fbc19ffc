"""What all words are put together from: facts, tables, and names that a terminal only shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from memplan.base.errors import listed, quoted
from memplan.base.notes import Note
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES
from memplan.problem.loads import Held
from memplan.programs.sources.loaded import Beside, Figure, Label, Loaded
from memplan.view.units import exact, human, lifetime, percent
from memplan.view.words.tables import (
    Cell,
    Column,
    FittedTable,
    shorten,
    shorten_end,
    shorten_pair,
)

__all__ = [
    "BAD",
    "GOOD",
    "MOST_ROWS",
    "OPEN",
    "Fact",
    "HeldTable",
    "add_up",
    "describe_contradiction",
    "describe_figure",
    "describe_operators",
    "escape",
    "escape_sentence",
    "labels_of",
    "list_beside",
    "list_facts",
    "list_origin",
    "make_amount",
    "make_name",
    "make_sentence",
    "make_table",
    "quote_name",
    "render_notes",
    "tell_unknown",
    "unit_of",
]

# Colours that are legible on black and on white; bold, because these words are looked for.
GOOD, OPEN, BAD = "bold green", "bold yellow", "bold bright_red"

MOST_ROWS = 10
_NARROWEST = 14  # columns for a value beside its label; below that it has lines of its own
_MOST_LETTERS = 240  # of a name that a table may show
_IN_SENTENCES = 32  # columns of a name in a sentence, so that it is on one line

Fact = tuple[str, str | Text]


class _Facts:
    """A label and a value a line; a value that is longer continues under itself."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = facts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        margin = max(len(label) for label, _ in self._facts) + 2
        beside = options.max_width - margin >= _NARROWEST
        for label, value in self._facts:
            value = value if isinstance(value, Text) else Text(value)
            indent = margin if beside else 2
            lines = list(value.wrap(console, max(1, options.max_width - indent))) or [Text("")]
            if not beside:
                yield Text(label, no_wrap=True, overflow="ellipsis")
            for number, line in enumerate(lines):
                line.rstrip()
                first = f"{label:<{margin}}" if beside and not number else " " * indent
                yield Text(first, no_wrap=True, overflow="crop").append_text(line)


def list_facts(facts: Sequence[Fact]) -> RenderableType:
    """Return a label and a value a line, as text: a table would fill lines up with spaces."""
    return _Facts(facts)


def list_origin(loaded: Loaded | None) -> list[Fact]:
    """Return what a problem was made from; nothing for files that are problems."""
    if loaded is None or not loaded.labels:
        return []
    return [("format", loaded.source), ("tensors", f"{loaded.tensors:,}")]


def list_beside(beside: Beside | None, name: str = "beside the plan") -> list[Fact]:
    """Return what a runtime needs of its arena beside the plan; nothing if it has no arena."""
    if beside is None:
        return []
    if beside.bytes is None:
        return [(name, f"unknown: {beside.how}")]
    kept = f"{exact(beside.bytes)}: structs, quantization, state; {beside.how}"
    return [(name, f"{kept}{tell_unknown(beside.unknown)}")]


def tell_unknown(types: Sequence[str]) -> str:
    """Return the end of a sentence about what an arena has: what is not counted in it, if any."""
    names = listed(types, quote=False)
    return f", without what {names} needs there, which is unknown" if types else ""


def describe_figure(figure: Figure) -> tuple[str, str]:
    """Return the name of another planner without its version, and how its need is known."""
    name, _, version = figure.runtime.rpartition(" ")
    if not name or not version[:1].isdigit():
        name, version = figure.runtime, ""
    parts = figure.how, f"version {version}" if version else "", figure.what
    return escape(name), ", ".join(filter(None, parts))


def render_notes(notes: Iterable[Note]) -> RenderableType:
    """Return what was left out or assumed when a model was read."""
    return Group(*(Text(f"note: {escape_sentence(note.text)}") for note in notes))


def make_table(first: str, *others: str) -> FittedTable:
    """Return an empty table: one column of names, and others of amounts, the last one kept longest.

    A table whose columns have another order of importance is made of `Column` directly.
    """
    return FittedTable([Column(first), *(Column(other, rank) for rank, other in enumerate(others))])


class HeldTable:
    """The largest buffers of one time, and all others in one line.

    What is held comes with the most bytes first, and shares are of the total. Offsets and labels
    are by id; lines of source are shown where the terminal has room for them.
    """

    def __init__(
        self,
        held: Sequence[Held],
        total: int,
        most: int = MOST_ROWS,
        offsets: Mapping[str, int] | None = None,
        labels: Mapping[str, Label] | None = None,
    ) -> None:
        self._held, self._total, self._most = held, total, most
        self._offsets, self._labels = offsets, labels

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._table()

    def _table(self) -> FittedTable:
        labels = self._labels or {}
        columns = [
            Column("buffer"),
            Column("bytes", 9),
            Column("", 4),
            Column("share", 7),
            Column("lifetime", 8),
        ]
        if self._offsets is not None:
            columns.append(Column("offset", 5))
        if self._labels is not None:
            columns += [
                Column("made by -> used by", 6, left=True, least=32),
                Column("in module" if self._has("module") else "", 3, left=True),
                Column("at" if self._has("line") else "", 2, left=True),
            ]
        made = FittedTable(columns)
        for each in self._held[: self._most]:
            size = f"{each.bytes:,}" + (f" of {each.size:,}" if each.bytes != each.size else "")
            cells: list[Cell | str] = [size, unit_of(each.bytes), percent(each.bytes, self._total)]
            cells.append(lifetime(each.start, each.end))
            if self._offsets is not None:
                cells.append(f"{self._offsets[each.id]:,}")
            if self._labels is not None:
                label = labels[each.id]
                cells.append(Cell(describe_operators(label), cut=shorten_pair))
                cells += [make_name(label.module), make_name(label.line)]
            made.add_row(make_name(each.id), *cells)
        self._add_rest(made)
        return made

    def _has(self, what: str) -> bool:
        """Return whether any of the labels that are shown has a module, or a line."""
        labels = self._labels or {}
        shown = [labels[each.id] for each in self._held[: self._most] if each.id in labels]
        return any(getattr(label, what) for label in shown)

    def _add_rest(self, made: FittedTable) -> None:
        rest = self._held[self._most :]
        if rest:
            size = sum(each.bytes for each in rest)
            share = percent(size, self._total)
            made.add_row(f"{len(rest):,} smaller", f"{size:,}", unit_of(size), share)


def labels_of(
    problem: Problem, held: Sequence[Held], labels: Sequence[Label]
) -> dict[str, Label] | None:
    """Return the labels of these buffers by id; `None` where no operators are known."""
    return {each.id: labels[problem.index(each.id)] for each in held} if labels else None


def describe_operators(label: Label) -> str:
    """Return "maker -> user, user"; the kind of a buffer which no operator makes."""
    users = [escape(user) for user in label.used_by]
    more = f" and {len(users) - 2:,} more" if len(users) > 2 else ""
    reads = ", ".join(users[:2]) + more
    made = escape(label.made_by) if label.made_by else str(label.kind)
    return f"{made} -> {reads}" if reads else made


def make_name(id: str) -> Cell:
    """Return a name that a terminal shows and does not obey, to be shortened in the middle."""
    return Cell(_escape_letters(shorten(id, _MOST_LETTERS)), cut=shorten)


def make_sentence(text: str) -> Cell:
    """Return a sentence that a narrow table shows the beginning of."""
    return Cell(text, cut=shorten_end)


def make_amount(count: int) -> Cell:
    """Return bytes to the last one, and in a unit alone where there is no room."""
    return Cell(exact(count), brief=human(count))


def unit_of(count: int) -> str:
    """Return bytes in a unit, beside their number; nothing below 1 KiB, where it says the same."""
    return human(count) if count >= 1024 else ""


def quote_name(id: str) -> str:
    """Return a name for a sentence: in quotes, and so short that it stands on one line."""
    return f'"{shorten(_escape_letters(shorten(id, _MOST_LETTERS)), _IN_SENTENCES)}"'


def _escape_letters(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape(text: str) -> str:
    """Return any text on one line, not too long, with nothing that a terminal obeys."""
    return quoted(text)[1:-1]


def escape_sentence(text: str) -> str:
    """Return a sentence with names in it, with nothing that a terminal obeys."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def describe_contradiction(problem: Problem) -> str:
    """Return why a problem, of which that is proved, has no plan whatever its capacity."""
    found = [
        (max((each.upper for each in problem.reserved), default=0), "a reserved range ends at")
    ]
    total = found[0][0]
    for name, column in (("size", problem.size), ("alignment", problem.alignment)):
        if len(column):
            row = int(column.argmax())
            found.append((int(column[row]), f"the {name} of {problem.label(row)} is"))
        total += add_up(column)
    if total <= MAX_BYTES:  # one after the other, all buffers fit
        return "pins and groups contradict each other"
    largest, what = max(found)
    return f"no plan ends within 2^62 bytes, the most that memplan plans; {what} {largest:,}"


def add_up(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """Return a sum that cannot overflow: a million sizes of 2^62 do not fit in 64 bits."""
    high, low = sizes >> 31, sizes & (2**31 - 1)
    return (int(high.sum()) << 31) + int(low.sum())
