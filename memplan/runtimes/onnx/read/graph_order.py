"""The order in which onnxruntime runs operators, unless it is told to keep that of the file.

`ExecutionOrder.DEFAULT` is a depth-first walk against the arcs, from the operators that no other
one reads, the last in the file first. An operator runs when the walk leaves it (`ReverseDFSFrom`
and `NodeCompare` in `core/graph/graph.cc` and `graph_viewer.cc`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memplan.programs.graph import Block, Graph, Operator, View
from memplan.programs.graph.order import waits

__all__ = ["in_runtime_order", "walk_back"]


def in_runtime_order(graph: Graph) -> Graph:
    """Return a graph with its operators, also those in blocks, in the order of the runtime."""
    return replace(graph, operators=_sort(graph.operators, graph.views))


def walk_back(arcs: Sequence[Iterable[int]]) -> list[int]:
    """Return the order in which the runtime runs nodes, by what each of them waits for."""
    read = {other for awaited in arcs for other in awaited}
    stack = [(number, False) for number in range(len(arcs)) if number not in read]
    seen: set[int] = set()
    order = []
    while stack:
        number, leaves = stack.pop()
        if leaves:
            order.append(number)
        elif number not in seen:
            seen.add(number)
            stack.append((number, True))
            stack += [(other, False) for other in sorted(arcs[number]) if other not in seen]
    return order


def _sort(operators: tuple[Operator, ...], views: Iterable[View]) -> tuple[Operator, ...]:
    order = walk_back(waits(operators, views))
    return tuple(_with_blocks(operators[number], views) for number in order)


def _with_blocks(operator: Operator, views: Iterable[View]) -> Operator:
    def sort(block: Block) -> Block:
        return replace(block, operators=_sort(block.operators, views))

    return replace(operator, blocks=tuple(map(sort, operator.blocks)))
