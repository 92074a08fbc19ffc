"""The peak of a program at many sizes, in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from memplan.view.units import exact, human, percent, plural, seconds
from memplan.view.words.parts import (
    Fact,
    escape,
    escape_sentence,
    list_facts,
    make_amount,
    make_sentence,
    make_table,
    render_notes,
    unit_of,
)

if TYPE_CHECKING:
    from memplan.scenarios.envelope import Envelope

__all__ = ["choose_values", "describe_envelope", "find_rows"]

_ROWS, _COLUMNS = 12, 6


def describe_envelope(found: Envelope, *, with_notes: bool = True) -> RenderableType:
    """Return the peaks of some sizes as a table, and what is proved of all of them."""
    wide = [column for column, axis in enumerate(found.range.axes) if len(axis) > 1]
    table = _make_grid(found, *wide) if len(wide) == 2 else _make_list(found)
    parts: list[RenderableType] = [list_facts(list(_list_facts(found))), Text(), table]
    if found.notes and with_notes:
        parts += [Text(), render_notes(found.notes)]
    return Group(*parts)


def _list_facts(found: Envelope) -> Iterator[Fact]:
    asked = found.range
    axes = (f"{escape(name)} {asked.describe_axis(at)}" for at, name in enumerate(asked.names))
    conditions = "".join(f"; {escape_sentence(each)}" for each in asked.conditions)
    yield "sizes", f"{len(found):,}: {', '.join(axes)}{conditions}"
    for name, row in (("smallest", found.peaks.argmin()), ("largest", found.peaks.argmax())):
        peak = exact(int(found.peaks[row]))
        yield name, f"{peak}, at {escape_sentence(asked.describe(int(row)))}"
    if found.open == 0:
        proved = "proved if sizes are these polynomials" if found.premise else "proved"
        yield "status", f"{proved}: at every size, no plan needs less"
    else:
        gap = (found.peaks - found.bounds) / np.maximum(found.bounds, 1)
        yield (
            "status",
            f"not proved at {plural(found.open, 'size')}; at most {gap.max():.1%} above the bound",
        )
    plans = plural(len(found.used), "plan")
    gives = "gives" if len(found.used) == 1 else "give"
    yield "search", f"{plans} {gives} the peaks of all sizes; {seconds(found.seconds)}"
    yield "bytes", found.how
    if found.premise:
        yield "premise", f"{found.premise}; --read every-size (read_all=True) reads every size"
    yield "one plan", _tell_one(found)


def _tell_one(found: Envelope) -> str:
    plan, worst = found.plan, int(found.peaks.max())
    assert plan.peak is not None
    proved = plan.peak == plan.lower_bound
    bound = "no fixed offsets need less" if proved else f"at least {exact(plan.lower_bound)}"
    more = f", {percent(plan.peak - worst, worst)} more than the largest" * (plan.peak > worst)
    return f"{exact(plan.peak)} for all sizes with the same offsets{more}; {bound}"


def choose_values(axis: Sequence[int], most: int) -> list[int]:
    """Return some values of a dimension, both ends and powers of two among them."""
    if len(axis) <= most:
        return list(axis)
    powers = [value for value in axis if value & (value - 1) == 0]
    chosen = sorted({axis[0], axis[-1], *(powers if len(powers) > 2 else axis)})
    places = np.linspace(0, len(chosen) - 1, min(most, len(chosen))).round().astype(int)
    return [chosen[at] for at in places]


def _choose_rows(found: Envelope) -> list[int]:
    """Return the sizes of the table, as rows of the range."""
    axes = found.range.axes
    wide = sum(len(axis) > 1 for axis in axes)
    most = _ROWS if wide < 2 else 3
    return find_rows(found, [choose_values(axis, most) for axis in axes])


def find_rows(found: Envelope, values: Sequence[Sequence[int]]) -> list[int]:
    """Return the sizes in which each dimension has one of its values."""
    points = found.range.points
    mine = [np.isin(points[:, column], each) for column, each in enumerate(values)]
    rows: list[int] = np.flatnonzero(np.all(mine, axis=0)).tolist()
    return rows


def _make_list(found: Envelope) -> RenderableType:
    """Return a table with a size a line."""
    more = ["at least"] if found.open else []
    table = make_table("size", "peak", "", *more)
    for row in _choose_rows(found):
        peak = int(found.peaks[row])
        cells = [make_amount(int(found.bounds[row])) for _ in more]
        size = make_sentence(escape_sentence(found.range.describe(row)))
        table.add_row(size, f"{peak:,}", unit_of(peak), *cells)
    return table


def _make_grid(found: Envelope, down: int, across: int) -> RenderableType:
    """Return a table of two dimensions."""
    asked = found.range
    values: list[Sequence[int]] = list(asked.axes)
    values[down] = choose_values(asked.axes[down], _ROWS)
    values[across] = heads = choose_values(asked.axes[across], _COLUMNS)
    name, other = escape(asked.names[down]), escape(asked.names[across])
    table = make_table(f"{name} \\ {other}", *(f"{value:,}" for value in heads))
    rows = find_rows(found, values)
    places = map(tuple, asked.points[rows][:, [down, across]].tolist())
    cells = {place: human(int(found.peaks[row])) for place, row in zip(places, rows, strict=True)}
    for value in values[down]:
        table.add_row(f"{value:,}", *(cells.get((value, head), "-") for head in heads))
    return table
