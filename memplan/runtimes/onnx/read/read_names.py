"""Checks the names in a model: each is made once. Puts operators behind what they read."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from memplan.base.errors import GraphError, listed, quoted
from memplan.base.notes import Code, Note
from memplan.runtimes.onnx.read.protos import (
    initializers,
    subgraphs,
    tensor_type,
    walk_graphs,
    walk_nodes,
)

__all__ = [
    "check_order",
    "check_texts",
    "drop_masks",
    "name_apart",
    "sort_operators",
]


def check_texts(graphs: Iterable[Any]) -> None:
    """Raise `GraphError` if a name is not valid text, which the parser does not check."""
    for graph in (inner for one in graphs for inner in walk_graphs(one)):
        for text in _iterate_names(graph):
            if not isinstance(text, str):
                raise GraphError(f"a name in graph {quoted(str(graph.name))} is not UTF-8")


def _iterate_names(graph: Any) -> Iterator[object]:
    """Yield the names in a graph (or function), but not those in graphs inside."""
    yield graph.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    if not hasattr(graph, "initializer"):  # a function: its inputs are mere names
        yield from (graph.domain, *graph.input, *graph.output)
        return
    yield from initializers(graph)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        one = tensor_type(value.type)
        yield from (dim.dim_param for dim in one.shape.dim) if one is not None else ()


def sort_operators(model: Any) -> tuple[Note, ...]:
    """Put the operators of a model behind what they read, also in sub-graphs and functions.

    Operators that are in order already stay as they are; of those that can run, the first one of
    the file comes first, as in onnxruntime. A cycle is refused; there is a note where operators
    moved.
    """
    moved: list[str] = []
    for graph in (model.graph, *model.functions):
        _sort_graph(graph, moved)
    if not moved:
        return ()
    text = f"operators come before those that they read from, and are sorted: graph {listed(moved)}"
    return (Note(Code.OPERATORS_SORTED, text),)


def _sort_graph(graph: Any, moved: list[str]) -> set[str]:
    """Sort a graph (or function) and those inside, and return the names that it reads."""
    reads: list[set[str]] = []
    for node in graph.node:
        read = set(node.input)
        for _, inner in subgraphs(node):
            read |= _sort_graph(inner, moved)
        reads.append(read)
    given = {"", *_list_given(graph)}
    makers = {
        name: at for at, node in enumerate(graph.node) for name in node.output if name not in given
    }
    awaited = [{makers[name] for name in read if name in makers} for read in reads]
    if any(other >= at for at, others in enumerate(awaited) for other in others):
        ranks = iter(_rank(graph, awaited))
        graph.node.sort(key=lambda node: next(ranks))  # it is called once for each, in order
        moved.append(graph.name)
    return set().union(*reads) - makers.keys() - given


def _list_given(graph: Any) -> set[str]:
    """Return the names of a graph (or function) that no operator of it makes."""
    if not hasattr(graph, "initializer"):  # a function: its inputs are mere names
        return set(graph.input)
    return {value.name for value in graph.input} | initializers(graph).keys()


def _rank(graph: Any, awaited: list[set[int]]) -> list[int]:
    """Return the place of each operator in an order in which all can run."""
    followers = defaultdict(list)
    missing = [len(others) for others in awaited]
    for at, others in enumerate(awaited):
        for other in others:
            followers[other].append(at)
    ready = [at for at, count in enumerate(missing) if not count]
    heapify(ready)
    ranks, place = [-1] * len(missing), 0
    while ready:
        at = heappop(ready)
        ranks[at], place = place, place + 1
        for other in followers[at]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, other)
    if place < len(ranks):
        raise GraphError(_explain_cycle(graph, awaited, ranks))
    return ranks


def _explain_cycle(graph: Any, awaited: list[set[int]], ranks: list[int]) -> str:
    """Name the operators of one cycle: each of those left waits for another one of them."""
    at = ranks.index(-1)
    path: dict[int, None] = {}
    while at not in path:
        path[at] = None
        at = next(other for other in awaited[at] if ranks[other] < 0)
    cycle = list(path)[list(path).index(at) :]
    names = [graph.node[one].name or graph.node[one].op_type for one in reversed(cycle)]
    if len(names) == 1:
        return f"operator {quoted(names[0])} reads its own result"
    return f"operators form a cycle, each reads from the one before it: {listed(names)}"


def check_order(graph: Any, outside: ChainMap[str, None] | None = None) -> None:
    """Raise `GraphError` unless every name is made once, before it is read."""
    known = ChainMap() if outside is None else outside.new_child()
    inputs = [value.name for value in graph.input]
    if len(set(inputs)) < len(inputs):
        twice = next(name for name in inputs if inputs.count(name) > 1)
        raise GraphError(f"graph {quoted(graph.name)} has two inputs {quoted(twice)}")
    given = {*initializers(graph), *inputs}
    known.update(dict.fromkeys(given))
    made: set[str] = set()
    for node in graph.node:
        where = f"operator {quoted(node.name or node.op_type)}"
        for name in node.input:
            if name and name not in known:
                raise GraphError(f"no operator makes tensor {quoted(name)}, which {where} reads")
        for _, inner in subgraphs(node):
            check_order(inner, known)
        for name in filter(None, node.output):
            if name in made:
                raise GraphError(f"two operators make tensor {quoted(name)}")
            if name in given or (outside is not None and name in outside):
                place = "an input or a weight" if name in given else "there outside"
                raise GraphError(
                    f"{where} in graph {quoted(graph.name)} makes tensor {quoted(name)}, which is "
                    f"{place} of this graph: ONNX and onnxruntime allow it once; rename it"
                )
            made.add(name)
            known[name] = None
    for value in graph.output:
        if value.name not in known:
            raise GraphError(
                f"no operator makes tensor {quoted(value.name)}, an output of graph "
                f"{quoted(graph.name)}"
            )


def name_apart(graph: Any, outside: frozenset[str] = frozenset(), path: str = "") -> frozenset[str]:
    """Give tensors of sub-graphs names that no tensor around them has; return all that are known.

    As in onnxruntime, inputs and weights of a sub-graph may hide a tensor of the same name, and
    what its operators make may have the name of a tensor that is made later outside. The library
    takes such tensors for one. `path` leads to the graph, and becomes a part of the new names.
    """
    known = outside.union(initializers(graph), _iterate_own(graph))
    for node in graph.node:
        for attribute, inner in subgraphs(node):
            below = f"{path}{node.name or node.op_type}.{attribute}/"
            own = {*initializers(inner), *_iterate_own(inner)}
            new = {}
            for name in sorted(own & known):
                new[name] = below + name
                while new[name] in known or new[name] in own:
                    new[name] += "'"
            if new:
                _rename(inner, new)
            name_apart(inner, known, below)
    return known


def _iterate_own(graph: Any) -> Iterator[str]:
    """Yield the names of the inputs of a graph, and of what its operators make."""
    yield from (value.name for value in graph.input)
    for node in graph.node:
        yield from filter(None, node.output)


def _rename(graph: Any, new: dict[str, str]) -> None:
    """Give tensors new names in a graph, and in those inside that have none of the same name."""
    for one in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
        one.name = new.get(one.name, one.name)
    for one in graph.sparse_initializer:
        one.values.name = new.get(one.values.name, one.values.name)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        for _, inner in subgraphs(node):
            hidden = {*initializers(inner), *_iterate_own(inner)}
            _rename(inner, {name: to for name, to in new.items() if name not in hidden})


def drop_masks(graph: Any) -> None:
    """Remove the masks of dropouts that no operator reads: an inference does not make them."""
    read = {name for node in walk_nodes(graph) for name in node.input}
    read |= {value.name for one in walk_graphs(graph) for value in one.output}
    for node in walk_nodes(graph):
        if node.op_type == "Dropout" and not read.intersection(node.output[1:]):
            del node.output[1:]
