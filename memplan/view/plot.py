"""A plan as papers print it: time from left to right, addresses upwards, a box for every buffer.

It is the figure of MiniMalloc's paper (figure 2; figure 11 for many buffers): pale boxes with dark
edges, names where they fit, and lines for capacity, peak and lower bound, as vectors, at the width
of the page. The height of a box is the size of its buffer, so that tints by size need no key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import Column
from memplan.problem.plan import Plan
from memplan.problem.spans import Spans, spans
from memplan.view import lettering, load_plot, paper, picture
from memplan.view.classes import Classes
from memplan.view.levels import find_levels, find_top
from memplan.view.picture import RASTER_FROM, Floats
from memplan.view.verdict import verdict_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

__all__ = ["draw"]

_EDGE, _EDGE_WIDTH = "#1a1a1a", 0.5
_TINTS = ("#eaf1f7", "#7aa6cc")  # of the smallest and the largest buffer; black reads on both
_HEIGHT, _STRIP = 0.52, 0.16  # of the picture and of the strip below it, in widths


def draw(
    problem: Asked,
    plan: Plan,
    *,
    width: float | None = None,
    classes: Sequence[str] | None = None,
    load: bool = False,
) -> Figure:
    """Draw a plan.

    Each buffer is a box, lifetime by size; in a gap only its window is filled, and a dotted line
    goes around the whole. A line goes around every contiguous group. Reserved ranges are hatched.
    Above the picture is the verdict: optimal, the gap to the lower bound, or invalid. A capacity of
    more than twice the memory in use is only named, because it is above the picture.

    Parameters
    ----------
    problem
        What was asked.
    plan
        What was answered; the order of its buffers does not matter.
    width
        Millimetres, from 40 to 2,000; `None` is 178, a page of two columns (one of them is 85).
    classes
        What to colour the boxes by, for every buffer: the seven classes with most bytes have a
        colour, the others are grey. `None` tints them by size.
    load
        Whether to draw the load in a strip below: where it touches the lower bound, no plan has
        room to spare.

    Returns
    -------
    matplotlib.figure.Figure
        Not attached to any display.

    Raises
    ------
    PlanError
        If the plan has no offsets, or none for some buffer.
    MemplanError
        If the width is out of range, or there is not a class for every buffer.
    MissingExtraError
        If matplotlib is not installed.
    """
    problem = problem_of(problem)
    if classes is not None and len(classes) != len(problem):
        raise MemplanError(f"there are {len(classes)} classes for {len(problem)} buffers")
    offset = picture.offsets(problem, plan)
    held = spans(problem)
    marked = find_levels(problem, plan, offset)
    end = find_top(marked)
    unit, unit_name = picture.choose_unit(end)
    key = None if classes is None else Classes.of([(classes, problem.size)])
    with paper.style():
        figure = paper.figure(width, _HEIGHT + _STRIP * load, 0 if key is None else key.rows)
        space, strip = _make_axes(figure, load)
        # Half of a capacity line is above it.
        space.set_ylim(0, end / unit * 1.01)
        boxes = picture.find_corners(held, offset, unit)
        drawn = _add_boxes(space, problem, boxes)
        colours = None
        if key is None or classes is None:
            _tint_by_size(drawn, problem.size[held.buffer])
        else:
            colours = [key.colour(classes[row]) for row in held.buffer.tolist()]
            drawn.set_facecolor(colours)
            paper.add_key(figure, key.patches())
        _draw_outlines(space, problem, offset, unit)
        picture.draw_reserved(space, problem.reserved, unit)
        paper.draw_levels(space, marked, unit, key=True, title=_write_title(problem, plan, offset))
        load_plot.set_times(strip or space, problem)
        if strip is not None:
            load_plot.fill(strip, problem, marked, unit)
            paper.set_scale(strip, unit, paper.lay_out(figure, strip)[1])
            strip.set_ylabel("load")
        space.set_ylabel(f"address ({unit_name})")
        (strip or space).set_xlabel("time")
        paper.set_ticks(figure, space, strip or space, boxes, unit)
        lettering.write_names(figure, space, problem, held, boxes, colours)
    return figure


def _write_title(problem: Problem, plan: Plan, offset: Column) -> str:
    text = verdict_of(problem, plan, int((offset + problem.size).max(initial=0))).text
    return text[0].upper() + text[1:]


def _make_axes(figure: Figure, load: bool) -> tuple[Axes, Axes | None]:
    if not load:
        return figure.subplots(), None
    space, strip = figure.subplots(2, 1, sharex=True, height_ratios=(_HEIGHT, _STRIP))
    return space, strip


def _add_boxes(axes: Axes, problem: Problem, boxes: Floats) -> PolyCollection:
    duration = float(problem.end.max()) - float(problem.start.min()) if len(problem) else 1.0
    room = picture.shares(boxes, duration, axes.get_ylim()[1])
    return picture.add_boxes(axes, boxes, room, _EDGE_WIDTH, _EDGE)


def _tint_by_size(drawn: PolyCollection, size: Column) -> None:
    """Tint the boxes: it tells neighbours apart, and what axes say already, in grey as well."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    drawn.set_array(size.astype(np.float64))
    drawn.set_cmap(LinearSegmentedColormap.from_list("tints", _TINTS))
    drawn.set_norm(LogNorm())


def _draw_outlines(axes: Axes, problem: Problem, offset: Column, unit: int) -> None:
    """Draw the whole of every buffer that has gaps, and of every group."""
    if problem.has_gaps:
        rows = np.unique(problem.gap_buffer)
        nothing = np.zeros_like(rows)
        whole = Spans(rows, problem.start[rows], problem.end[rows], nothing, problem.size[rows])
        _outline(axes, picture.find_corners(whole, offset, unit), "gaps", "dotted", 0.5)
    if problem.has_groups:
        whole = _spans_of_groups(problem)
        _outline(axes, picture.find_corners(whole, offset, unit), "groups", "solid", 1.2)


def _spans_of_groups(problem: Problem) -> Spans:
    """Return for every group its first buffer, and from there all addresses and times of it."""
    start, end, top = problem.start, problem.end, problem.lead + problem.size
    rows = [
        (members[0], start[members].min(), end[members].max(), 0, top[members].max())
        for members in map(list, problem.groups)
    ]
    return Spans(*np.array(rows, dtype=np.int64).T)


def _outline(axes: Axes, boxes: Floats, gid: str, style: str, width: float) -> None:
    from matplotlib.collections import PolyCollection

    outlines = PolyCollection(
        boxes,  # type: ignore[arg-type]
        facecolors="none",
        edgecolors=_EDGE,
        linewidths=width,
        linestyles=style,
        rasterized=len(boxes) > RASTER_FROM,
        gid=gid,
    )
    axes.add_collection(outlines)
