"""Arcs between operators that wait for one another, and orders in which operators can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memplan.programs.graph.model import Operator, View

__all__ = ["Waits", "find_cycle", "in_order", "on_streams", "waits"]

Waits = list[dict[int, int]]
"""By operator: the operators that it waits for, each with the tensor that is the reason.

The tensor is -1 if the order on the stream is the reason. Only outermost operators are in it: one
with blocks begins when everything is there that is read inside.

"""


def waits(operators: Sequence[Operator], views: Iterable[View] = ()) -> Waits:
    """Return the arcs of a program: an operator waits for the makers of the tensors that it reads.

    If no operator makes a view, its readers wait for the maker of its base. The operators are the
    outermost ones, in any order.
    """
    base = {view.tensor: view.base for view in views}
    maker: dict[int, int] = {}
    for number, operator in enumerate(operators):
        for tensor in iterate_outputs(operator):
            maker.setdefault(tensor, number)
    arcs: Waits = []
    for number, operator in enumerate(operators):
        awaited: dict[int, int] = {}
        for tensor in _iterate_inputs(operator):
            root = tensor
            for _ in base:  # a limit, because views may form a cycle
                if root in maker or root not in base:
                    break
                root = base[root]
            if maker.get(root, number) != number:
                awaited.setdefault(maker[root], tensor)
        arcs.append(awaited)
    return arcs


def on_streams(operators: Sequence[Operator], arcs: Waits) -> Waits:
    """Return the arcs, plus one from each operator to the one before it on its stream."""
    last: dict[int, int] = {}
    both = []
    for number, (operator, awaited) in enumerate(zip(operators, arcs, strict=True)):
        before = last.get(operator.stream)
        both.append(awaited if before is None else {before: -1} | awaited)
        last[operator.stream] = number
    return both


def in_order(operators: tuple[Operator, ...], views: Iterable[View] = ()) -> tuple[Operator, ...]:
    """Sort operators into an order in which they can run one after the other.

    The order within a stream never changes, and an order that is valid already does not change at
    all. Operators on a cycle, or behind one, come last, in their given order.
    """
    if len({operator.stream for operator in operators}) < 2:
        return operators
    arcs = on_streams(operators, waits(operators, views))
    followers: list[list[int]] = [[] for _ in operators]
    for number, awaited in enumerate(arcs):
        for other in awaited:
            followers[other].append(number)
    missing = [len(awaited) for awaited in arcs]
    ready = [number for number, count in enumerate(missing) if count == 0]
    heapify(ready)
    order = []
    while ready:
        number = heappop(ready)  # the first in the file that can run
        order.append(number)
        for other in followers[number]:
            missing[other] -= 1
            if missing[other] == 0:
                heappush(ready, other)
    stuck = sorted(set(range(len(operators))) - set(order))
    return tuple(operators[number] for number in (*order, *stuck))


def find_cycle(arcs: Waits) -> list[int]:
    """Return operators on a cycle, each of which waits for the next; empty if there is none."""
    open_, done = 1, 2
    state = [0] * len(arcs)
    for start in range(len(arcs)):
        path: list[int] = []
        todo = [(start, iter(arcs[start]))] if state[start] == 0 else []
        while todo:
            number, others = todo[-1]
            if state[number] == 0:
                state[number] = open_
                path.append(number)
            other = next((n for n in others if state[n] != done), None)
            if other is None:
                state[number] = done
                path.pop()
                todo.pop()
            elif state[other] == open_:
                return path[path.index(other) :]
            else:
                todo.append((other, iter(arcs[other])))
    return []


def iterate_outputs(operator: Operator) -> Iterator[int]:
    """Yield the tensors that an operator makes, and those that are made inside its blocks."""
    yield from operator.outputs
    for block in operator.blocks:
        yield from block.inputs
        for inner in block.operators:
            yield from iterate_outputs(inner)


def _iterate_inputs(operator: Operator) -> Iterator[int]:
    """Yield the tensors that an operator reads, and those that are read inside its blocks."""
    yield from operator.inputs
    for block in operator.blocks:
        yield from block.outputs
        for inner in block.operators:
            yield from _iterate_inputs(inner)
