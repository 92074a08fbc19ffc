"""Puts the operators of an ONNX file into another order.

The file is rewritten byte by byte: the operators change places, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from memplan.base.errors import FormatError
from memplan.programs.graph import Graph, Operator
from memplan.programs.sources.wire import Field, WireError, iterate_fields
from memplan.runtimes.sorting import sort_by_rank

__all__ = ["write_order"]

# The numbers of fields in onnx.proto.
_GRAPH, _FUNCTION = 7, 25  # of a model
_STEP = 7  # of a function: a node
_NODE, _RESULT = 1, 12  # of a graph
_INPUT, _OUTPUT, _NAME, _TYPE, _ATTRIBUTE = 1, 2, 3, 4, 5  # of a node
_INNER = (6, 11)  # of an attribute: its graphs
_LABEL = 1  # of an attribute, and of a result: its name


def write_order(data: bytes, name: str, graph: Graph) -> bytes:
    """Return a file with its operators in the order that they have in its graph."""
    try:
        return _permute_model(data, _rank_results(graph))
    except WireError as error:
        raise FormatError(name, f"the file {error}") from None


def _rank_results(graph: Graph) -> dict[str, int]:
    """Return the place of the operator that makes each tensor, by its name."""
    rank: dict[str, int] = {}

    def visit(operators: Iterable[Operator]) -> None:
        for operator in operators:
            for tensor in operator.outputs:
                rank[graph.tensors[tensor].name] = len(rank)
            for block in operator.blocks:
                visit(block.operators)

    visit(graph.operators)
    return rank


class _Node(NamedTuple):
    """An operator in the file: its bytes, its place in the new order, and what it reads and makes.

    The place is -1 for what has none as it is done before the run.
    """

    data: bytes
    rank: int
    reads: frozenset[str]
    makes: tuple[str, ...]


def _permute_model(data: bytes, rank: Mapping[str, int]) -> bytes:
    graphs = 0
    pieces = []
    at = 0
    for field in iterate_fields(data, 0, len(data)):
        if field.number not in (_GRAPH, _FUNCTION):
            continue
        graphs += field.number == _GRAPH
        body = data[field.body : field.end]
        if field.number == _GRAPH:
            body, _ = _permute_graph(body, rank, "")
        else:  # its operators stay as they are where they can run so
            body, _ = _permute_graph(body, {}, "", _STEP)
        pieces += [data[at : field.body], body]
        at = field.end
    if graphs != 1:
        raise WireError(f"has {graphs} graphs; it must have one")
    return b"".join([*pieces, data[at:]])


def _permute_graph(
    data: bytes, rank: Mapping[str, int], path: str, number: int = _NODE
) -> tuple[bytes, set[str]]:
    """Return a graph of the same length with its operators in order, and the names it reads.

    `number` is that of the field with an operator.
    """
    slots = []
    reads: set[str] = set()
    for field in iterate_fields(data, 0, len(data)):
        if field.number == number:
            slots.append(field)
        elif field.number == _RESULT:
            reads.update(_iterate_texts(data, field.body, field.end, _LABEL))
    nodes = [_read_node(data, slot, rank, path) for slot in slots]
    pieces = []
    at = 0
    for slot, node in zip(slots, _sort(nodes), strict=True):
        pieces += [data[at : slot.start], node.data]
        at = slot.end
    return b"".join([*pieces, data[at:]]), reads.union(*(node.reads for node in nodes))


def _read_node(data: bytes, slot: Field, rank: Mapping[str, int], path: str) -> _Node:
    """Read an operator; the graphs inside of it are put into order."""
    texts = {
        number: tuple(_iterate_texts(data, slot.body, slot.end, number))
        for number in (_INPUT, _OUTPUT, _NAME, _TYPE)
    }
    name = next(filter(None, texts[_NAME] + texts[_TYPE]), "")
    reads = set(texts[_INPUT])
    pieces = []
    at = slot.start
    for attribute in iterate_fields(data, slot.body, slot.end):
        if attribute.number != _ATTRIBUTE:
            continue
        label = next(_iterate_texts(data, attribute.body, attribute.end, _LABEL), "")
        for inner in iterate_fields(data, attribute.body, attribute.end):
            if inner.number in _INNER:
                below = f"{path}{name}.{label}/"  # as the reader calls equal names in branches
                graph, names = _permute_graph(data[inner.body : inner.end], rank, below)
                reads |= names
                pieces += [data[at : inner.body], graph]
                at = inner.end
    pieces.append(data[at : slot.end])
    makes = texts[_OUTPUT]
    place = min((rank.get(path + each, rank.get(each, -1)) for each in makes if each), default=-1)
    return _Node(b"".join(pieces), place, frozenset(reads), makes)


def _iterate_texts(data: bytes, begin: int, end: int, number: int) -> Iterator[str]:
    for field in iterate_fields(data, begin, end):
        if field.number == number:
            yield data[field.body : field.end].decode()


def _sort(nodes: list[_Node]) -> list[_Node]:
    """Return operators by rank, each as soon as what it reads is there."""
    maker = {name: at for at, node in enumerate(nodes) for name in node.makes if name}
    awaited = [
        {maker[name] for name in node.reads if name in maker} - {at}
        for at, node in enumerate(nodes)
    ]
    return [nodes[at] for at in sort_by_rank([node.rank for node in nodes], awaited)]
