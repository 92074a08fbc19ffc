"""A plan as a static picture: time from left to right, addresses upwards, the load below."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from memplan._spans import Spans, spans
from memplan.loads import Loads
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.view import picture
from memplan.view.picture import BOUND, RASTER_FROM, Floats
from memplan.view.units import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "save"]

Colour = Literal["size", "lifetime"]

_NAMES_UP_TO = 60  # buffers: beyond, names are noise
_CAPACITY, _LOAD = "#c1272d", "#4a6fa5"


def save(
    problem: Problem,
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    colour: Colour = "size",
    dpi: int = 150,
) -> None:
    """Draw a plan into a file, `.png`, `.svg` or `.pdf`: all of it, or the old file stays.

    The same plan gives the same bytes with the same release of matplotlib.

    Parameters
    ----------
    problem, plan, colour
        See `draw`.
    path
        Its suffix chooses the format.
    dpi
        Pixels an inch, for PNG and for what is drawn as pixels in the other two.

    Raises
    ------
    FormatError
        For another suffix, or if the file cannot be written.
    PlanError, MissingExtraError
        As `draw` does.
    """
    picture.format_of(path)  # before the work, not after it
    picture.write(draw(problem, plan, colour=colour), path, dpi)


def draw(problem: Problem, plan: Plan, *, colour: Colour = "size") -> Figure:
    """Draw a plan.

    Each buffer is a box, lifetime by size; in a gap only its window is filled, and a dotted line
    goes around the whole. A line goes around every contiguous group. Reserved ranges are hatched.
    Capacity and lower bound are lines. The strip below shows the load: where it touches the bound,
    no plan has room to spare.

    Parameters
    ----------
    problem
        What was asked.
    plan
        What was answered; the order of its buffers does not matter.
    colour
        What the colour of a box says: the buffer's `size` or `lifetime`, both logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        Not attached to any window. The capacity is the problem's, or else the plan's own.

    Raises
    ------
    PlanError
        If the plan has no offsets, or none for some buffer.
    MissingExtraError
        If matplotlib is not installed.
    """
    figure = picture.new_figure(12, 7)
    offset = picture.offsets(problem, plan)
    capacity = plan.capacity if problem.capacity is None else problem.capacity
    top = max(plan.peak or 0, plan.lower_bound, capacity or 0, 1)
    top = max([top, *(block.upper for block in problem.reserved if block.lower < top)])
    unit, unit_name = picture.unit_for(top)

    held = spans(problem)
    boxes = picture.corners(held, offset, unit)
    space, strip = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
    space.set_ylim(0, top / unit * 1.03)
    _draw_boxes(space, problem, held, boxes, colour)
    _draw_outlines(space, problem, offset, unit)
    picture.draw_reserved(space, problem.reserved, unit)
    _draw_limits(space, plan, capacity, unit)
    _draw_names(space, problem, held, boxes)
    _draw_load(strip, problem, plan, capacity, unit)
    first, last = (problem.start.min(), problem.end.max()) if len(problem) else (0, 0)
    picture.set_time_axis(strip, int(first), int(last))
    space.set_title(_title(plan, capacity), loc="left", fontsize=11)
    space.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=9)
    space.set_ylabel(f"address ({unit_name})")
    strip.set_xlabel("time")
    strip.set_ylabel(f"load ({unit_name})")
    return figure


def _title(plan: Plan, capacity: int | None) -> str:
    parts = [plural(len(plan), "buffer"), f"peak {plan.peak:,}", f"bound {plan.lower_bound:,}"]
    if capacity is not None:
        parts.append(f"capacity {capacity:,}")
    if plan.gap:
        parts.append(f"gap {plan.gap:.2%}")
    return "   ".join([*parts, str(plan.status)])


def _draw_boxes(axes: Axes, problem: Problem, held: Spans, boxes: Floats, colour: Colour) -> None:
    from matplotlib.colors import LogNorm

    value = problem.size if colour == "size" else problem.end - problem.start
    shown = value[held.buffer]
    drawn = picture.add_boxes(axes, boxes, _shares(axes, problem, boxes), edge=0.8)
    picture.colour_by_amount(drawn, shown, LogNorm())
    if len(shown):
        picture.add_key(drawn, axes, colour, int(shown.min()), int(shown.max()))


def _shares(axes: Axes, problem: Problem, boxes: Floats) -> Floats:
    duration = float(problem.end.max() - problem.start.min()) if len(problem) else 1.0
    return picture.shares(boxes, duration, axes.get_ylim()[1])


def _draw_outlines(axes: Axes, problem: Problem, offset: npt.NDArray[np.int64], unit: int) -> None:
    """Draw the whole of every buffer that has gaps, and of every group."""
    if problem.has_gaps:
        rows = np.unique(problem.gap_buffer)
        nothing = np.zeros_like(rows)
        whole = Spans(rows, problem.start[rows], problem.end[rows], nothing, problem.size[rows])
        _outline(axes, picture.corners(whole, offset, unit), "gaps", "#555555", "dotted")
    if problem.has_groups:
        whole = _spans_of_groups(problem)
        _outline(axes, picture.corners(whole, offset, unit), "groups", "#111111", "solid")


def _spans_of_groups(problem: Problem) -> Spans:
    """Return for every group its first buffer, and from there all addresses and times of it."""
    start, end, top = problem.start, problem.end, problem.lead + problem.size
    rows = [
        (members[0], start[members].min(), end[members].max(), 0, top[members].max())
        for members in map(list, problem.groups)
    ]
    return Spans(*np.array(rows, dtype=np.int64).T)


def _outline(axes: Axes, boxes: Floats, gid: str, colour: str, style: str) -> None:
    from matplotlib.collections import PolyCollection

    outlines = PolyCollection(
        boxes,  # type: ignore[arg-type]
        facecolors="none",
        edgecolors=colour,
        linewidths=0.8,
        linestyles=style,
        rasterized=len(boxes) > RASTER_FROM,
        gid=gid,
    )
    axes.add_collection(outlines)


def _draw_limits(axes: Axes, plan: Plan, capacity: int | None, unit: int) -> None:
    if capacity is not None:
        axes.axhline(
            capacity / unit,
            color=_CAPACITY,
            linestyle="--",
            linewidth=1.4,
            label="capacity",
        )
    axes.axhline(
        plan.lower_bound / unit, color=BOUND, linestyle=":", linewidth=1.4, label="lower bound"
    )


def _draw_names(axes: Axes, problem: Problem, held: Spans, boxes: Floats) -> None:
    """Write each buffer's name into the largest box that it has, where there is room."""
    if len(problem) > _NAMES_UP_TO:
        return
    shares = _shares(axes, problem, boxes)
    largest: dict[int, int] = {}
    for box in np.argsort(shares.prod(axis=1), kind="stable").tolist():
        largest[int(held.buffer[box])] = box
    for row, box in largest.items():
        name, (width, height) = problem.ids[row], shares[box]
        # About what letters of this size need in a picture of 12 x 7 inches.
        if width > 0.009 * len(name) and height > 0.025:
            x, y = boxes[box].mean(axis=0)
            back = {"boxstyle": "round,pad=0.15", "fc": "#00000055", "ec": "none"}
            text = axes.text(x, y, name, ha="center", va="center", fontsize=9, color="white")
            text.set_parse_math(False)  # a `$` in a name is a `$`
            text.set_bbox(back)


def _draw_load(axes: Axes, problem: Problem, plan: Plan, capacity: int | None, unit: int) -> None:
    loads = Loads(problem)
    if len(loads):
        edges = np.append(loads.start, loads.end[-1])
        axes.stairs(
            loads.load / unit,
            edges,
            fill=True,
            color=_LOAD,
            rasterized=len(loads) > RASTER_FROM,
        )
    axes.axhline(plan.lower_bound / unit, color=BOUND, linestyle=":", linewidth=1.2)
    if capacity is not None:
        axes.axhline(capacity / unit, color=_CAPACITY, linestyle="--", linewidth=1.2)
    axes.set_ylim(0, max(loads.peak, plan.lower_bound, capacity or 0, 1) / unit * 1.1)
