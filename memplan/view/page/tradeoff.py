"""Memory against extra work as a page: a figure, and a table of the programs in it."""

from __future__ import annotations

import html as text
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memplan.view.page.data import format_json
from memplan.view.page.figures import check_bokeh, renumber, scripts, style_axes
from memplan.view.page.markup import list_notes, make_page
from memplan.view.tradeoff import GROUPS, IMPOSSIBLE, Shape, group_of
from memplan.view.verdict import Grade
from memplan.view.words.tradeoff import Row, list_gains, list_known, list_rows, summarise

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure  # noqa: N812

    from memplan.levers.pipeline import Tradeoff

__all__ = ["html"]

_HEADERS = ("needs", "", "share", "more work", "at least", "in this order", "by", "")


def html(found: Tradeoff, *, title: str = "") -> str:
    """Return the result of `memplan.tradeoff` as a page: one file that needs no network.

    `<html data-ready="true">` says that the page is drawn; `#chart` is the figure, `#points` the
    table of the programs, which needs no script, and `#known` what is proved.
    """
    check_bokeh()
    rows, shape = list_rows(found), Shape.of(found)
    proved = found.gains_nothing or all(point.is_proved for point in found.points)
    return make_page(
        "tradeoff",
        ("colours", "tradeoff"),
        scripts(),
        title=text.escape(title or "memplan tradeoff"),
        headline=text.escape(summarise(found)),
        grade=str(Grade.GOOD if proved else Grade.OPEN),
        keys=_list_keys(found),
        table="\n".join(map(_write_row, rows)),
        headers="".join(f'<th scope="col">{name}</th>' for name in _HEADERS),
        known="".join(
            f"<dt>{text.escape(name)}</dt><dd>{text.escape(str(what))}</dd>"
            for name, what in list_known(found)
        ),
        gains="".join(f"<p>{text.escape(line)}</p>" for line in list_gains(found)),
        notes=list_notes([note.text for note in found.notes]),
        figures=format_json(_make_document(found, shape, rows)),
    )


def _list_keys(found: Tradeoff) -> str:
    """Return what colours and lines mean, of what there is."""
    there = {group_of(point) for point in found.points}
    keys = [
        f'<span><i class="dot {marker}" style="background:{colour}"></i>{name}</span>'
        for name, (colour, _, marker) in GROUPS.items()
        if name in there
    ]
    keys.append(f'<span><i class="impossible"></i>{IMPOSSIBLE}</span>')
    keys.append('<span><i class="bound"></i>bound, this order</span>')
    return "".join(keys)


def _write_row(row: Row) -> str:
    bounds = (row.bound or "–", row.order_bound or "–")
    cells = (row.unit, row.share, row.extra, *bounds, row.levers, row.what)
    data = "".join(f"<td>{text.escape(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row">{row.arena}</th>{data}</tr>'


def _make_document(found: Tradeoff, shape: Shape, rows: Sequence[Row]) -> Any:
    from bokeh.document import Document
    from bokeh.models import ColumnDataSource, HoverTool, Range1d
    from bokeh.plotting import figure

    drawn: Figure = figure(
        name="chart",
        x_range=Range1d(start=-0.015 * shape.right, end=shape.right),
        y_range=Range1d(start=0, end=shape.top),
        tools="pan,wheel_zoom,reset",
        toolbar_location=None,
        sizing_mode="stretch_both",
        background_fill_color=None,
        border_fill_color=None,
        min_border_bottom=56,
        min_border_right=8,
        x_axis_label="more work (% of one plain run)",
        y_axis_label=f"memory ({shape.unit_name})",
    )
    style_axes(drawn)
    right, bottom, top = zip(*shape.boxes, strict=True)
    drawn.quad(left=0, right=right, bottom=bottom, top=top, name="impossible", line_color=None)
    works, sizes = shape.order_bound
    drawn.step(works, sizes, mode="before", name="bound", line_dash="dotted", line_width=1.5)
    drawn.step(shape.extra, shape.arena, mode="after", name="found", line_width=1.5)
    groups = [group_of(point) for point in found.points]
    columns = {"x": shape.extra, "y": shape.arena, "marker": [GROUPS[each][2] for each in groups]}
    columns["colour"] = [GROUPS[each][0] for each in groups]
    columns["arena"] = [f"{row.arena} bytes, {row.share}" for row in rows]
    columns["work"] = [row.extra + (f", at least {row.bound}" if row.bound else "") for row in rows]
    columns["what"] = [f"{row.levers}: {row.what}" if row.what else row.levers for row in rows]
    dots = drawn.scatter(
        "x", "y", marker="marker", color="colour", size=10, source=ColumnDataSource(columns)
    )
    drawn.add_tools(
        HoverTool(
            renderers=[dots],
            tooltips=[("memory", "@arena"), ("more work", "@work"), ("by", "@what")],
        )
    )
    document = Document(title="")
    document.add_root(drawn)
    return renumber(document.to_json(deferred=False))
