"""Writes an ONNX model with its operators in the order with the least load.

    found = memplan.targets.onnx.reorder("model.onnx", "ordered.onnx")

Onnxruntime runs the operators in the order of the file only if it is told to:

    options = onnxruntime.SessionOptions()
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED

The file is rewritten byte by byte: the operators change places, and nothing else changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import NamedTuple

from memplan.errors import FormatError
from memplan.files import read_bytes as read_file
from memplan.files import write_files
from memplan.graph import Operator
from memplan.notes import Code
from memplan.rewrite import Reordered
from memplan.rewrite import reorder as find_order
from memplan.sources import Loaded
from memplan.sources.onnx import read, read_bytes
from memplan.sources.options import Options
from memplan.sources.wire import Field, WireError, iterate_fields

__all__ = ["HOW_TO_RUN", "reorder", "reorder_bytes", "write_order"]

HOW_TO_RUN = (
    "set SessionOptions.execution_order = ExecutionOrder.PRIORITY_BASED: onnxruntime keeps no "
    "order of a file without it"
)

# The numbers of fields in onnx.proto.
_GRAPH, _FUNCTION = 7, 25  # of a model
_STEP = 7  # of a function: a node
_NODE, _RESULT = 1, 12  # of a graph
_INPUT, _OUTPUT, _NAME, _TYPE, _ATTRIBUTE = 1, 2, 3, 4, 5  # of a node
_INNER = (6, 11)  # of an attribute: its graphs
_LABEL = 1  # of an attribute, and of a result: its name


def reorder(
    path: Path | str,
    out: Path | str,
    options: Options | None = None,
    *,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
) -> Reordered:
    """Write a model with its operators in the order with the least load.

    Weights, names and everything else stay, and weights in other files are not touched: `out`
    belongs into the folder of `path` if there are any.

    Parameters
    ----------
    path, out
        The model, and the file to write; it may be the same.
    options
        See `memplan.load`: dimensions, kinds of tensors. Operators write over inputs that are not
        needed any more, as they do in onnxruntime.
    timeout, states, pure
        As of `memplan.reorder`.

    Raises
    ------
    FormatError
        If the file is no model, or its operators cannot be put into the order: nothing is written.
    MemplanError
        As `memplan.reorder`, and if the library `onnx` is missing.
    """
    found, data = reorder_bytes(Path(path), options, timeout=timeout, states=states, pure=pure)
    write_files({str(out): data})
    return found


def reorder_bytes(
    path: Path,
    options: Options | None = None,
    *,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
) -> tuple[Reordered, bytes]:
    """Return what `reorder` finds, and the bytes of the file that it writes."""
    asked = replace(options or Options(), in_place=True, runtime_order=False)
    found = find_order(
        read(path, asked),
        in_place=True,
        timeout=timeout,
        states=states,
        pure=pure,
    )
    data = read_file(path)
    given = found.given.graph
    is_sorted = all(note.code is not Code.OPERATORS_SORTED for note in found.loaded.notes)
    if given is not None and found.graph.operators == given.operators and is_sorted:
        return found, data
    written, _ = write_order(data, found, path, asked)
    return found, written


def write_order(data: bytes, found: Reordered, path: Path, asked: Options) -> tuple[bytes, Loaded]:
    """Return a file with its operators in the order that was found, and what it is read as.

    Raises
    ------
    FormatError
        If its operators cannot be put into the order, or need more in it than was found.
    """
    try:
        written = _permute_model(data, _rank_results(found))
    except WireError as error:
        raise FormatError(str(path), f"the file {error}") from None
    loaded = read_bytes(written, path, asked)
    if loaded.problem.max_load != found.peak:
        raise FormatError(
            str(path),
            f"the order needs {found.peak} bytes, but {loaded.problem.max_load} as an order of the "
            "nodes in the file: inline the functions of the model first",
        )
    return written, loaded


def _rank_results(found: Reordered) -> dict[str, int]:
    """Return the place of the operator that makes each tensor, by its name."""
    rank: dict[str, int] = {}

    def visit(operators: Iterable[Operator]) -> None:
        for operator in operators:
            for tensor in operator.outputs:
                rank[found.graph.tensors[tensor].name] = len(rank)
            for block in operator.blocks:
                visit(block.operators)

    visit(found.graph.operators)
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
    followers = defaultdict(list)
    missing = []
    for at, node in enumerate(nodes):
        awaited = {maker[name] for name in node.reads if name in maker} - {at}
        missing.append(len(awaited))
        for other in awaited:
            followers[other].append(at)

    ready = [(nodes[at].rank, at) for at in range(len(nodes)) if not missing[at]]
    heapify(ready)
    order = []
    while ready:
        _, at = heappop(ready)
        order.append(nodes[at])
        for other in followers[at]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (nodes[other].rank, other))
    return order
