"""Finds what no program goes below that memplan knows how to make of a given one.

Orders, writes in place and bands change when tensors live, and how much of a picture there is at
one time. They leave alone

- an operator that can only be done as a whole: it holds what it reads and makes, all of it. One
  with blocks does not; the operators inside do;
- what the caller gives and gets: that is there before the first operator, and after the last one.
"""

from __future__ import annotations

from collections.abc import Iterable

from memplan.base.errors import quoted
from memplan.programs.graph import Graph, Kind, Layout, Operator, lay_out

__all__ = ["find_floor"]


def find_floor(graph: Graph) -> tuple[int, str]:
    """Return the floor of a program in bytes, without offsets in its file, and what holds it up."""
    layout = lay_out(graph, pins=False)
    storage_of = {tensor: row for row in layout.rows for tensor in layout.storages[row].tensors}
    ends = (
        (
            _add_up(graph, storage_of, graph.inputs),
            "the inputs of the model, which the caller sets",
        ),
        (_add_up(graph, storage_of, graph.outputs), "the results of the model, which it returns"),
    )
    best, why = max(ends, key=lambda each: each[0])
    for operator in graph.walk():
        # One with blocks takes steps: what it reads may be gone before its results are there.
        if operator.why_whole and not operator.blocks:
            size = _measure(layout, storage_of, operator)
            if size > best:
                best, why = size, _describe(operator)
    return best, why


def _measure(layout: Layout, storage_of: dict[int, int], operator: Operator) -> int:
    """Return what an operator holds at least while it runs as a whole."""
    graph = layout.graph
    held = _add_up(graph, storage_of, (*operator.inputs, *operator.outputs))
    shared: dict[int, int] = {}  # by output: what it may share with an input
    for source, result in operator.in_place:
        if storage_of.get(source) != storage_of.get(result) and {source, result} <= {*storage_of}:
            both = min(graph.tensors[source].bytes, graph.tensors[result].bytes)
            shared[result] = max(shared.get(result, 0), both)
    scratch = operator.workspace if Kind.WORKSPACE in graph.planned else 0
    return held + scratch - sum(shared.values())


def _add_up(graph: Graph, storage_of: dict[int, int], tensors: Iterable[int]) -> int:
    """Return the bytes of tensors in the arena; of those that share memory, the largest one."""
    sizes: dict[int, int] = {}
    for tensor in tensors:
        if tensor in storage_of:
            row = storage_of[tensor]
            sizes[row] = max(sizes.get(row, 0), graph.tensors[tensor].bytes)
    return sum(sizes.values())


def _describe(operator: Operator) -> str:
    name = f" {quoted(operator.name)}" if operator.name else ""
    return f"{operator.type}{name}, which can only be done as a whole: {operator.why_whole}"
