"""The peak over a dimension as a picture: a line for each value of another dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memplan.view import paper, picture
from memplan.view.classes import PALETTE
from memplan.view.units import human
from memplan.view.words.envelope import choose_values, find_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from memplan.scenarios.envelope import Envelope

__all__ = ["draw"]

_HEIGHT = 0.55  # in widths
_LINES = 6
_FACTOR = 8  # an axis whose ends differ by more than this is logarithmic


def draw(found: Envelope, *, width: float | None = None) -> Figure:
    """Draw the peak over the dimension with the most values; the width is in millimetres.

    Each line is for one value of another dimension with several values; where there are more of
    these, the rest is at its largest. Where whole numbers between the sizes were not asked for,
    points are drawn, as nothing is known of what lies between them. What is not proved is dotted
    below.
    """
    asked = found.range
    order = sorted(range(len(asked.axes)), key=lambda at: -len(asked.axes[at]))
    x, other = order[0], next((at for at in order[1:] if len(asked.axes[at]) > 1), None)
    unit, name = picture.choose_unit(int(found.plan.peak or 0))
    with paper.style():
        figure = paper.figure(width, _HEIGHT)
        axes = figure.subplots()
        values = [None] if other is None else choose_values(asked.axes[other], _LINES)
        for number, value in enumerate(values):
            shown: list[Sequence[int]] = [axis[-1:] for axis in asked.axes]
            shown[x] = asked.axes[x]
            if other is not None and value is not None:
                shown[other] = [value]
            rows = find_rows(found, shown)
            colour = PALETTE[number % len(PALETTE)]
            label = "peak" if value is None else f"{asked.names[other or 0]} = {value:,}"
            at, peaks = asked.points[rows, x], found.peaks[rows] / unit
            has_gaps = bool((np.diff(at) > 1).any())
            line: dict[str, Any] = (
                {"linestyle": "none", "marker": ".", "markersize": 4} if has_gaps else {}
            )
            axes.plot(at, peaks, color=colour, linewidth=1, label=label, **line)
            if (found.bounds[rows] < found.peaks[rows]).any():
                dots = (0, (1, 1.5))
                axes.plot(at, found.bounds[rows] / unit, color=colour, linestyle=dots, linewidth=1)
        one = (found.plan.peak or 0) / unit
        axes.axhline(one, color="#333333", linewidth=0.8, linestyle=(0, (5, 2)), label="one plan")
        low, high = asked.axes[x][0], asked.axes[x][-1]
        if high > _FACTOR * max(low, 1):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.yaxis.set_major_formatter(lambda value, _: human(round(value * unit)))
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(asked.names[x])
        axes.set_ylabel("memory" if axes.get_yscale() == "log" else f"memory ({name})")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)
        paper.lay_out(figure, axes)
    return figure
