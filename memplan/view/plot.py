"""A plan as a static picture: time from left to right, addresses upwards, the load below.

matplotlib (extra `plot`) is imported when a picture is asked for, and used without pyplot: no
window, no global state.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from memplan._spans import Spans, spans
from memplan.errors import FormatError, MissingExtraError, PlanError
from memplan.formats._files import write_bytes
from memplan.loads import Loads
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.view.units import human, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "save"]

Colour = Literal["size", "lifetime"]
Floats = npt.NDArray[np.float64]

_RASTER_FROM = 2_000  # buffers: beyond, vectors make files that no viewer opens
_NAMES_UP_TO = 60  # buffers: beyond, names are noise
_CAPACITY, _BOUND, _LOAD = "#c1272d", "#222222", "#4a6fa5"
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


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
    name = os.fspath(path)
    kind = os.path.splitext(name)[1].lower().removeprefix(".")
    if kind not in _DATELESS:
        raise FormatError(name, "pictures are written as .png, .svg or .pdf; choose by the suffix")
    figure = draw(problem, plan, colour=colour)
    import matplotlib

    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "memplan"}):
        figure.savefig(picture, format=kind, dpi=dpi, metadata=_DATELESS[kind])
    write_bytes(name, picture.getvalue())


_DATELESS: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


def draw(problem: Problem, plan: Plan, *, colour: Colour = "size") -> Figure:
    """Draw a plan.

    Each buffer is a box, lifetime by size; in a gap only its window is filled, and a dotted line
    goes around the whole. Reserved ranges are hatched. Capacity and lower bound are lines. The
    strip below shows the load: where it touches the bound, no plan has room to spare.

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
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib; run: pip install 'memplan[plot]'"
        ) from None
    offset = _offsets(problem, plan)
    capacity = plan.capacity if problem.capacity is None else problem.capacity
    top = max(plan.peak or 0, plan.lower_bound, capacity or 0, 1)
    top = max([top, *(block.upper for block in problem.reserved if block.lower < top)])
    unit, unit_name = next(pair for pair in _UNITS if top >= 4 * pair[0] or pair[0] == 1)

    held = spans(problem)
    boxes = _corners(held, offset, unit)
    figure = Figure(figsize=(12, 7), layout="constrained")
    space, strip = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
    space.set_ylim(0, top / unit * 1.03)
    _draw_boxes(space, problem, held, boxes, colour)
    _draw_outlines(space, problem, offset, unit)
    _draw_reserved(space, problem, unit)
    _draw_limits(space, plan, capacity, unit)
    _draw_names(space, problem, held, boxes)
    _draw_load(strip, problem, plan, capacity, unit)
    _set_time_axis(strip, problem)
    space.set_title(_title(plan, capacity), loc="left", fontsize=11)
    space.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=9)
    space.set_ylabel(f"address ({unit_name})")
    strip.set_ylabel(f"load ({unit_name})")
    return figure


def _offsets(problem: Problem, plan: Plan) -> npt.NDArray[np.int64]:
    if plan.offsets is None:
        raise PlanError(f"the plan has no offsets to draw (its status is {plan.status})")
    if plan.ids == problem.ids:
        return plan.offsets
    return np.array([plan.offset(id) for id in problem.ids], dtype=np.int64)


def _title(plan: Plan, capacity: int | None) -> str:
    parts = [plural(len(plan), "buffer"), f"peak {plan.peak:,}", f"bound {plan.lower_bound:,}"]
    if capacity is not None:
        parts.append(f"capacity {capacity:,}")
    if plan.gap:
        parts.append(f"gap {plan.gap:.2%}")
    return "   ".join([*parts, str(plan.status)])


def _draw_boxes(axes: Axes, problem: Problem, held: Spans, boxes: Floats, colour: Colour) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    many = len(problem) > _RASTER_FROM
    value = problem.size if colour == "size" else problem.end - problem.start
    shown = value[held.buffer].astype(np.float64)
    # An edge around a thin box would cover it.
    room = _shares(axes, problem, boxes).min(axis=1, initial=1.0)
    drawn = PolyCollection(
        boxes,  # type: ignore[arg-type]
        array=shown,
        cmap="viridis",
        norm=LogNorm(),
        edgecolors="white",
        linewidths=np.where(room > 0.006, 0.3 if many else 0.8, 0.0),
        antialiaseds=not many,
        rasterized=many,
        gid="buffers",
    )
    axes.add_collection(drawn)
    if not len(shown) or shown.min() == shown.max():
        return  # one colour needs no key
    ticks = np.geomspace(shown.min(), shown.max(), 5)
    bar = axes.figure.colorbar(drawn, ax=axes, label=colour, pad=0.01, aspect=40)
    bar.minorticks_off()
    bar.set_ticks(
        ticks.tolist(),
        labels=[human(round(t)) if colour == "size" else f"{t:,.0f}" for t in ticks.tolist()],
    )


def _shares(axes: Axes, problem: Problem, boxes: Floats) -> Floats:
    """Return how much of the picture's width and height each box takes, shape (s, 2)."""
    extent = boxes[:, 2] - boxes[:, 0]
    duration = float(problem.end.max() - problem.start.min()) if len(problem) else 1.0
    shares: Floats = extent / np.array([duration, axes.get_ylim()[1]])
    return shares


def _draw_outlines(axes: Axes, problem: Problem, offset: npt.NDArray[np.int64], unit: int) -> None:
    """Draw the whole of every buffer that has gaps."""
    from matplotlib.collections import PolyCollection

    if not problem.has_gaps:
        return
    rows = np.unique(problem.gap_buffer)
    nothing = np.zeros_like(rows)
    whole = Spans(rows, problem.start[rows], problem.end[rows], nothing, problem.size[rows])
    outlines = PolyCollection(
        _corners(whole, offset, unit),  # type: ignore[arg-type]
        facecolors="none",
        edgecolors="#555555",
        linewidths=0.8,
        linestyles="dotted",
        rasterized=len(rows) > _RASTER_FROM,
        gid="gaps",
    )
    axes.add_collection(outlines)


def _corners(held: Spans, offset: npt.NDArray[np.int64], unit: int) -> Floats:
    """Return the four corners of every span, shape (s, 4, 2)."""
    base = offset[held.buffer]
    left, right = held.start, held.end
    lower, upper = (base + held.lower) / unit, (base + held.upper) / unit
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([lower, lower, upper, upper], axis=1)
    return np.stack([x, y], axis=2)


def _draw_reserved(axes: Axes, problem: Problem, unit: int) -> None:
    for block in problem.reserved:
        axes.axhspan(
            block.lower / unit,
            block.upper / unit,
            facecolor="#eeeeee",
            edgecolor="#999999",
            hatch="///",
            linewidth=0,
            zorder=0,
            gid="reserved",
        )


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
        plan.lower_bound / unit, color=_BOUND, linestyle=":", linewidth=1.4, label="lower bound"
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
            rasterized=len(loads) > _RASTER_FROM,
        )
    axes.axhline(plan.lower_bound / unit, color=_BOUND, linestyle=":", linewidth=1.2)
    if capacity is not None:
        axes.axhline(capacity / unit, color=_CAPACITY, linestyle="--", linewidth=1.2)
    axes.set_ylim(0, max(loads.peak, plan.lower_bound, capacity or 0, 1) / unit * 1.1)


def _set_time_axis(axes: Axes, problem: Problem) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_xlabel("time")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    if len(problem):
        first, last = int(problem.start.min()), int(problem.end.max())
        margin = 0.005 * (last - first)
        axes.set_xlim(first - margin, last + margin)
