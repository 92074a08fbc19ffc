r"""Writes the interference graph of a problem as DOT (Graphviz) or GraphML (Gephi, networkx, R).

    graph interference {                           the node of row i is n{i}; its id is a label
      n0 [label="b1", size=4, start=0, end=3, ...];
      n0 -- n2 [cause="lifetime"];
    }

Both have the same attributes. An id may hold any text, but XML cannot store control characters. So
labels have a backslash as two, and characters that cannot be printed as Python writes them (`\n`,
`\x1b`). Different ids have different labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.dialect import format_gap
from memplan.problem.interference import Cause, find_edges
from memplan.problem.loads import Loads

__all__ = ["MOST_EDGES", "write_dot", "write_graphml"]

MOST_EDGES = 1_000_000  # a file of about 100 MB

Value = int | str

_GRAPH = ("buffers", "edges", "max_load", "capacity")
_NUMBERS = ("size", "start", "end", "alignment", "pin", "group", "at_max_load")
_NODE = ("label", *_NUMBERS, "gaps")
_LOOKS = {  # of DOT alone
    Cause.LIFETIME: "",
    Cause.CONFLICT: ", style=dashed",
    Cause.WINDOW: ", style=dotted",
}


def write_dot(problem: Problem) -> str:
    """Format the interference graph for Graphviz, if it has no more than `MOST_EDGES`.

    The area of a node is in proportion to the size of its buffer, unless its label needs more. What
    is live at the greatest load is filled.
    """
    first, second, causes = _list_edges(problem)
    largest = max(1, int(problem.size.max(initial=0)))
    lines = ["graph interference {"]
    lines += [f"  {key}={value};" for key, value in _describe_graph(problem, len(first)).items()]
    lines.append("  node [shape=circle];")
    for row, node in enumerate(_describe_nodes(problem)):
        texts = {key: _quote(v) if isinstance(v, str) else str(v) for key, v in node.items()}
        texts["width"] = f"{2 * (int(node['size']) / largest) ** 0.5:.3f}"
        if node["at_max_load"]:
            texts |= {"style": "filled", "fillcolor": '"#7aa6cc"'}
        lines.append(f"  n{row} [{', '.join(f'{key}={text}' for key, text in texts.items())}];")
    names = [f'cause="{cause.name.lower()}"{_LOOKS[cause]}' for cause in Cause]
    lines += [
        f"  n{one} -- n{other} [{names[cause]}];"
        for one, other, cause in zip(first, second, causes, strict=True)
    ]
    return "\n".join([*lines, "}", ""])


def write_graphml(problem: Problem) -> str:
    """Format the interference graph as GraphML, if it has no more than `MOST_EDGES`."""
    first, second, causes = _list_edges(problem)
    keys = [("graph", name, "long") for name in _GRAPH]
    keys += [("node", name, "long" if name in _NUMBERS else "string") for name in _NODE]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            f'<key id="{name}" for="{owner}" attr.name="{name}" attr.type="{kind}"/>'
            for owner, name, kind in [*keys, ("edge", "cause", "string")]
        ),
        '<graph id="interference" edgedefault="undirected">',
        _data(_describe_graph(problem, len(first))),
    ]
    for row, node in enumerate(_describe_nodes(problem)):
        lines.append(f'<node id="n{row}">{_data(node)}</node>')
    names = [_data({"cause": cause.name.lower()}) for cause in Cause]
    lines += [
        f'<edge source="n{one}" target="n{other}">{names[cause]}</edge>'
        for one, other, cause in zip(first, second, causes, strict=True)
    ]
    return "\n".join([*lines, "</graph>", "</graphml>", ""])


def _list_edges(problem: Problem) -> tuple[list[int], list[int], list[int]]:
    edges = find_edges(problem, MOST_EDGES)
    return edges.first.tolist(), edges.second.tolist(), edges.cause.tolist()


def _describe_graph(problem: Problem, edges: int) -> dict[str, Value]:
    limit = {} if problem.capacity is None else {"capacity": problem.capacity}
    return {"buffers": len(problem), "edges": edges, "max_load": problem.max_load, **limit}


def _describe_nodes(problem: Problem) -> Iterator[dict[str, Value]]:
    """Yield the attributes of each node; what a buffer does not have is left out."""
    loads = Loads(problem)
    section = loads.peak_section
    held = {} if section is None else {each.id: each.bytes for each in loads.held(section)}
    gaps = _describe_gaps(problem)
    names = ("size", "start", "end", "alignment", "pin", "group")
    columns = (getattr(problem, name).tolist() for name in names)
    for row, (name, *values) in enumerate(zip(problem.ids, *columns, strict=True)):
        node: dict[str, Value] = {"label": _escape(name), **dict(zip(names, values, strict=True))}
        for optional in ("pin", "group"):
            if node[optional] == NONE:
                del node[optional]
        node["at_max_load"] = held.get(name, 0)
        if row in gaps:
            node["gaps"] = gaps[row]
        yield node


def _describe_gaps(problem: Problem) -> dict[int, str]:
    """Return the gaps of each buffer that has some, as CSV has them."""
    columns = (problem.gap_start, problem.gap_end, problem.gap_lower, problem.gap_upper)
    found: dict[int, str] = {}
    gaps = zip(*(column.tolist() for column in columns), strict=True)
    for row, gap in zip(problem.gap_buffer.tolist(), gaps, strict=True):
        start, end, lower, upper = gap
        text = format_gap(start, end, lower, upper, inclusive=False)
        found[row] = f"{found[row]} {text}" if row in found else text
    return found


def _escape(text: str) -> str:
    """Return printable text from which the original can be found again."""
    return "".join(
        c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text
    )


def _quote(text: str) -> str:
    r"""Return a string of DOT that is drawn as this text.

    Graphviz itself reads `\N` and the like in labels, and entities such as `&lt;`.
    """
    safe = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{safe}"'


def _data(values: dict[str, Value]) -> str:
    from xml.sax.saxutils import escape  # it loads what opens addresses of the web

    return "".join(
        f'<data key="{key}">{escape(value) if isinstance(value, str) else value}</data>'
        for key, value in values.items()
    )
