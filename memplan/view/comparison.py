"""What a comparison says, as sentences and tables; terminals and Markdown each write them down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memplan.view.units import exact, human, lifetime, percent, plural

if TYPE_CHECKING:
    from memplan.analysis.compare import Comparison, Match, Side

__all__ = ["Amount", "Cell", "Name", "Report", "Table", "make_report"]

_UNKNOWN = "unknown"


class Name(NamedTuple):
    """The name of a buffer or of a file, which may hold any text."""

    text: str


class Amount(NamedTuple):
    """Bytes, to the last one and, where there is no room for that, in a unit alone."""

    text: str
    brief: str


Cell = str | Name | Amount


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a title, and a line about those that were left out."""

    title: str  # a sentence without an end; empty for the first table
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    rest: str = ""  # about what is not shown; empty where all is


@dataclass(frozen=True, slots=True)
class Report:
    """Sentences, then tables."""

    sentences: tuple[str, ...]  # the first one is the answer; there are no names in them
    tables: tuple[Table, ...]  # the first one is of the amounts
    # What was assumed, left out or is not known; there may be names in them.
    notes: tuple[str, ...] = ()


def make_report(
    found: Comparison, names: tuple[str, str], verdicts: Sequence[str] = (), most: int = 10
) -> Report:
    """Put a comparison into words; `most` buffers are named in each table.

    A verdict is a sentence for each limit that was set: whether it is kept.
    """
    sizes, change = ("bytes",), ("before", "after", "change")
    tables = (
        _list_amounts(found, names),
        _make_table(found.added, "Added", most, sizes, _format_size, _get_bytes),
        _make_table(found.removed, "Removed", most, sizes, _format_size, _get_bytes),
        _make_table(found.grown, "Grown", most, change, _format_resized, _get_growth),
        _make_table(found.shrunk, "Shrunk", most, change, _format_resized, _get_growth),
        _make_table(
            found.renamed, "Taken for renamed", most, ("was", "bytes"), _format_renamed, _get_bytes
        ),
        _make_table(
            found.arrived,
            "Live at the peak after, and not at the peak before",
            most,
            ("bytes", "before"),
            lambda match: (_format_amount(match.bytes_after), _describe_absence(match.before)),
            _get_bytes,
        ),
        _make_table(
            found.left,
            "Live at the peak before, and not at the peak after",
            most,
            ("bytes", "after"),
            lambda match: (_format_amount(match.bytes_before), _describe_absence(match.after)),
            lambda match: match.bytes_before,
        ),
    )
    sentences = (_describe_peak(found.before, found.after), *verdicts)
    notes = tuple(
        f"note {when}: {note.text}"
        for when, side in (("before", found.before), ("after", found.after))
        for note in side.notes
    )
    return Report(sentences, tuple(table for table in tables if table.rows), notes)


def _describe_peak(before: Side, after: Side) -> str:
    if before.peak is None or after.peak is None:
        which = "before" if before.peak is None else "after"
        if before.peak is None and after.peak is None:
            which = "before or after"
        return f"There is no plan {which}, so the peaks cannot be compared."
    known = {
        (True, True): "both are proved to be optimal",
        (True, False): "less is not ruled out after",
        (False, True): "less was not ruled out before",
        (False, False): "less is not ruled out in either",
    }[before.proved, after.proved]
    if before.peak == after.peak:
        return f"The peak is the same, {exact(after.peak)}; {known}."
    word = "grew" if after.peak > before.peak else "shrank"
    by = human(abs(after.peak - before.peak))
    share = percent(abs(after.peak - before.peak), before.peak)
    relative = "" if share == "-" else f" ({share})"
    return f"The peak {word} by {by}{relative}, to {exact(after.peak)}; {known}."


def _list_amounts(found: Comparison, names: tuple[str, str]) -> Table:
    before, after = found.before, found.after
    rows: list[tuple[Cell, ...]] = [
        ("", Name(names[0]), Name(names[1]), ""),
        ("peak", *_format_both(before.peak, after.peak)),
        ("bound", *_format_both(before.bound, after.bound)),
        ("max load", *_format_both(before.load, after.load)),
        ("naive", *_format_both(before.naive, after.naive)),
        (
            "buffers",
            f"{before.buffers:,}",
            f"{after.buffers:,}",
            _format_count_change(before, after),
        ),
        ("peak at", _format_time(before), _format_time(after), ""),
    ]
    return Table("", ("", "before", "after", "change"), tuple(rows))


def _format_amount(count: int) -> Amount:
    return Amount(exact(count), human(count))


def _format_both(before: int | None, after: int | None) -> tuple[Cell, Cell, Cell]:
    shown = [_UNKNOWN if amount is None else _format_amount(amount) for amount in (before, after)]
    change = "" if before is None or after is None else _format_change(before, after)
    return shown[0], shown[1], change


def _format_change(before: int, after: int) -> Cell:
    if before == after:
        return "-"
    sign = "+" if after > before else "-"
    share = percent(abs(after - before), before)
    change = f"{sign}{human(abs(after - before))}"
    return Amount(f"{change} ({sign}{share})", change) if before else change


def _format_count_change(before: Side, after: Side) -> str:
    return f"{after.buffers - before.buffers:+,}" if before.buffers != after.buffers else "-"


def _format_time(side: Side) -> str:
    if side.start is None or side.end is None:
        return _UNKNOWN
    return f"time {lifetime(side.start, side.end)}"


def _make_table(
    matches: Sequence[Match],
    title: str,
    most: int,
    columns: tuple[str, ...],
    cells: Callable[[Match], tuple[Cell, ...]],
    amount: Callable[[Match], int],
) -> Table:
    rest = matches[most:]
    others = f"and {plural(len(rest), 'other')}, {exact(sum(map(amount, rest)))}"
    return Table(
        f"{title}: {plural(len(matches), 'buffer')}",
        ("buffer", *columns),
        tuple((Name(match.id), *cells(match)) for match in matches[:most]),
        others if rest else "",
    )


def _get_bytes(match: Match) -> int:
    return match.bytes


def _get_growth(match: Match) -> int:
    return abs(match.grown)


def _describe_absence(other: str | None) -> str:
    return "not there" if other is None else "live at other times"


def _format_size(match: Match) -> tuple[Cell, ...]:
    return (_format_amount(match.bytes),)


def _format_resized(match: Match) -> tuple[Cell, ...]:
    before, after = match.bytes_before, match.bytes_after
    return _format_amount(before), _format_amount(after), _format_change(before, after)


def _format_renamed(match: Match) -> tuple[Cell, ...]:
    return Name(match.before or ""), _format_amount(match.bytes)
