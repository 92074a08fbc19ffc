"""Programs in bands as a figure: arena against added work, as a picture or a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memplan.base.extras import require
from memplan.view import paper, picture
from memplan.view.words.bands import describe_regions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from memplan.levers.rewrite.bands import Frontier

__all__ = ["draw", "html"]

_COLOUR = "#336b98"
_HEIGHT = 0.5  # in widths


def draw(found: Frontier, *, width: float | None = None) -> Figure:
    """Draw the arenas of the programs in bands over the work that they add; the width is in mm."""
    arenas = [point.arena for point in found.points]
    unit, unit_name = picture.choose_unit(max(arenas))
    with paper.style():
        figure = paper.figure(width, _HEIGHT)
        axes = figure.subplots()
        extra = [100 * found.extra(point) for point in found.points]
        axes.step(extra, [arena / unit for arena in arenas], where="post", color=_COLOUR)
        axes.plot(extra, [arena / unit for arena in arenas], "o", color=_COLOUR, markersize=3)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("more work (%)")
        axes.set_ylabel(f"arena ({unit_name})")
        paper.lay_out(figure, axes)
    return figure


def html(found: Frontier, *, title: str = "") -> str:
    """Return the same as a page: one file without a network, with the bands under the pointer."""
    embed = require("bokeh.embed", extra="view")
    plotting, resources = (
        require("bokeh.plotting", extra="view"),
        require("bokeh.resources", extra="view"),
    )
    models = require("bokeh.models", extra="view")
    unit, unit_name = picture.choose_unit(max(point.arena for point in found.points))
    source = models.ColumnDataSource(
        {
            "extra": [100 * found.extra(point) for point in found.points],
            "arena": [point.arena / unit for point in found.points],
            "bytes": [f"{point.arena:,}" for point in found.points],
            "load": [f"{point.load:,}" for point in found.points],
            "bands": [describe_regions(found, p.regions) or "as it is" for p in found.points],
        }
    )
    figure = plotting.figure(
        title=title or "Programs in bands",
        sizing_mode="stretch_width",
        height=480,
        x_axis_label="more work (%)",
        y_axis_label=f"arena ({unit_name})",
        y_range=models.Range1d(0, 1.05 * max(point.arena for point in found.points) / unit),
        tools="pan,wheel_zoom,reset",
    )
    figure.step("extra", "arena", source=source, mode="after", color=_COLOUR)
    figure.scatter("extra", "arena", source=source, size=8, color=_COLOUR)
    hover = [("arena", "@bytes bytes"), ("load", "@load"), ("bands", "@bands")]
    figure.add_tools(models.HoverTool(tooltips=hover, mode="vline"))
    page: str = embed.file_html(figure, resources.INLINE, title or "Programs in bands")
    return page
