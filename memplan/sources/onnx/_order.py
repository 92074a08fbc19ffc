"""Checks the names in a model: each is made once, before it is read."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator
from typing import Any

from memplan.errors import GraphError, quoted
from memplan.sources.onnx._types import tensor_type

__all__ = [
    "check_order",
    "check_texts",
    "drop_masks",
    "initializers",
    "subgraphs",
]


def subgraphs(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the graphs inside of a node, with the names of their attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def initializers(graph: Any) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return element type and shape of the weights of a graph, also of those stored sparsely."""
    found = {one.name: (one.data_type, tuple(one.dims)) for one in graph.initializer}
    for one in graph.sparse_initializer:
        found[one.values.name] = (one.values.data_type, tuple(one.dims))
    return found


def check_texts(graphs: Iterable[Any]) -> None:
    """Raise `GraphError` if a name is not valid text, which the parser does not check."""
    for graph in graphs:
        for text in _iterate_names(graph):
            if not isinstance(text, str):
                raise GraphError(f"a name in graph {quoted(str(graph.name))} is not UTF-8")
        check_texts(inner for node in graph.node for _, inner in subgraphs(node))


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


def check_order(graph: Any, outside: ChainMap[str, None] | None = None) -> None:
    """Raise `GraphError` unless every name is made once, before it is read."""
    known = ChainMap() if outside is None else outside.new_child()
    known.update(dict.fromkeys(initializers(graph)))
    known.update(dict.fromkeys(value.name for value in graph.input))
    makers = {name for node in graph.node for name in node.output}
    made: set[str] = set()
    for node in graph.node:
        where = f"operator {quoted(node.name or node.op_type)}"
        for name in node.input:
            if name and name not in known:
                raise GraphError(_explain_unknown(where, name, name in makers))
        for _, inner in subgraphs(node):
            check_order(inner, known)
        for name in filter(None, node.output):
            if name in made:
                raise GraphError(f"two operators make tensor {quoted(name)}")
            made.add(name)
            known[name] = None
    for value in graph.output:
        if value.name not in known:
            raise GraphError(
                f"no operator makes tensor {quoted(value.name)}, an output of graph "
                f"{quoted(graph.name)}"
            )


def _explain_unknown(where: str, name: str, made_later: bool) -> str:
    if made_later:
        return (
            f"{where} reads tensor {quoted(name)} before it is made: the operators are not in "
            "order, or form a cycle"
        )
    return f"no operator makes tensor {quoted(name)}, which {where} reads"


def drop_masks(graph: Any) -> None:
    """Remove the masks of dropouts that no operator reads: an inference does not make them."""
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    for node in graph.node:
        for _, inner in subgraphs(node):
            drop_masks(inner)
            read |= {name for one in inner.node for name in one.input}
    for node in graph.node:
        if node.op_type == "Dropout" and not read.intersection(node.output[1:]):
            del node.output[1:]
