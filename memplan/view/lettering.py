"""Names of buffers inside of their boxes, or the ends of names, where there is room for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memplan.base.errors import quoted
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

    Where a name does not fit, its end does ("…_12"), or the box stays empty. The figure is laid
    out, to know how large the boxes are, whose corners have shape (s, 4, 2). Colours of boxes are
    given where some are so dark that black does not read on them.
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
            name = _shorten(name, float(points[box].max()))
            size, upright = _fit_size(name, *points[box].tolist())
        if not name or size < _SMALLEST:
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


def _shorten(name: str, length: float) -> str:
    """Return the end of a name after "…", in so many points; empty if they are too few.

    Three letters of a name are enough, and two where the first is a separator: "…_7".
    """
    room = length / _SMALLEST - (_LINE - 1)
    count = min(int(len(name) * room / max(_measure_length(name), 1e-9)), len(name) - 1)
    for letters in range(count, 1, -1):
        end = name[-letters:]
        if (letters > 2 or not end[0].isalnum()) and _measure_length(f"…{end}") <= room:
            return f"…{end}"
    return ""


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

    # This is the luminance of WCAG, of which black and white differ equally at 0.179.
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179
