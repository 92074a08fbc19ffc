"""The interference graph of a small problem as a picture: buffers on a circle, conflicts as lines.

The buffers stand clockwise by the start of their lifetimes, from the top. So the neighbours of a
chain of operators are near each other, and a long line is a buffer that lives long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memplan.base.errors import MemplanError, quoted
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import NONE, Column
from memplan.problem.interference import Cause, Edges, find_edges
from memplan.problem.loads import Loads
from memplan.view import paper
from memplan.view.picture import Floats
from memplan.view.units import human, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MOST_BUFFERS", "draw"]

MOST_BUFFERS = 200  # at most 19,900 edges; beyond, lines and names cannot be told apart

_LARGEST = 0.12  # radius of a node, in radii of the circle
_LETTERS = 18  # of a name
_NAMES = 0.55  # the room for names outside of the circle, in its radii
_POINTS = 150.0  # the radius of the circle, at the width of a page
_LOOKS = {  # colour, dashes and legend
    Cause.LIFETIME: ("#9a9a9a", "solid", "live at the same time"),
    Cause.CONFLICT: ("#b3202a", "dashed", "listed as a conflict"),
    Cause.WINDOW: ("#9a9a9a", "dotted", "live at the same time, with a window"),
}
_AT_PEAK, _OTHERS, _OUTLINE = "#7aa6cc", "#eaf1f7", "#1a1a1a"


def draw(problem: Asked) -> Figure:
    """Draw an interference graph of at most `MOST_BUFFERS` buffers.

    The area of a node is in proportion to the size of its buffer. The buffers that are live at the
    greatest load are dark: they are a clique, whose weight is a lower bound on every plan.
    """
    problem = problem_of(problem)
    count = len(problem)
    if count > MOST_BUFFERS:
        raise MemplanError(
            f"a picture of {count:,} buffers cannot be read; at most {MOST_BUFFERS} are drawn. "
            "DOT and GraphML have no such limit"
        )
    edges = find_edges(problem, count * count)
    order = np.lexsort((np.arange(count), problem.end, problem.start))
    angle = np.empty(count)
    angle[order] = np.pi / 2 - 2 * np.pi * np.arange(count) / max(1, count)
    at = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    with paper.style():
        figure = paper.figure(None, 1.0)
        axes = figure.subplots()
        axes.set_aspect("equal")
        axes.set_axis_off()
        limit = 1 + _LARGEST + _NAMES
        axes.set(xlim=(-limit, limit), ylim=(-limit, limit))
        _draw_edges(axes, edges, at)
        _draw_nodes(axes, problem, at)
        _write_names(axes, problem, at, angle)
        load = f"{human(problem.max_load)} are live at the greatest load (dark)"
        title = f"{plural(count, 'buffer')}, {plural(len(edges), 'conflict')}; {load}"
        axes.set_title(title, loc="left")
        if len(edges):
            axes.legend(loc="lower left", frameon=False)
    return figure


def _draw_edges(axes: Axes, edges: Edges, at: Floats) -> None:
    from matplotlib.collections import LineCollection

    for cause, (colour, dashes, label) in _LOOKS.items():
        chosen = edges.cause == cause
        if chosen.any():
            lines = np.stack([at[edges.first[chosen]], at[edges.second[chosen]]], axis=1)
            drawn = LineCollection(
                list(lines),
                colors=colour,
                linestyles=dashes,
                linewidths=0.6 if len(edges) < 500 else 0.25,
                label=label,
                zorder=1,
                gid=cause.name.lower(),
            )
            axes.add_collection(drawn)


def _draw_nodes(axes: Axes, problem: Problem, at: Floats) -> None:
    from matplotlib.collections import EllipseCollection

    largest = max(1, int(problem.size.max(initial=0)))
    most = _find_largest_radius(len(problem))
    width = 2 * np.maximum(most * np.sqrt(problem.size / largest), 0.004)
    peak = set(_find_live_at_peak(problem).tolist())
    drawn = EllipseCollection(
        width,
        width,
        np.zeros(len(width)),
        units="xy",
        offsets=at,
        offset_transform=axes.transData,
        facecolors=[_AT_PEAK if row in peak else _OTHERS for row in range(len(problem))],
        edgecolors=_OUTLINE,
        linewidths=0.5,
        zorder=2,
        gid="buffers",
    )
    axes.add_collection(drawn)


def _find_largest_radius(count: int) -> float:
    """Return the radius of the largest node, so that no two nodes touch."""
    return min(_LARGEST, 0.9 * float(np.sin(np.pi / max(2, count))))


def _find_live_at_peak(problem: Problem) -> Column:
    loads = Loads(problem)
    section = loads.peak_section
    ids = set() if section is None else {each.id for each in loads.held(section)}
    return np.array([row for row, name in enumerate(problem.ids) if name in ids], dtype=np.int64)


def _write_names(axes: Axes, problem: Problem, at: Floats, angle: Floats) -> None:
    """Write each name outside of the circle, along its radius."""
    points = min(7.0, 2 * np.pi * _POINTS / max(1, len(problem)))
    distance = 1 + _find_largest_radius(len(problem)) + 0.03
    for row, name in enumerate(problem.ids):
        text = quoted(name)[1:-1]
        if len(text) > _LETTERS:
            text = f"{text[: _LETTERS // 2]}…{text[-_LETTERS // 2 :]}"
        if problem.pin[row] != NONE:
            text += " (pinned)"
        left = at[row, 0] < 0
        turn = np.degrees(angle[row]) + (180 if left else 0)
        x, y = (at[row] * distance).tolist()
        drawn = axes.text(
            *(x, y, text),
            ha="right" if left else "left",
            va="center",
            rotation=turn,
            rotation_mode="anchor",
            fontsize=points,
            gid=f"name-{row}",  # no element of a page has the id of another
        )
        drawn.set_parse_math(False)  # a `$` in a name is a `$`
        drawn.set_in_layout(False)
