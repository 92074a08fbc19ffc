"""What less memory costs in more work, in words: for terminals, and for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.view.units import exact, human, plural
from memplan.view.words.bands import describe_regions
from memplan.view.words.parts import (
    GOOD,
    Fact,
    escape_sentence,
    list_facts,
    make_sentence,
    quote_name,
    render_notes,
    unit_of,
)
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.levers.pipeline import Tradeoff, TradeoffPoint
    from memplan.levers.rewrite import Recomputed

__all__ = [
    "Row",
    "describe_tradeoff",
    "list_gains",
    "list_known",
    "list_rows",
    "summarise",
]

_NAMED = 3  # operators that run again


@dataclass(frozen=True)
class Row:
    """A program of the frontier, in words."""

    arena: str
    unit: str
    share: str
    extra: str
    bound: str
    order_bound: str
    levers: str
    what: str


def describe_tradeoff(found: Tradeoff) -> RenderableType:
    """Return the programs that no other one beats, what is proved, and what gains nothing."""
    columns = [Column("needs", 7), Column("", 3), Column("share", 2), Column("more work", 6)]
    columns += [Column("at least", 5), Column("in this order", 1), Column("by", 4, left=True)]
    made = FittedTable([*columns, Column("", 1, left=True, least=24)])
    for row in list_rows(found):
        made.add_row(
            row.arena,
            row.unit,
            row.share,
            row.extra,
            row.bound,
            row.order_bound,
            row.levers,
            make_sentence(escape_sentence(row.what)),
        )
    parts: list[RenderableType] = [Text(summarise(found), style="bold"), Text(), made, Text()]
    parts.append(list_facts(list_known(found)))
    parts += [Text(escape_sentence(line), style=GOOD) for line in list_gains(found)]
    if found.notes:
        parts.append(render_notes(found.notes))
    return Group(*parts)


def summarise(found: Tradeoff) -> str:
    """Return the answer in one sentence: what half of the memory or less costs, or the least."""
    plain, last = found.points[0], found.points[-1]
    if len(found.points) == 1:
        proved = "proved for orders and re-runs" if found.gains_nothing else "nothing smaller found"
        return f"It needs {human(plain.arena)}, and more work gains nothing: {proved}."
    half = [point for point in found.points if 2 * point.arena <= plain.arena]
    point = half[0] if half else last
    cost = f"{point.extra:.2%} more work"
    if point.bound is not None:
        cost += " (proved: no less)" if point.is_proved else f" (at least {point.bound:.2%})"
    share = f"{point.arena / plain.arena:.0%}" if half else ""
    what = (
        "half of it" if share == "50%" else f"{share} of it" if half else "the least that was found"
    )
    return (
        f"It needs {human(plain.arena)} without more work; {what}, {human(point.arena)}, costs "
        f"{cost}."
    )


def list_rows(found: Tradeoff) -> list[Row]:
    """Return the programs, from the least work to the least memory."""
    plain = found.points[0].arena or 1
    return [
        Row(
            f"{point.arena:,}",
            unit_of(point.arena),
            f"{point.arena / plain:.0%}",
            f"{point.extra:.2%}",
            "" if point.bound is None else f"{point.bound:.2%}",
            "" if point.order_bound is None else f"{point.order_bound:.2%}",
            ", ".join(point.levers) or "as it is",
            _describe(found, point),
        )
        for point in found.points
    ]


def list_known(found: Tradeoff) -> list[Fact]:
    """Return what the program needs as it is, and what nothing goes below."""
    operator = f", of {quote_name(found.floor_operator)}" if found.floor_operator else ""
    facts: list[Fact] = [
        ("as it is", exact(found.given.arena)),
        ("floor", f"{exact(found.floor)}{operator}: no order and no re-runs need less"),
    ]
    if not (found.gains_nothing or any(point.again for point in found.points)):
        least = max(found.share_of(limit.bound) for limit in found.limits)
        facts.append(("run again", f"none was found that fits; at least {least:.2%} more work"))
    if any(point.draft.planned.in_place and point.arena < found.floor for point in found.points):
        facts.append(("in place", "arenas below the floor: there results are written over inputs"))
    if found.frontier is not None and found.least < found.floor:
        facts.append(("in bands", f"{exact(found.least)} at least: {escape_sentence(found.why)}"))
    facts.append(("work", "a share of the time of one plain run, for re-runs and bands alike"))
    return facts


def list_gains(found: Tradeoff) -> list[str]:
    """Return which levers gain nothing, and how that is known."""
    lines = []
    if found.gains_nothing:
        lines.append(
            "Running operators again gains nothing, proved: the program needs its floor of "
            f"{human(found.floor)} without."
        )
    if found.given.variant.loaded.source == "tflite" and any(p.again for p in found.points):
        lines.append(
            "TensorFlow Lite Micro runs no copies of operators: for programs with re-runs, write a "
            "C header (memplan plan --levers again -o FILE.h)."
        )
    if found.no_bands:
        lines.append(f"Bands gain nothing: {found.no_bands}.")
    return lines


def _describe(found: Tradeoff, point: TradeoffPoint) -> str:
    """Return which operators run again, or what is in bands."""
    if point.again is not None:
        return "; ".join(_iterate_runs(point.again))
    if point.draft.point is None or found.frontier is None:
        return ""
    regions = describe_regions(found.frontier, point.draft.point.regions)
    macs = found.frontier.extra(point.draft.point)
    return f"{macs:.1%} more multiplications: {regions}"


def _iterate_runs(again: Recomputed) -> Iterator[str]:
    """Yield how much runs again, and how much is moved out and back."""
    assert again.given.graph is not None
    runs = Counter(again.runs)
    operators = again.given.graph.operators
    names = [each.name or each.type for at, each in enumerate(operators) if runs[at] > 1]
    if again.repeated:
        yield f"{plural(again.repeated, 'run')} more: {_list_first(names)}"
    if again.moved:
        names = list(dict.fromkeys(again.moved))
        yield f"{plural(len(again.moved), 'move')} out and back: {_list_first(names)}"


def _list_first(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
