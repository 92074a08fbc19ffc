"""The drawing of charts, by matplotlib (extra `plot`); what they show is computed elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memplan.view import picture
from memplan.view.classes import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 6.4, 3.8  # inches
_STYLES = ("-", "--", ":", "-.")  # the next one each time the colours are used up

Curve = tuple[Sequence[float], Sequence[float]]


def name(what: str, group: str) -> str:
    """Return the name of a chart's file: what it shows of which group, in letters and digits."""
    return re.sub("[^a-z0-9]+", "-", f"{what}-{group}".lower()).strip("-")


def draw_shares(curves: Mapping[str, Curve], label: str, scale: str = "log") -> Figure:
    """Draw, for each name, the share of things with at most some value, as stairs.

    Parameters
    ----------
    curves
        Values, ascending and positive, and per cent; both may be empty.
    label
        What the values are.
    scale
        Of their axis: "log", or "linear" for values that are much alike.
    """
    figure, axes = _figure()
    ends = [end for values, _ in curves.values() if values for end in (values[0], values[-1])]
    first, last = min(ends, default=1.0), max(ends, default=1.0)
    for at, (solver, (values, shares)) in enumerate(curves.items()):
        axes.step(
            [first, *values, last],  # a curve which ends early goes on at its height
            [0.0, *shares, max(shares, default=0.0)],
            where="post",
            label=solver,
            gid=solver,
            color=PALETTE[at % len(PALETTE)],
            linestyle=_STYLES[at // len(PALETTE) % len(_STYLES)],
            linewidth=1.2,
        )
    axes.set_xscale(scale)
    axes.set_xlabel(label)
    axes.set_ylabel("problems [%]")
    axes.set_ylim(-4, 104)
    return _finish(figure, axes)


def draw_pairs(
    pairs: Mapping[str, Sequence[tuple[float, float]]], labels: tuple[str, str]
) -> Figure:
    """Draw, for each name, what was measured in two ways, with the line on which both are equal.

    Parameters
    ----------
    pairs
        Of values >= 0; the axes are logarithmic above 1.
    labels
        Of the axes, x and y.
    """
    figure, axes = _figure()
    top = max((value for each in pairs.values() for pair in each for value in pair), default=1.0)
    axes.plot([0, top], [0, top], color="#888888", linewidth=0.8, gid="equal")
    for at, (group, each) in enumerate(pairs.items()):
        axes.scatter(
            [x for x, _ in each],
            [y for _, y in each],
            s=14,
            label=group,
            gid=group,
            color=PALETTE[at % len(PALETTE)],
        )
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return _finish(figure, axes)


def _figure() -> tuple[Figure, Axes]:
    figure = picture.make_figure(_WIDTH, _HEIGHT)
    return figure, figure.add_subplot()


def _finish(figure: Figure, axes: Axes) -> Figure:
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="best", fontsize="small")
    return figure
