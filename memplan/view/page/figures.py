"""The figures of a page, two for each plan: addresses over time, and the load below them.

They have no boxes yet: `plans.js` fills their sources with what is in sight at the current zoom.
This module makes the sources, and the ranges that all figures share, which links them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memplan.base.extras import require
from memplan.problem import Problem
from memplan.view.page.data import find_origin

if TYPE_CHECKING:
    from bokeh.models import ColumnDataSource, Range1d
    from bokeh.plotting import figure as Figure  # noqa: N812

__all__ = ["check_bokeh", "document", "renumber", "scale", "scripts", "style_axes"]

_LEFT, _RIGHT = 78, 14  # pixels at the sides of every frame, so that all line up; see `plans.js`
_FONT = "system-ui, sans-serif"
_TOOLS = "pan,wheel_zoom"


def document(problem: Problem, count: int, top: int, unit: tuple[int, str]) -> dict[str, Any]:
    """Return the figures of `count` plans as Bokeh's JSON; the same call gives the same text.

    The figures are called `memory-0`, `load-0`, `memory-1`, ... The unit is of addresses, its bytes
    and name, and `top` the highest address that can be shown.
    """
    check_bokeh()
    from bokeh.document import Document
    from bokeh.models import Range1d

    first = int(problem.start.min()) if len(problem) else 0
    last = int(problem.end.max()) if len(problem) else 1
    begin, end = float(first - find_origin(problem)), float(last - find_origin(problem))
    margin = 0.01 * (end - begin)
    ranges = {
        "time": _make_range(Range1d, begin - margin, end + margin),
        "address": _make_range(Range1d, 0.0, top * 1.08 / unit[0]),
        "load": Range1d(start=0.0, end=top / unit[0], name="load-range"),
    }
    blocks = [block for block in problem.reserved if block.lower < top]
    reserved = {
        "left": [begin - margin] * len(blocks),
        "right": [end + margin] * len(blocks),
        "bottom": [block.lower / unit[0] for block in blocks],
        "top": [min(block.upper, top) / unit[0] for block in blocks],
    }
    later = f" after {find_origin(problem):,}" if find_origin(problem) else ""
    document = Document(title="")
    for at in range(count):
        address = f"address ({unit[1]})"
        memory = _make_figure(f"memory-{at}", ranges["time"], ranges["address"], address, "webgl")
        _fill_memory(memory, at, reserved)
        # Bokeh has one WebGL canvas, whose size would change at every drawing of both figures.
        load = _make_figure(
            f"load-{at}", ranges["time"], ranges["load"], f"load ({unit[1]})", "canvas"
        )
        load.xaxis.axis_label = f"time{later}"
        _fill_load(load, at)
        for each in (memory, load):
            _add_lines(each)
            document.add_root(each)
        _add_peak(memory, load, at)
    made: dict[str, Any] = renumber(document.to_json(deferred=False))
    return made


def scripts() -> list[str]:
    """Return Bokeh's own scripts: its core, and its part for WebGL."""
    check_bokeh()
    from bokeh.resources import Resources

    return list(Resources(mode="inline", log_level="warn", components=["bokeh", "bokeh-gl"]).js_raw)


def scale() -> list[str]:
    """Return colours for amounts, from little to much, which differ in grey too."""
    check_bokeh()
    from bokeh.palettes import Viridis256

    return list(Viridis256)


def check_bokeh() -> None:
    """Refuse a page, before the work, if Bokeh is not installed."""
    require("bokeh", extra="view")


def _make_range(kind: type[Range1d], start: float, end: float) -> Range1d:
    return kind(start=start, end=end, bounds=(start, end), min_interval=(end - start) * 1e-7)


def _make_figure(name: str, time: Range1d, value: Range1d, label: str, backend: str) -> Figure:
    from bokeh.models import BasicTicker, NumeralTickFormatter
    from bokeh.plotting import figure

    drawn = figure(
        name=name,
        x_range=time,
        y_range=value,
        output_backend=backend,
        tools=_TOOLS,
        active_scroll="wheel_zoom",
        toolbar_location=None,
        sizing_mode="stretch_both",
        min_border_left=_LEFT,
        min_border_right=_RIGHT,
        min_border_top=6,
        background_fill_color=None,  # what is behind it follows the theme
        border_fill_color=None,
        y_axis_label=label,
        lod_threshold=None,  # Bokeh's default drops boxes while one pans; there are few enough here
    )
    drawn.xaxis.ticker = BasicTicker(min_interval=1, desired_num_ticks=8)  # time is whole
    drawn.xaxis.formatter = NumeralTickFormatter(format="0,0")
    style_axes(drawn)
    return drawn


