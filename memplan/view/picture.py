"""What all pictures share: boxes of time and address, their colours and axes, and the file.

matplotlib (extra `plot`) is imported when a picture is asked for, and used without pyplot: no
window, no global state.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memplan.base.errors import FormatError, PlanError
from memplan.base.extras import require
from memplan.base.files import write_bytes
from memplan.problem import Problem, Reserved
from memplan.problem.plan import Plan
from memplan.problem.spans import Spans
from memplan.view.units import human

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

RASTER_FROM = 2_000  # buffers: beyond, vectors make files that no viewer opens
BOUND = "#222222"

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
_NOTEBOOK_DPI = 120
_FILES: dict[Any, Any] = {
    "pdf.fonttype": 42,  # TrueType, embedded: publishers refuse Type 3
    # Text stays text: it can be searched, read aloud and edited. Viewers without the font take
    # another sans-serif, and DejaVu is wider than those.
    "svg.fonttype": "none",
    "svg.hashsalt": "memplan",
}
_DATELESS: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a picture's suffix; refuse any but `.png`, `.svg` and `.pdf`."""
    name = os.fspath(path)
    kind = os.path.splitext(name)[1].lower().removeprefix(".")
    if kind not in _DATELESS:
        raise FormatError(name, "the suffix of a picture must be .png, .svg or .pdf")
    return kind


def check_installed() -> None:
    """Refuse to draw if matplotlib is not installed."""
    require("matplotlib.figure", extra="plot")


def make_figure(width: float, height: float) -> Figure:
    """Return a figure of so many inches that is attached to no display, and that notebooks show."""
    check_installed()
    import matplotlib
    from matplotlib.figure import Figure

    class Shown(Figure):
        # Notebooks show a figure by themselves only where pyplot keeps a list of all figures.
        def _repr_png_(self) -> bytes:
            return render(self, "png", _NOTEBOOK_DPI)

        def savefig(self, *file: Any, **how: Any) -> None:
            with matplotlib.rc_context(_FILES):
                super().savefig(*file, **how)

    return Shown(figsize=(width, height), layout="constrained")


def write(figure: Figure, path: str | os.PathLike[str], dpi: int = 300) -> None:
    """Write a figure, all of it or nothing; the same figure gives the same bytes.

    Parameters
    ----------
    figure
        What is drawn.
    path
        Its suffix chooses the format: `.png`, or `.svg` and `.pdf`, which are vectors with text as
        text; PDF embeds its fonts.
    dpi
        Pixels an inch, for PNG and for what is drawn as pixels in the other two.

    Raises
    ------
    FormatError
        For another suffix than `format_of` knows, or if the file cannot be written.
    """
    write_bytes(os.fspath(path), render(figure, format_of(path), dpi))


def render(figure: Figure, kind: str, dpi: int) -> bytes:
    """Return the bytes of a figure's file; `kind` is png, svg or pdf."""
    picture = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that the font lacks becomes a box in the picture; a warning would help no user.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(picture, format=kind, dpi=dpi, metadata=_DATELESS[kind])
    return picture.getvalue()


def choose_unit(top: int) -> tuple[int, str]:
    """Return the largest unit in which an axis up to `top` reads well: its bytes and its name."""
    return next(pair for pair in _UNITS if top >= 4 * pair[0] or pair[0] == 1)


def offsets(problem: Problem, plan: Plan) -> npt.NDArray[np.int64]:
    """Return the offset of every buffer, shape (n,), by row; refuse a plan that lacks one."""
    if plan.offsets is None:
        raise PlanError(f"the plan has no offsets to draw (its status is {plan.status})")
    if plan.ids == problem.ids:
        return plan.offsets
    return np.array([plan.offset(id) for id in problem.ids], dtype=np.int64)


def find_corners(held: Spans, offset: npt.NDArray[np.int64], unit: int) -> Floats:
    """Return the four corners of every span, shape (s, 4, 2)."""
    base = offset[held.buffer]
    left, right = held.start, held.end
    lower, upper = (base + held.lower) / unit, (base + held.upper) / unit
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([lower, lower, upper, upper], axis=1)
    return np.stack([x, y], axis=2)


def shares(boxes: Floats, duration: float, height: float) -> Floats:
    """Return how much of the picture's width and height each box takes, shape (s, 2)."""
    part: Floats = (boxes[:, 2] - boxes[:, 0]) / np.array([duration, height])
    return part


def add_boxes(
    axes: Axes, boxes: Floats, room: Floats, edge: float, colour: str = "white"
) -> PolyCollection:
    """Add a box for every span, of corners in shape (s, 4, 2); the caller says in which colours.

    Where `room` (see `shares`) is small there is no edge, which would cover the box. The width of
    other edges is in points, of a picture that is not crowded.
    """
    from matplotlib.collections import PolyCollection

    many = len(boxes) > RASTER_FROM
    least = room.min(axis=1, initial=1.0)
    # In pixels an edge is at least one wide and would hide a thin box, which gets none; in vectors
    # the edge gets thinner with the box.
    widths = np.where(least > 0.006, 0.2, 0.0) if many else np.minimum(edge, 80 * least)
    drawn = PolyCollection(
        boxes,  # type: ignore[arg-type]
        edgecolors=colour,
        linewidths=widths,
        antialiaseds=not many,
        rasterized=many,
        gid="buffers",
    )
    axes.add_collection(drawn)
    return drawn


def colour_by_amount(drawn: PolyCollection, amount: npt.NDArray[np.int64], norm: LogNorm) -> None:
    """Give every box the colour of its positive amount; the scale can be read in grey too."""
    drawn.set_array(amount.astype(np.float64))
    drawn.set_cmap("viridis")
    drawn.set_norm(norm)


def add_key(
    drawn: PolyCollection,
    axes: Axes | list[Axes],
    label: str,
    low: int,
    high: int,
    *,
    below: bool = False,
) -> None:
    """Draw a scale next to the axes, which says the amount of each colour.

    The label says what the amounts are of; `size` is in bytes. `below` says that some are below the
    scale.
    """
    if low == high:
        return  # one colour needs no key
    ticks = np.geomspace(low, high, 5).tolist()
    all_axes = axes if isinstance(axes, list) else [axes]
    bar = all_axes[0].figure.colorbar(
        drawn, ax=all_axes, label=label, pad=0.01, aspect=40, extend="min" if below else "neither"
    )
    bar.minorticks_off()
    bar.set_ticks(
        ticks, labels=[human(round(t)) if label == "size" else f"{t:,.0f}" for t in ticks]
    )


def draw_reserved(axes: Axes, reserved: Iterable[Reserved], unit: int) -> None:
    """Hatch the addresses that no buffer may touch."""
    for block in reserved:
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


def set_time_axis(axes: Axes, first: int, last: int, ticks: int = 10, free: float = 0.005) -> None:
    """Label whole times from `first` to `last`, with a share `free` of them empty at each end."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.xaxis.set_major_locator(MaxNLocator(nbins=ticks, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    if last > first:
        margin = free * (last - first)
        axes.set_xlim(first - margin, last + margin)
