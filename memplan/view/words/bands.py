"""Programs in bands in a terminal: the memory that they need, and the work that they add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.programs.sources.loaded import Beside
from memplan.view.units import exact, plural
from memplan.view.words.bars import Bars
from memplan.view.words.parts import (
    GOOD,
    MOST_ROWS,
    Fact,
    escape_sentence,
    list_beside,
    list_facts,
    make_name,
    make_sentence,
    unit_of,
)
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.levers.rewrite.bands import Frontier, Point, Region

__all__ = ["choose_points", "describe_frontier", "describe_regions"]


def describe_frontier(
    found: Frontier, most: int = MOST_ROWS, beside: Beside | None = None
) -> RenderableType:
    """Return the program as it is, the best programs in bands, and what ends the regions.

    At most `most` programs, and as many operators, are named. `beside` is what the runtime needs of
    its arena beside the plan of the file as it is.
    """
    uncut, given = found.uncut, found.points[0]
    last = found.points[-1]
    facts: list[Fact] = [
        ("operators", f"{len(uncut.operators):,}"),
        ("multiplications", f"{uncut.macs:,}"),
        ("load, whole", exact(given.load)),
        ("load, in bands", f"{exact(min(point.load for point in found.points))}"),
        *list_beside(beside),
        (
            "programs",
            f"{len(found.points) - 1:,} in bands, each with less memory or less work than others",
        ),
    ]
    parts: list[RenderableType] = [list_facts(facts), Text()]
    if len(found.points) == 1:
        sentence = f"Bands do not lower the load: {found.explain(given)}."
        if not found.is_complete:
            sentence = "No bands were found that lower the load; not all were tried."
        return Group(*parts, Text(escape_sentence(sentence)), *_list_ends(found, most))
    shown = choose_points(found.points, most)
    parts.append(
        Bars([(_name(found, point), point.arena, GOOD if at else "") for at, point in shown])
    )
    return Group(
        *parts,
        _tabulate(found, shown),
        Text(),
        Text(escape_sentence(f"At the least arena, {found.explain(last)}.")),
        *_list_ends(found, most),
    )


def choose_points(points: Sequence[Point], most: int) -> list[tuple[int, Point]]:
    """Return so many points at most, with their places: each is smaller by about the same share."""
    step = 1.0
    while True:
        shown = [(0, points[0])]
        for at, point in enumerate(points):
            is_last = at == len(points) - 1
            if at and (is_last or point.arena <= shown[-1][1].arena * step):
                shown.append((at, point))
        if len(shown) <= max(most, 2):
            return shown
        step -= 0.01


def describe_regions(found: Frontier, regions: Sequence[Region]) -> str:
    """Return what is cut, in a few words: `#0-#15 in 16 bands`."""
    operators = found.uncut.operators
    texts = []
    for region in regions:
        rows, columns = region.bands
        bands = f"{rows} bands" if columns == 1 else f"{rows} x {columns} patches"
        ends = (operators[region.first], operators[region.last - 1])
        first, last = (operator.name or operator.type for operator in ends)
        kept = ", rows kept" if region.kept else ""
        texts.append(f"{first} to {last} in {bands}{kept}")
    return "; ".join(texts)


def _tabulate(found: Frontier, shown: Sequence[tuple[int, Point]]) -> FittedTable:
    columns = [Column("arena", 6), Column("", 6), Column("load", 3), Column("more work", 5)]
    made = FittedTable([Column("program"), *columns, Column("bands", 4, left=True, least=24)])
    for at, point in shown:
        regions = describe_regions(found, point.regions)
        made.add_row(
            f"{at}" if at else "whole",
            f"{point.arena:,}",
            unit_of(point.arena),
            f"{point.load:,}",
            f"{found.extra(point):.1%}",
            make_sentence(escape_sentence(regions)),
        )
    return made


def _name(found: Frontier, point: Point) -> str:
    return f"+{found.extra(point):.1%}" if point.regions else "whole"


def _list_ends(found: Frontier, most: int) -> list[RenderableType]:
    """Return which operators can only be done as a whole, and why."""
    ends = [operator for operator in found.uncut.operators if operator.why_whole]
    if not ends:
        return []
    made = FittedTable([Column("operator"), Column("type", 1, left=True), Column("", 2, left=True)])
    for operator in ends[:most]:
        why = make_sentence(escape_sentence(operator.why_whole))
        made.add_row(make_name(operator.name), make_name(operator.type), why)
    if len(ends) > most:
        made.add_row(f"{len(ends) - most:,} more")
    verb = "ends" if len(ends) == 1 else "end"
    heading = f"{plural(len(ends), 'operator')} can only be done as a whole, and {verb} a region"
    return [Text(), Text(heading, style="bold"), made]
