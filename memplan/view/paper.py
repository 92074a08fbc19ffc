"""What figures for papers share: sizes, type, ticks and the lines of levels.

Everything is sized for print at the given width: letters of 7 and 8 points, thin lines, and no
frame on sides without labels. matplotlib's defaults, which are global, do not change.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError
from memplan.view import picture
from memplan.view.levels import Level
from memplan.view.picture import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_PAGE = 178.0  # millimetres: both columns of the pages of ACM and IEEE, 7.0 inches
_NARROWEST, _WIDEST = 40.0, 2_000.0
_INCH = 25.4

_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],  # matplotlib brings it: the same picture on every machine
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.labelpad": 2.5,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "hatch.linewidth": 0.5,
}
_TICK = 7  # points, as above
_KEY_LINE = 0.16  # inches
_LETTERS = 16  # an inch of a title
_EXACT = 16  # ticks at borders of boxes: beyond, a scale reads better

# Dashes tell the lines apart in grey too; they stand from the most to the least important.
_LINES = {
    "capacity": ("#b3202a", (0, (5, 2)), 1.2),
    "peak": ("#333333", "solid", 0.8),
    "lower bound": ("#333333", (0, (1, 1.5)), 1.0),
}


def style() -> AbstractContextManager[None]:
    """Return a context in which what is drawn has the type and the lines of a paper."""
    picture.check_installed()
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def figure(width: float | None, height: float, keys: int = 0) -> Figure:
    """Return a figure with room for so many rows of `add_key` below it.

    The width is in millimetres, from 40 to 2,000, `None` for a page of two columns; the height is
    in widths.
    """
    chosen = _PAGE if width is None else width
    if not _NARROWEST <= chosen <= _WIDEST:
        raise MemplanError(f"the picture's width is {chosen:g} mm; give 40 to 2,000")
    inches = chosen / _INCH
    below = math.ceil(keys / _key_columns(inches)) * _KEY_LINE
    made = picture.make_figure(inches, inches * height + below)
    made.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02)
    return made


def draw_levels(
    axes: Axes, marked: Sequence[Level], unit: int, *, key: bool, title: str = ""
) -> None:
    """Draw a line at each level; with a key, name them above the axes, below a title."""
    for level in marked:
        colour, dashes, width = _LINES[level.names[0]]
        axes.axhline(
            level.bytes / unit,
            color=colour,
            linestyle=dashes,
            linewidth=width,
            label=str(level),
            gid=level.names[0],
        )
    if key:
        width = axes.figure.get_figwidth()  # type: ignore[union-attr]
        axes.legend(
            title=textwrap.fill(title, int(_LETTERS * width)) or None,
            title_fontsize=_TICK + 1,
            alignment="left",
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=3 if width > 5 else 2 if width > 2.5 else 1,
            frameon=False,
            handlelength=2,
            borderpad=0.2,
            borderaxespad=0.1,
            labelspacing=0.2,
        )


def add_key(figure: Figure, rows: list[Patch]) -> None:
    """Name the classes of the colours below the axes."""
    columns = _key_columns(figure.get_figwidth())
    key = figure.legend(
        handles=rows, loc="outside lower center", ncols=columns, frameon=False, handlelength=1.2
    )
    for patch in key.get_patches():
        patch.set(edgecolor="#1a1a1a", linewidth=0.5)
    for text in key.get_texts():
        text.set_parse_math(False)  # a `$` in a name is a `$`


def _key_columns(inches: float) -> int:
    return max(1, int(inches / 1.4))


def set_ticks(figure: Figure, space: Axes, times: Axes, boxes: Floats, unit: int) -> None:
    """Put ticks where boxes begin and end, as far as there are few, and else on a round scale.

    The figure is laid out, to know how much room there is. `space` has the addresses, and `times`
    the labels of times: the same axes, or the strip below. Boxes have shape (s, 4, 2), with
    addresses in units of so many bytes.
    """
    from matplotlib.ticker import FixedLocator

    width, height = lay_out(figure, space)
    set_scale(space, unit, height)
    at = _find_borders(boxes[:, :, 1])
    if at is not None and _are_apart(at / space.get_ylim()[1] * height, 1.3 * _TICK):
        space.yaxis.set_major_locator(FixedLocator(at.tolist()))

    first, last = times.get_xlim()
    at = _find_borders(boxes[:, :, 0])
    letters = 0 if at is None else max(len(f"{value:,.0f}") for value in at.tolist())
    if at is not None and _are_apart(at / (last - first) * width, (letters + 1) * 0.65 * _TICK):
        times.xaxis.set_major_locator(FixedLocator(at.tolist()))
        for border in at.tolist():  # where nothing lies on them, sections show through
            space.axvline(border, color="#d0d0d0", linewidth=0.4, zorder=0, gid="section")


def set_scale(axes: Axes, unit: int, height: float) -> None:
    """Put ticks at round amounts of memory, as many as so many points have room for."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    high = axes.get_ylim()[1]
    step = 2.0 ** math.ceil(math.log2(high / max(2.2, min(8.0, height / 25))))
    axes.yaxis.set_major_locator(MultipleLocator(step if unit > 1 else max(1.0, step)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def lay_out(figure: Figure, axes: Axes) -> tuple[float, float]:
    """Lay the figure out and return the width and height of the axes, in points."""
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    box = axes.get_position()
    width, height = figure.get_size_inches().tolist()
    return box.width * width * 72, box.height * height * 72


def _find_borders(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Return the distinct values if they are few, and exact in print."""
    found = np.unique(values)
    few = 0 < len(found) <= _EXACT
    return found if few and all(float(f"{v:.6g}") == v for v in found.tolist()) else None


def _are_apart(points: npt.NDArray[np.float64], least: float) -> bool:
    return bool((np.diff(points) >= least).all())
