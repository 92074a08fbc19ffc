"""Puts operators on streams, and adds the waits that operators need which write in place."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from memplan.base.errors import GraphError, quoted
from memplan.programs.graph import Graph, Kind, Operator
from memplan.programs.graph.order import waits
from memplan.programs.graph.sync import measure_freedom, synchronise

__all__ = ["order_writes", "spread"]


def spread(graph: Graph, streams: int) -> Graph:
    """Put the operators of a graph on streams; see `capture_inference`."""
    last: dict[int, int] = {}  # by stream: its last operator
    count = [0] * streams
    placed: list[Operator] = []
    arcs = waits(graph.operators, graph.views)
    for number, operator in enumerate(graph.operators):
        continued = [placed[o].stream for o in arcs[number] if last.get(placed[o].stream) == o]
        stream = continued[0] if continued else count.index(min(count))
        last[stream] = number
        count[stream] += 1
        placed.append(replace(operator, stream=stream))
    return replace(graph, operators=tuple(placed))


def order_writes(graph: Graph) -> Graph:
    """Let operators that write over an existing value wait for those that read the old one.

    Liveness keeps memory from being used twice, but it does not order the reads of a weight and its
    update on another stream. The waits are tensors of 0 bytes, as of `synchronise`. An operator
    that reads the old value after it was written over is refused.
    """
    root = _find_roots(graph)
    users: dict[int, set[int]] = defaultdict(set)
    for number, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            users[root[tensor]].add(number)
    freedom = measure_freedom(graph)
    arcs: dict[tuple[int, int], int] = {}  # by writer and stream: the last operator there
    for writer, operator in enumerate(graph.operators):
        results = set(operator.outputs)
        for storage in {root[tensor] for tensor in find_overwritten(graph, operator)}:
            for other in sorted(users[storage] - {writer}):
                one = graph.operators[other]
                if other > writer:
                    old = [t for t in one.inputs if root[t] == storage and t not in results]
                    if old and _is_update(operator):
                        name = quoted(graph.tensors[old[0]].name)
                        raise GraphError(
                            f"operator {quoted(operator.name)} writes over {name} before "
                            f"{quoted(one.name)} reads it; update it later"
                        )
                elif freedom.latest[writer, freedom.stream[other]] < freedom.place[other]:
                    arcs[writer, one.stream] = other
    return synchronise(graph, [(other, writer) for (writer, _), other in arcs.items()])


def find_overwritten(graph: Graph, operator: Operator) -> tuple[int, ...]:
    """Return the tensors with a value before the operator runs that it writes over."""
    if operator.type == "all_reduce":
        return operator.inputs
    if _is_update(operator):
        return tuple(i for i in operator.inputs if graph.tensors[i].kind is Kind.VARIABLE)
    state = {new: old for pair in graph.aliases for old, new in (pair, pair[::-1])}
    return tuple(state[index] for index in operator.outputs if index in state)


def _is_update(operator: Operator) -> bool:
    return operator.type in ("sgd", "adam", "aten.copy_")


def _find_roots(graph: Graph) -> list[int]:
    """Return by tensor one tensor that stands for its storage."""
    root = list(range(len(graph.tensors)))

    def find(index: int) -> int:
        while root[index] != index:
            index = root[index]
        return index

    pairs = [(view.tensor, view.base) for view in graph.views] + list(graph.aliases)
    for one, other in pairs:
        root[find(one)] = find(other)
    return [find(index) for index in root]