def style_axes(drawn: Figure) -> None:
    """Give the axes of a figure the font of the page, and amounts that read well."""
    from bokeh.models import NumeralTickFormatter

    drawn.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    drawn.yaxis.ticker.desired_num_ticks = 5
    for axis in (drawn.xaxis, drawn.yaxis):
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = _FONT
        axis.minor_tick_line_color = None


def _fill_memory(drawn: Figure, at: int, reserved: dict[str, list[float]]) -> None:
    """Add, from the back: reserved ranges, thin boxes, unused space, boxes, names, outlines."""
    from bokeh.core.properties import value
    from bokeh.models import ColumnDataSource

    boxes = ("left", "right", "bottom", "top")
    corners = {side: side for side in boxes}
    if reserved["left"]:
        drawn.quad(
            **corners,
            source=ColumnDataSource(reserved),
            fill_color=None,
            line_color=None,
            hatch_pattern="/",
            hatch_color="#888888",
            hatch_alpha=0.6,
            hatch_weight=1,
        )
    # The image is one clear pixel, from which a script takes the class of arrays that Bokeh needs.
    nothing = {"image": [np.zeros((1, 1), dtype=np.uint32)]}
    place = {name: [0.0] for name in ("x", "y", "dw", "dh")}
    thin = ColumnDataSource(nothing | place, name=f"thin-{at}")
    drawn.image_rgba(image="image", x="x", y="y", dw="dw", dh="dh", source=thin)
    drawn.quad(
        **corners,
        source=_make_source(f"waste-{at}", *boxes),
        name=f"waste-quads-{at}",
        fill_alpha=0.22,
        line_color=None,
    )
    drawn.quad(
        **corners,
        source=_make_source(f"boxes-{at}", *boxes, "fill", "edge"),
        name=f"boxes-quads-{at}",
        fill_color="fill",
        line_alpha="edge",
        line_width=0.75,
    )
    drawn.text(
        x="x",
        y="y",
        text="text",
        source=_make_source(f"names-{at}", "x", "y", "text", "ink"),
        text_color="ink",
        text_align="center",
        text_baseline="middle",
        text_font=value(_FONT),
        text_font_size="11px",
    )
    drawn.quad(
        **corners,
        source=_make_source(f"marks-{at}", *boxes, "colour", "width"),
        name=f"marks-quads-{at}",
        fill_color=None,
        line_color="colour",
        line_width="width",
    )


def _fill_load(drawn: Figure, at: int) -> None:
    from bokeh.models import ColumnDataSource

    # The source has points, because Bokeh's steps do not end without any.
    source = ColumnDataSource({"x": [0.0, 0.0], "y": [0.0, 0.0]}, name=f"curve-{at}")
    drawn.varea_step(
        x="x", y1=0, y2="y", step_mode="after", source=source, fill_alpha=0.35, name=f"area-{at}"
    )
    drawn.step(x="x", y="y", mode="after", source=source, line_width=1.5, name=f"step-{at}")


def _add_lines(drawn: Figure) -> None:
    """Add the lines of the limits and of the moment; a script places them."""
    from bokeh.models import Span

    for name, across, dash in (
        ("capacity", "width", "dashed"),
        ("bound", "width", "dotted"),
        ("moment", "height", "solid"),
    ):
        line = Span(
            name=f"{name}-{drawn.name}",
            dimension=across,
            line_dash=dash,
            line_width=1.5,
            visible=False,
        )
        drawn.add_layout(line)


def _add_peak(memory: Figure, load: Figure, at: int) -> None:
    """Add the lines of the peak; a script places them.

    The boxes at the peak may be one pixel wide. So the line in the upper figure, a box without
    width, begins above them.
    """
    from bokeh.models import BoxAnnotation, Span

    shown = {"line_alpha": 1.0, "line_width": 1.5, "visible": False}
    line = BoxAnnotation(name=f"peak-above-{at}", left=0, right=0, fill_color=None, **shown)
    memory.add_layout(line)
    below = Span(name=f"peak-load-{at}", dimension="height", level="underlay", **shown)
    load.add_layout(below)


def _make_source(name: str, *columns: str) -> ColumnDataSource:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource({column: [] for column in columns}, name=name)


def renumber(document: Any) -> Any:
    """Renumber all models from 0, because Bokeh counts on from document to document."""
    numbers: dict[str, str] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            named = {key: walk(each) for key, each in value.items()}
            if isinstance(value.get("id"), str):
                named["id"] = numbers.setdefault(value["id"], f"m{len(numbers)}")
            return named
        return [walk(each) for each in value] if isinstance(value, list) else value

    return walk(document)
