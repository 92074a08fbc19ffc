"""Draws charts with matplotlib (extra `plot`); other modules compute the values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memplan.view import picture
from memplan.view.classes import PALETTE
from memplan.view.units import human

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 6.4, 3.8  # inches
_MANY = 8  # names in a legend; more take two columns of small print
_STYLES = ("-", "--", ":", "-.")  # the next one each time the colours are used up

Curve = tuple[Sequence[float], Sequence[float]]


def name(what: str, group: str) -> str:
    """Return the name of a chart's file: its content and its group, in letters and digits."""
    return re.sub("[^a-z0-9]+", "-", f"{what}-{group}".lower()).strip("-")


def draw_shares(
    curves: Mapping[str, Curve], label: str, scale: str = "log", things: str = "problems"
) -> Figure:
    """Draw, for each name, the share of things with at most some value, as stairs."""
    figure, axes = _figure()
    ends = [end for values, _ in curves.values() if values for end in (values[0], values[-1])]
    first, last = min(ends, default=1.0), max(ends, default=1.0)
    for at, (solver, (values, shares)) in enumerate(curves.items()):
        axes.step(
            [first, *values, last],  # a curve that ends early continues at its height
            [0.0, *shares, max(shares, default=0.0)],
            where="post",
            label=solver,
            gid=solver,
            color=PALETTE[at % len(PALETTE)],
            linestyle=_STYLES[at // len(PALETTE) % len(_STYLES)],
            linewidth=1.2,
        )
    if scale == "bytes":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: human(round(value)))
    else:
        axes.set_xscale(scale)
    axes.set_xlabel(label)
    axes.set_ylabel(f"{things} [%]")
    axes.set_ylim(-4, 104)
    return _finish(figure, axes)


def draw_bars(
    names: Sequence[str], bars: Mapping[str, Sequence[tuple[float, bool] | None]], label: str
) -> Figure:
    """Draw, for each of k names, a bar of each series beside one another, on a logarithmic axis."""
    figure, axes = _figure()
    width = 0.8 / max(1, len(bars))
    for at, (series, values) in enumerate(bars.items()):
        drawn = [(k, value) for k, value in enumerate(values) if value is not None]
        axes.bar(
            [k + (at + 0.5) * width - 0.4 for k, _ in drawn],
            [height for _, (height, _) in drawn],
            width,
            label=series,
            color=PALETTE[at % len(PALETTE)],
            hatch=["////" if is_limit else "" for _, (_, is_limit) in drawn],
            edgecolor="white",
            linewidth=0.3,
        )
    axes.set_yscale("log")
    axes.margins(y=0.3)  # for the legend
    axes.set_ylabel(label)
    axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize="small")
    return _finish(figure, axes)


def draw_pairs(
    pairs: Mapping[str, Sequence[tuple[float, float]]], labels: tuple[str, str]
) -> Figure:
    """Draw, for each name, what was measured in two ways, with the line on which both are equal."""
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


def draw_points(
    values: Mapping[str, Mapping[str, float]], label: str, scale: str = "log"
) -> Figure:
    """Draw, for each name, a value of each of several cases, which stand side by side."""
    figure, axes = _figure()
    cases = list(dict.fromkeys(case for each in values.values() for case in each))
    for at, (solver, each) in enumerate(values.items()):
        axes.plot(
            [cases.index(case) + 0.6 * (at + 0.5) / len(values) - 0.3 for case in each],
            list(each.values()),
            linestyle="none",
            marker="os^vDPX*"[at % 8],
            markersize=4.5,
            label=solver,
            gid=solver,
            color=PALETTE[at % len(PALETTE)],
        )
    axes.set_xticks(range(len(cases)), cases, rotation=30, ha="right", fontsize="small")
    axes.set_yscale(scale)
    axes.margins(y=0.3)  # room for the legend
    axes.set_ylabel(label)
    return _finish(figure, axes)


def draw_lines(
    lines: Mapping[str, Sequence[tuple[float, float]]], labels: tuple[str, str]
) -> Figure:
    """Draw, for each name, a line through points (x, y); y counts bytes."""
    figure, axes = _figure()
    for at, (series, points) in enumerate(lines.items()):
        x, y = ([point[k] for point in points] for k in range(2))
        colour = PALETTE[at % len(PALETTE)]
        axes.plot(x, y, linewidth=1.2, color=colour, label=series, gid=series)
    axes.yaxis.set_major_formatter(lambda value, _: human(round(value)))
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return _finish(figure, axes)


def draw_bands(
    bands: Mapping[str, Sequence[tuple[float, float, float]]], labels: tuple[str, str]
) -> Figure:
    """Draw, for each name, a curve with the standard error around it."""
    figure, axes = _figure()
    axes.axhline(1.0, color="#888888", linewidth=0.8, gid="equal")
    for at, (case, points) in enumerate(bands.items()):
        x, y, error = ([point[k] for point in points] for k in range(3))
        colour = PALETTE[at % len(PALETTE)]
        style = _STYLES[at // len(PALETTE) % len(_STYLES)]
        axes.plot(
            x, y, marker=".", linestyle=style, linewidth=1.2, color=colour, label=case, gid=case
        )
        lower, upper = ([a + sign * b for a, b in zip(y, error, strict=True)] for sign in (-1, 1))
        axes.fill_between(x, lower, upper, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    return _finish(figure, axes)


def _figure() -> tuple[Figure, Axes]:
    figure = picture.make_figure(_WIDTH, _HEIGHT)
    return figure, figure.add_subplot()


def _finish(figure: Figure, axes: Axes) -> Figure:
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    many = len(axes.get_legend_handles_labels()[1]) > _MANY
    axes.legend(loc="best", fontsize="xx-small" if many else "small", ncols=2 if many else 1)
    return figure
