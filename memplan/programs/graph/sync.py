"""Synchronisation between streams: adds arcs, and measures how much freedom operators have left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from memplan.base.errors import GraphError
from memplan.programs.graph.layout import Layout
from memplan.programs.graph.model import Graph, Kind, Tensor
from memplan.programs.graph.order import on_streams, waits
from memplan.programs.graph.steps import latest_ancestors, places

__all__ = ["Freedom", "find_users", "measure_freedom", "synchronise"]


def synchronise(graph: Graph, arcs: Iterable[tuple[int, int]]) -> Graph:
    """Return a graph with more arcs: for each, a tensor of 0 bytes that `before` makes.

    The second of a pair of outermost operators, by index, waits for the first, which has to come
    before it in the graph.
    """
    tensors, operators = list(graph.tensors), list(graph.operators)
    names = {tensor.name for tensor in tensors}
    for before, after in arcs:
        if not 0 <= before < after < len(operators):
            raise GraphError(
                f"operator {after} cannot wait for operator {before}: there are "
                f"{len(operators)}, and the first of a pair must come before the second"
            )
        name = f"sync {before} -> {after}"
        while name in names:
            name += "'"
        names.add(name)
        index = len(tensors)
        tensors.append(Tensor(name, 0, Kind.INTERMEDIATE))
        maker, reader = operators[before], operators[after]
        operators[before] = replace(maker, outputs=(*maker.outputs, index))
        operators[after] = replace(reader, inputs=(*reader.inputs, index))
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


@dataclass(frozen=True, eq=False)
class Freedom:
    """How free the operators of a program are to run at the same time.

    Attributes
    ----------
    stream, place
        By operator: the number of its stream, from 0, and its place there, from 1.
    latest
        By operator and stream: the place there of the last operator that is over before it, or 0.
    pairs
        How many pairs of operators can run at the same time.
    chain
        The length of the longest chain of operators, each of which waits for the one before.
    """

    stream: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    latest: npt.NDArray[np.int32]
    pairs: int
    chain: int


def measure_freedom(graph: Graph) -> Freedom:
    """Return which outermost operators wait for which others, and how many can run at once."""
    operators = graph.operators
    numbers = {number: at for at, number in enumerate(sorted({one.stream for one in operators}))}
    stream = np.array([numbers[one.stream] for one in operators], dtype=np.int32)
    counts = np.bincount(stream, minlength=len(numbers)).tolist()
    arcs = waits(operators, graph.views)
    pairs = [(other, number) for number, awaited in enumerate(arcs) for other in awaited]
    arc = np.array(pairs, dtype=np.int32).reshape(-1, 2).T.copy()
    latest = latest_ancestors(stream, arc)
    elsewhere = np.arange(len(numbers)) != stream[:, None]
    # Operators of a stream are ordered, so the ancestors of one on another stream are a prefix.
    ordered = int(latest[elsewhere].sum(dtype=np.int64))
    apart = (len(operators) ** 2 - sum(count**2 for count in counts)) // 2
    longest: list[int] = []
    for awaited in on_streams(operators, arcs):
        longest.append(1 + max((longest[other] for other in awaited), default=0))
    return Freedom(stream, places(stream), latest, apart - ordered, max(longest, default=0))


def find_users(layout: Layout) -> list[list[int]]:
    """Return for each row of the problem the outermost operators that make or read it, in order."""
    row_of: dict[int, int] = {}
    at_work: dict[int, int] = {}  # by first step of an operator with a workspace: the row of that
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        row_of.update(dict.fromkeys(storage.tensors, row))
        if not storage.tensors:
            at_work[storage.start] = row
    found: list[set[int]] = [set() for _ in layout.rows]
    spans = iter(layout.lives.spans)
    for number, outer in enumerate(layout.graph.operators):
        for operator in outer.walk():
            start, _ = next(spans)
            blocks = ((*block.inputs, *block.outputs) for block in operator.blocks)
            for tensor in chain(operator.inputs, operator.outputs, *blocks):
                if tensor in row_of:
                    found[row_of[tensor]].add(number)
            if operator.workspace and start in at_work:
                found[at_work[start]].add(number)
    return [sorted(operators) for operators in found]
