"""Memory against extra work as a picture: what was found, and what is proved to be impossible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memplan.view import paper, picture
from memplan.view.classes import PALETTE
from memplan.view.units import human

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from memplan.levers.pipeline import Tradeoff, TradeoffPoint

__all__ = ["GROUPS", "IMPOSSIBLE", "Shape", "draw", "group_of"]

_HEIGHT = 0.55  # in widths
# By what costs work: colour, and the marker in matplotlib and in Bokeh, which tell them apart in
# grey too.
GROUPS = {
    "no more work": (PALETTE[2], "D", "diamond"),
    "operators run again": (PALETTE[0], "o", "circle"),
    "moved out and back": (PALETTE[3], "^", "triangle"),
    "bands": (PALETTE[5], "s", "square"),
}
IMPOSSIBLE = "no order and no re-runs are here (proved)"
_LINE = "#666666"


def group_of(point: TradeoffPoint) -> str:
    """Return by what a program costs work."""
    for lever, group in (("bands", "bands"), ("spill", "moved out and back")):
        if lever in point.levers:
            return group
    return "operators run again" if "again" in point.levers else "no more work"


@dataclass(frozen=True)
class Shape:
    """What a picture shows, in units of the axes."""

    unit: int  # of memory
    unit_name: str
    top: float  # the ends of the axes
    right: float
    extra: list[float]  # of the points, in percent and in units
    arena: list[float]
    # What is proved to be impossible by orders and re-runs: the work to the left of which nothing
    # is, and the sizes between which this holds.
    boxes: list[tuple[float, float, float]]
    # The same as steps for first runs in one order: work, and sizes.
    order_bound: tuple[list[float], list[float]]

    @classmethod
    def of(cls, found: Tradeoff) -> Shape:
        """Return the shape of the result of `memplan.tradeoff`."""
        largest = max(found.given.arena, found.floor)
        unit, name = picture.choose_unit(largest)
        extra = [100 * point.extra for point in found.points]
        right = 1.06 * max(extra) or 1.0
        boxes: list[tuple[float, float, float]] = [(right, 0.0, found.floor / unit)]
        works, sizes = [0.0], [largest / unit]
        known = [limit for limit in found.limits if not limit.is_impossible]
        for at, limit in enumerate(known):
            below = known[at + 1].capacity if at + 1 < len(known) else found.floor
            bound = min(right, 100 * found.share_of(limit.bound))
            if bound and below < limit.capacity:
                boxes.append((bound, below / unit, limit.capacity / unit))
            works.append(min(right, 100 * found.share_of(limit.order_bound)))
            sizes.append(limit.capacity / unit)
        works.append(works[-1])
        sizes.append(found.floor / unit)
        arena = [point.arena / unit for point in found.points]
        return cls(unit, name, 1.08 * largest / unit, right, extra, arena, boxes, (works, sizes))


def draw(found: Tradeoff, *, width: float | None = None) -> Figure:
    """Draw the memory that programs need over the work that they add; the width is in mm."""
    shape = Shape.of(found)
    with paper.style():
        from matplotlib.patches import Rectangle

        figure = paper.figure(width, _HEIGHT)
        axes = figure.subplots()
        for number, (right, bottom, top) in enumerate(shape.boxes):
            box = Rectangle(
                (0, bottom), right, top - bottom, color="#d9d9d9", linewidth=0, zorder=0
            )
            box.set_label(IMPOSSIBLE if number == 0 else "_")
            axes.add_patch(box)
        axes.plot(*shape.order_bound, color=_LINE, linestyle=(0, (1, 1.5)), linewidth=1)
        axes.lines[-1].set(label="bound, this order", drawstyle="steps-pre")
        axes.step(shape.extra, shape.arena, where="post", color=_LINE, linewidth=0.8)
        groups = [group_of(point) for point in found.points]
        for name, (colour, marker, _) in GROUPS.items():
            those = [number for number, group in enumerate(groups) if group == name]
            if those:
                x, y = [shape.extra[n] for n in those], [shape.arena[n] for n in those]
                axes.plot(x, y, marker, color=colour, markersize=4, label=name, zorder=3)
        axes.set_xlim(-0.01 * shape.right, shape.right)
        axes.set_ylim(0, shape.top)
        axes.set_xlabel("more work (% of one plain run)")
        axes.set_ylabel(f"memory ({shape.unit_name})")
        inches = figure.get_figwidth()
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=3 if inches > 5 else 2 if inches > 3.5 else 1,
            frameon=False,
            title=f"floor of orders and re-runs: {human(found.floor)}",
            alignment="left",
        )
        paper.set_scale(axes, shape.unit, paper.lay_out(figure, axes)[1])
    return figure
