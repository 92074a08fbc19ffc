"""Flows in certificates: whether they keep to the capacities of a network, and how much they carry.

Node 0 of a network is the source, node 1 the sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from memplan.base.errors import ProofError
from memplan.problem.columns import Column

__all__ = ["SINK", "SOURCE", "find_reached", "measure_flow"]

SOURCE: Final = 0
SINK: Final = 1

Arc = tuple[int, int]


def find_reached(arcs: Sequence[Sequence[int]], start: int, last: float = inf) -> set[int]:
    """Return the operators that can be reached from one along arcs, up to number `last`."""
    found: set[int] = set()
    todo = [start]
    while todo:
        for other in arcs[todo.pop()]:
            if other <= last and other not in found:
                found.add(other)
                todo.append(other)
    return found


def measure_flow(flow: Column, capacity: Callable[[Arc], float | None], name: str) -> int:
    """Return what flows into the sink; a `ProofError` names what is wrong with the flow.

    The columns are: from a node, to a node, amount; an arc may have several rows. The capacity of
    an arc is infinite if it has no limit, and `None` if there is no such arc.
    """
    if flow.ndim != 2 or flow.shape[1] != 3 or flow.dtype.kind not in "iu":
        raise ProofError("the flow of a certificate must have three columns of whole numbers")
    carried: dict[Arc, int] = {}
    gained: dict[int, int] = {}
    for start, end, amount in flow.tolist():
        arc = f"from node {start} to node {end}"
        most = capacity((start, end))
        if most is None:
            raise ProofError(f"the network of {name} has no arc {arc}, on which the flow is")
        if amount < 0:
            raise ProofError(f"the flow {arc} is negative")
        carried[start, end] = carried.get((start, end), 0) + amount
        if carried[start, end] > most:
            raise ProofError(f"the flow {arc} is {carried[start, end]}, but at most {most} may be")
        gained[start] = gained.get(start, 0) - amount
        gained[end] = gained.get(end, 0) + amount
    for node, amount in gained.items():
        if amount and node not in (SOURCE, SINK):
            raise ProofError(f"the flow into node {node} is not the flow out of it")
    return gained.get(SINK, 0)
