"""The load over time as a figure: what any plan of a problem has to hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memplan.problem import Problem
from memplan.problem.loads import Loads
from memplan.view import paper, picture
from memplan.view.levels import Level, find_levels, find_top
from memplan.view.picture import RASTER_FROM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_orders", "fill", "set_times"]

_FILL = "#9fb8cc"
_HEIGHT = 0.3  # in widths


def draw(problem: Problem, *, width: float | None = None) -> Figure:
    """Draw the load of a problem over time, with its capacity and its lower bound.

    The width is in millimetres, from 40 to 2,000; `None` is 178, a page of two columns (one of them
    is 85).
    """
    marked = find_levels(problem)
    unit, unit_name = picture.choose_unit(find_top(marked))
    with paper.style():
        figure = paper.figure(width, _HEIGHT)
        axes = figure.subplots()
        fill(axes, problem, marked, unit, key=True)
        set_times(axes, problem)
        paper.set_scale(axes, unit, paper.lay_out(figure, axes)[1])
        axes.set_xlabel("time")
        axes.set_ylabel(f"load ({unit_name})")
    return figure


def draw_orders(given: Problem, best: Problem, *, width: float | None = None) -> Figure:
    """Draw the load of a program in two orders, one above the other, with one scale."""
    both = [("given order", given), ("best order", best)]
    unit, unit_name = picture.choose_unit(max(find_top(find_levels(each)) for _, each in both))
    with paper.style():
        figure = paper.figure(width, 2 * _HEIGHT)
        every = figure.subplots(2, 1, sharey=True)
        for axes, (name, problem) in zip(every, both, strict=True):
            fill(axes, problem, find_levels(problem), unit, key=True)
            set_times(axes, problem)
            axes.set_ylabel(f"load ({unit_name})")
            axes.set_xlabel(f"time, {name}")
        top = max(find_top(find_levels(each)) for _, each in both)
        every[0].set_ylim(0, top / unit * 1.05)
        for axes in every:
            paper.set_scale(axes, unit, paper.lay_out(figure, axes)[1])
    return figure


def fill(
    axes: Axes, problem: Problem, marked: Sequence[Level], unit: int, *, key: bool = False
) -> None:
    """Fill axes with the load, and with all levels but the peak, which depends on the plan.

    The unit of the axis is in bytes; the key says what the lines are.
    """
    loads = Loads(problem)
    if len(loads):
        edges = np.append(loads.start, loads.end[-1])
        axes.stairs(
            loads.load / unit, edges, fill=True, color=_FILL, rasterized=len(loads) > RASTER_FROM
        )
    shown = [level for level in marked if level.names != ("peak",)]
    paper.draw_levels(axes, shown, unit, key=key)
    axes.set_ylim(0, find_top(list(shown)) / unit * 1.05)


def set_times(axes: Axes, problem: Problem) -> None:
    """Label the times of a problem."""
    first, last = (problem.start.min(), problem.end.max()) if len(problem) else (0, 0)
    width = axes.figure.get_figwidth()  # type: ignore[union-attr]
    picture.set_time_axis(axes, int(first), int(last), max(3, int(1.5 * width)), free=0)
