"""Names of buffers inside of their boxes, where there is room for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memplan.errors import quoted
from memplan.problem import Problem
from memplan.problem.spans import Spans
from memplan.view import paper
from memplan.view.picture import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST, _SMALLEST = 7.0, 4.5  # points; smaller letters cannot be read in print
_LINE = 1.25  # height of a line of text with its margin, in sizes of its letters


def write_names(
    figure: Figure,
    axes: Axes,
    problem: Problem,
    held: Spans,
    boxes: Floats,
    colours: Sequence[str] | None,
) -> None:
    """Write each buffer's name into the largest of its boxes, upright where it is too narrow.

    Parameters
    ----------
    figure
        It is laid out, to know how large the boxes are.
    held
        What the boxes are of.
    boxes
        Their corners, shape (s, 4, 2).
    colours
        Of the boxes, where some are so dark that black does not read on them.
    """
    if not len(boxes):
        return
    width, height = paper.lay_out(figure, axes)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    points = (boxes[:, 2] - boxes[:, 0]) * np.array([width / (right - left), height / (high - low)])
    fits = points.min(axis=1) >= _LINE * _SMALLEST
    largest: dict[int, int] = {}
    for box in np.argsort(points.prod(axis=1), kind="stable").tolist():
        if fits[box]:
            largest[int(held.buffer[box])] = box
    for row, box in largest.items():
        name = quoted(problem.ids[row])[1:-1]
        size, upright = _fit_size(name, *points[box].tolist())
        if size < _SMALLEST:
            continue
        x, y = boxes[box].mean(axis=0)
        text = axes.text(
            *(x, y, name),
            ha="center",
            va="center_baseline" if not upright else "center",
            rotation=90 if upright else 0,
            fontsize=size,
            color="black" if colours is None or _is_light(colours[box]) else "white",
            gid="name",
        )
        text.set_parse_math(False)  # a `$` in a name is a `$`
        text.set_in_layout(False)


def _fit_size(name: str, width: float, height: float) -> tuple[float, bool]:
    """Return how large a name can be in a box, in points, and whether upright."""
    long = _measure_length(name)
    flat = min(_LARGEST, height / _LINE, width / (long + _LINE - 1))
    upright = min(_LARGEST, width / _LINE, height / (long + _LINE - 1))
    return (flat, False) if flat >= min(upright, _SMALLEST) else (upright, True)


def _measure_length(name: str) -> float:
    """Return how long a name is, in sizes of its letters."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        width, _, _ = text_to_path.get_text_width_height_descent(
            name, FontProperties(size=10), ismath=False
        )
    return float(width) / 10


def _is_light(colour: str) -> bool:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.4
