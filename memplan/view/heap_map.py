"""Heap maps: where each of several planners has which buffer when (MemoMalloc, appendix 8.1).

Each planner has one panel, and all have the same scales: time from left to right, addresses
upwards. One more panel shows what the allocator of a recorded run did with the same program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.spans import Spans, spans
from memplan.view import picture
from memplan.view.classes import Classes
from memplan.view.panel import Panel
from memplan.view.picture import BOUND, RASTER_FROM
from memplan.view.units import human

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

__all__ = ["Colour", "draw"]

Colour = Literal["size", "class"]

# The log2 of the range of sizes that have colours of their own: smaller boxes are too thin to see.
_DEPTH = 8
_CUT = "#c1272d"
# A panel is cut off at so many times the lowest one, because it would flatten all the others.
_TALLEST = 3


def draw(panels: Sequence[Panel], *, colour: Colour = "size", title: str = "") -> Figure:
    """Draw panels side by side, with one scale of time, one of addresses, and one of colours.

    A box is a buffer, lifetime by size. The dotted line is the load: no plan is lower. The axis of
    a recorded run counts the addresses that were used; small marks at its sides are where others
    are cut out. A panel that is far higher than the lowest one is cut off, and says so.

    Parameters
    ----------
    panels
        At least one.
    colour
        What the colour of a box says: the `size` of the buffer, logarithmic, or its `class`: the
        seven with most bytes, and all others in grey.
    title
        Of the whole.

    Returns
    -------
    matplotlib.figure.Figure
        Not attached to any display.

    Raises
    ------
    MemplanError
        If there is no panel, or one has no classes and they are to be the colours.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not panels:
        raise MemplanError("there is no panel to draw; name a solver or a recorded run")
    figure, places = _make_grid(len(panels))
    lowest = min(panel.height for panel in panels)
    top = max(1, *(p.height for p in panels if p.height <= _TALLEST * lowest))
    unit, unit_name = picture.choose_unit(top)
    places[0].set_ylim(0, top / unit * 1.04)
    _set_times(places[0], [panel.problem for panel in panels])
    drawn = [
        _draw_panel(axes, panel, unit, top) for axes, panel in zip(places, panels, strict=True)
    ]
    if colour == "size":
        _colour_by_size(drawn, panels, places)
    else:
        _colour_by_class(drawn, panels, figure)
    figure.supylabel(f"address ({unit_name})", fontsize=10)
    if title:
        figure.suptitle(_make_printable(title), x=0.01, ha="left", fontsize=12).set_parse_math(
            False
        )
    return figure


def _make_grid(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure, and places in it that share their axes."""
    columns = min(count, 2 if count <= 4 else 3)
    rows = math.ceil(count / columns)
    figure = picture.make_figure(4.6 * columns + 1, 2.9 * rows + 0.7)
    places = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for unused in places[count:]:
        unused.remove()
    # The lowest panel of a column has the labels; the place below it may be empty.
    for lowest in places[count - columns : count]:
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel("time")
    return figure, places[:count].tolist()


def _set_times(axes: Axes, problems: Sequence[Problem]) -> None:
    """Make room for all lifetimes of all problems."""
    starts = [int(problem.start.min()) for problem in problems if len(problem)]
    ends = [int(problem.end.max()) for problem in problems if len(problem)]
    picture.set_time_axis(axes, min(starts, default=0), max(ends, default=0), ticks=6)


def _draw_panel(axes: Axes, panel: Panel, unit: int, top: int) -> tuple[PolyCollection, Spans]:
    held = spans(panel.problem)
    boxes = picture.find_corners(held, panel.offset, unit)
    duration = float(np.ptp(boxes[:, :, 0])) if len(boxes) else 1.0
    room = picture.shares(boxes, duration, axes.get_ylim()[1])
    drawn = picture.add_boxes(axes, boxes, room, edge=0.4)
    picture.draw_reserved(axes, panel.problem.reserved, unit)
    axes.axhline(panel.problem.max_load / unit, color=BOUND, linestyle=":", linewidth=1)
    _draw_cuts(axes, panel, unit)
    _write_head(axes, panel)
    if panel.height > top:
        axes.spines["top"].set_linestyle((0, (2, 3)))
        axes.text(
            *(0.5, 0.97, f"goes on to {human(panel.height)}"),
            transform=axes.transAxes,
            ha="center",
            va="top",
            fontsize=8,
            bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": "#999999"},
        )
    return drawn, held


def _write_head(axes: Axes, panel: Panel) -> None:
    """Write the name, and the facts below it."""
    name = axes.set_title(
        _make_printable(panel.name), loc="left", fontsize=10, fontweight="bold", pad=17
    )
    name.set_parse_math(False)  # a `$` in a name is a `$`
    axes.annotate(
        panel.facts,
        (0, 1),
        (0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8.5,
        gid="facts",
    )


def _make_printable(text: str) -> str:
    """Return text, of a file's name say, that any file can hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _draw_cuts(axes: Axes, panel: Panel, unit: int) -> None:
    """Mark cuts at both sides; across the panel they would hide the boxes that they explain."""
    from matplotlib.collections import LineCollection

    if not len(panel.cuts):
        return
    marks = [[(x, y), (x + 0.015, y)] for y in (panel.cuts / unit).tolist() for x in (0, 0.985)]
    lines = LineCollection(
        marks,
        transform=axes.get_yaxis_transform(),
        colors=_CUT,
        linewidths=0.8,
        rasterized=len(marks) > RASTER_FROM,
        gid="cuts",
    )
    axes.add_collection(lines, autolim=False)


def _colour_by_size(
    drawn: Sequence[tuple[PolyCollection, Spans]], panels: Sequence[Panel], places: list[Axes]
) -> None:
    from matplotlib.colors import LogNorm

    sizes = [p.problem.size[held.buffer] for p, (_, held) in zip(panels, drawn, strict=True)]
    every = np.concatenate(sizes)
    if not len(every):
        return
    high = int(every.max())
    low = max(int(every.min()), high >> _DEPTH)
    norm = LogNorm(low, high)
    for (boxes, _), size in zip(drawn, sizes, strict=True):
        picture.colour_by_amount(boxes, size, norm)
    picture.add_key(drawn[0][0], places, "size", low, high, below=bool((every < low).any()))


def _colour_by_class(
    drawn: Sequence[tuple[PolyCollection, Spans]], panels: Sequence[Panel], figure: Figure
) -> None:
    for panel in panels:
        if panel.classes is None:
            raise MemplanError(f"{panel.name} has no classes to colour by; colour by size")
    classes = Classes.of((panel.classes or (), panel.problem.size) for panel in panels)
    for panel, (boxes, held) in zip(panels, drawn, strict=True):
        each = [classes.colour(name) for name in panel.classes or ()]
        boxes.set_facecolor([each[row] for row in held.buffer.tolist()])
    key = figure.legend(
        handles=classes.patches(), loc="outside lower center", ncols=4, frameon=False, fontsize=9
    )
    for text in key.get_texts():
        text.set_parse_math(False)
