"""Pictures of a search tree (figure 5 of MiniMalloc) and of its lattice (figure 6).

Both grow from left to right, one column for each number of placed buffers. The lattice has each
set of placements once, whatever the order in which they were placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.view import picture
from memplan_lab.study.search_tree import Node, Rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DRAWN = 600  # vertices; with more the picture is too large to read

_FONT = 6.5  # points
_LINE, _LETTER = 0.12, 0.07  # inches that a line and a letter of this font take
_GAP = 0.45  # inches between columns
# Line styles as in figure 6: dashed and dotted for the two monotonicities, solid for the rest.
_STYLES = {
    Rule.OFFSET_MONOTONICITY: ("#2a6fbb", "--"),
    Rule.INDEX_MONOTONICITY: ("#2a6fbb", ":"),
    Rule.DOMINANCE: ("#c0392b", "-."),
    Rule.SECTION_INFERENCE: ("#b8860b", "--"),
    Rule.CAPACITY: ("#888888", ":"),
}
_CONTINUED, _SOLVED = "continued", "leads to a solution"


@dataclass
class _Vertex:
    """A partial solution in the picture.

    `edges` has the vertices with one more buffer: the rule that pruned each of them, or `_SOLVED`
    or `_CONTINUED`.
    """

    depth: int
    text: str
    pruned: bool
    edges: dict[Hashable, str] = field(default_factory=dict)
    y: float = 0.0


def draw(root: Node, problem: Problem, *, lattice: bool = False) -> Figure:
    """Draw a search: edges that a rule pruned in its colour, those to a solution bold."""
    vertices = _merge(root, problem) if lattice else _list_tree(root, problem)
    if len(vertices) > MOST_DRAWN:
        raise MemplanError(
            f"the picture would have {len(vertices):,} partial solutions, and at most "
            f"{MOST_DRAWN} can be read; stop at the first solution, or use fewer buffers"
        )
    columns: dict[int, list[_Vertex]] = {}
    for vertex in vertices.values():
        columns.setdefault(vertex.depth, []).append(vertex)
    if lattice:
        _space_columns(vertices, columns)
    else:
        _place_tree(vertices, root.placed)
    return _paint(vertices, [columns[depth] for depth in sorted(columns)])


def _list_tree(root: Node, problem: Problem) -> dict[Hashable, _Vertex]:
    """Return a vertex for each node, by its placements in their order."""
    return {
        node.placed: _Vertex(
            len(node.placed),
            _name(node.placed[-1:], problem),
            node.pruned_by is not None,
            {child.placed: _kind(child, problem) for child in node.children},
        )
        for node in root.walk()
    }


def _merge(root: Node, problem: Problem) -> dict[Hashable, _Vertex]:
    """Return a vertex for each set of placements; it is pruned if all ways to it are."""
    vertices: dict[Hashable, _Vertex] = {}
    for node in root.walk():
        text = _name(sorted(node.placed), problem)
        key = frozenset(node.placed)
        vertex = vertices.setdefault(key, _Vertex(len(node.placed), text, pruned=True))
        vertex.pruned &= node.pruned_by is not None
        for child in node.children:
            vertex.edges[frozenset(child.placed)] = _kind(child, problem)
    return vertices


def _name(placed: Sequence[tuple[int, int]], problem: Problem) -> str:
    return "\n".join(f"{problem.ids[row]}({offset:,})" for row, offset in placed) or "start"


def _kind(node: Node, problem: Problem) -> str:
    if node.pruned_by is not None:
        return node.pruned_by
    solved = any(
        len(each.placed) == len(problem) and each.pruned_by is None for each in node.walk()
    )
    return _SOLVED if solved else _CONTINUED


def _place_tree(vertices: dict[Hashable, _Vertex], root: Hashable) -> None:
    """Give each leaf a line of its own, and centre each parent on its children."""
    next_line = 0.0

    def place(vertex: _Vertex) -> float:
        nonlocal next_line
        below = [place(vertices[key]) for key in vertex.edges]
        if below:
            vertex.y = (below[0] + below[-1]) / 2
        else:
            vertex.y = next_line
            next_line += 1.4 * _LINE
        return vertex.y

    place(vertices[root])


def _space_columns(vertices: dict[Hashable, _Vertex], columns: dict[int, list[_Vertex]]) -> None:
    """Space each column evenly, in the order of the mean of the vertices before."""
    heights = {depth: (max(depth, 1) + 0.8) * _LINE for depth in columns}
    total = max(len(columns[depth]) * heights[depth] for depth in columns)
    parents: dict[int, list[float]] = {}
    for depth in sorted(columns):
        column = sorted(columns[depth], key=lambda each: _mean(parents.get(id(each), [0.0])))
        for at, vertex in enumerate(column):
            vertex.y = total * (at + 0.5) / len(column)
            for key in vertex.edges:
                parents.setdefault(id(vertices[key]), []).append(vertex.y)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _paint(vertices: dict[Hashable, _Vertex], columns: Sequence[Sequence[_Vertex]]) -> Figure:
    widths = [
        max(len(line) for vertex in column for line in vertex.text.split("\n")) * _LETTER
        for column in columns
    ]
    centres, x = [], 0.0
    for width in widths:
        centres.append(x + width / 2)
        x += width + _GAP
    ys = [vertex.y for vertex in vertices.values()]
    lines = max(vertex.text.count("\n") + 1 for vertex in vertices.values())
    margin = _LINE * (lines / 2 + 0.5)
    low, high = min(ys) - margin, max(ys) + margin
    figure = picture.make_figure(max(4.5, x), high - low + 0.6)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-_GAP / 2, x - _GAP / 2)
    axes.set_ylim(high, low)  # the first child is at the top
    _paint_edges(axes, vertices, centres)
    for vertex in vertices.values():
        axes.text(
            centres[vertex.depth],
            vertex.y,
            vertex.text,
            ha="center",
            va="center",
            fontsize=_FONT,
            parse_math=False,
            color="#777777" if vertex.pruned else "#000000",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
    figure.legend(loc="outside lower center", ncols=2, fontsize=_FONT, frameon=False)
    return figure


def _paint_edges(axes: Axes, vertices: dict[Hashable, _Vertex], centres: Sequence[float]) -> None:
    from matplotlib.collections import LineCollection

    kinds = [kind for vertex in vertices.values() for kind in vertex.edges.values()]
    count = Counter(kinds)
    for kind in (_SOLVED, _CONTINUED, *_STYLES):
        if not count[kind]:
            continue
        colour, style = _STYLES[Rule(kind)] if kind in _STYLES else ("#000000", "-")
        lines = LineCollection(
            [
                [(centres[one.depth], one.y), (centres[one.depth + 1], vertices[key].y)]
                for one in vertices.values()
                for key, found in one.edges.items()
                if found == kind
            ],
            colors=colour,
            linestyles=style,
            linewidths=1.6 if kind == _SOLVED else 0.7,
            gid=kind,
            label=f"{kind} ({count[kind]:,})",
            zorder=1,
        )
        axes.add_collection(lines)
