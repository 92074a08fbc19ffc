"""What all words are put together from: facts, tables, and names that a terminal only shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from memplan.errors import quoted
from memplan.notes import Note
from memplan.problem import Problem
from memplan.problem.loads import Held
from memplan.sources.loaded import Label, Loaded
from memplan.view.units import human, lifetime, percent

__all__ = [
    "MOST_ROWS",
    "Fact",
    "HeldTable",
    "add_up",
    "describe_operators",
    "escape",
    "escape_sentence",
    "labels_of",
    "list_facts",
    "list_origin",
    "make_name",
    "make_table",
    "render_notes",
]

MOST_ROWS = 10
_WIDE = 120  # columns from which on there is room for lines of source

Fact = tuple[str, str | Text]


def list_facts(facts: Sequence[Fact]) -> RenderableType:
    """Return a name and a value a line, as text: a table would fill lines up with spaces."""
    width = max(len(name) for name, _ in facts) + 2
    return Group(*(Text(f"{name:<{width}}", style="dim").append(value) for name, value in facts))


def list_origin(loaded: Loaded | None) -> list[Fact]:
    """Return what a problem was made from; nothing for files that are problems."""
    if loaded is None or not loaded.labels:
        return []
    return [("format", loaded.source), ("tensors", f"{loaded.tensors:,}")]


def render_notes(notes: Iterable[Note]) -> RenderableType:
    """Return what was left out or assumed when a model was read."""
    return Group(*(Text(f"note: {escape_sentence(note.text)}", style="dim") for note in notes))


def make_table(first: str, *others: str) -> Table:
    """Return an empty table: one column of names, and others of amounts."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    made.add_column(first, overflow="fold")
    for other in others:
        made.add_column(other, justify="right", no_wrap=True)
    return made


class HeldTable:
    """The largest buffers of one time, and all others in one line.

    Parameters
    ----------
    held
        What is held then, the most bytes first.
    total
        What the shares are of, in bytes.
    most
        How many to name.
    offsets
        By id; where they are known.
    labels
        By id; where the buffers are those of a program. Lines of source are shown where the
        terminal has room for them.
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
        yield self._table(options.max_width >= _WIDE)

    def _table(self, wide: bool) -> Table:
        labels = self._labels or {}
        shown = [labels[each.id] for each in self._held[: self._most] if each.id in labels]
        modules = any(label.module for label in shown)
        lines = wide and any(label.line for label in shown)
        columns = ["bytes", "", "share", "lifetime"]
        made = make_table("buffer", *columns, *(["offset"] if self._offsets is not None else []))
        if self._labels is not None:
            made.add_column("made by -> used by", overflow="fold")
        for there, column in ((modules, "in module"), (lines, "at")):
            if there:
                made.add_column(column, overflow="fold")
        for each in self._held[: self._most]:
            size = f"{each.bytes:,}" + (f" of {each.size:,}" if each.bytes != each.size else "")
            cells = [size, human(each.bytes), percent(each.bytes, self._total)]
            cells.append(lifetime(each.start, each.end))
            if self._offsets is not None:
                cells.append(f"{self._offsets[each.id]:,}")
            if self._labels is not None:
                label = labels[each.id]
                cells.append(describe_operators(label))
                cells += [escape(label.module)] * modules + [escape(label.line)] * lines
            made.add_row(make_name(each.id), *map(Text, cells))
        self._add_rest(made)
        return made

    def _add_rest(self, made: Table) -> None:
        rest = self._held[self._most :]
        if rest:
            size = sum(each.bytes for each in rest)
            cells = [f"{size:,}", human(size), percent(size, self._total)]
            made.add_row(Text(f"{len(rest):,} smaller", style="dim"), *map(Text, cells))


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


def make_name(id: str) -> Text:
    """Return a name that a terminal shows and does not obey."""
    return Text(escape(id))


def escape(text: str) -> str:
    """Return any text on one line, not too long, with nothing that a terminal obeys."""
    return quoted(text)[1:-1]


def escape_sentence(text: str) -> str:
    """Return a sentence with names in it, with nothing that a terminal obeys."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def add_up(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """Return a sum that cannot overflow: a million sizes of 2^62 do not fit in 64 bits."""
    high, low = sizes >> 31, sizes & (2**31 - 1)
    return (int(high.sum()) << 31) + int(low.sum())
