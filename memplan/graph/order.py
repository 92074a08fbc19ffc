"""Who waits for whom: the arcs between operators, and orders in which they can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memplan.graph.model import Operator, View

__all__ = ["Waits", "circle", "in_order", "on_streams", "waits"]

Waits = list[dict[int, int]]
"""By operator: whom it waits for, and the tensor that it waits for, or -1 for its stream's order.

Only outermost operators: one with blocks begins when there is all that is read inside.
"""


def waits(operators: Sequence[Operator], views: Iterable[View] = ()) -> Waits:
    """Return the arcs of a program: who reads a tensor waits for its maker.

    Who reads a view that nobody makes waits for the maker of its base.

    Parameters
    ----------
    operators
        The outermost ones, in any order.
    views
        Of the graph.
    """
    base = {view.tensor: view.base for view in views}
    maker: dict[int, int] = {}
    for number, operator in enumerate(operators):
        for tensor in made(operator):
            maker.setdefault(tensor, number)
    arcs: Waits = []
    for number, operator in enumerate(operators):
        awaited: dict[int, int] = {}
        for tensor in _read(operator):
            source = tensor
            for _ in base:  # no further, should the views run in a circle
                if source in maker or source not in base:
                    break
                source = base[source]
            if maker.get(source, number) != number:
                awaited.setdefault(maker[source], tensor)
        arcs.append(awaited)
    return arcs


def on_streams(operators: Sequence[Operator], arcs: Waits) -> Waits:
    """Return the arcs, and with them that every operator waits for the one before on its stream."""
    last: dict[int, int] = {}
    both = []
    for number, (operator, awaited) in enumerate(zip(operators, arcs, strict=True)):
        before = last.get(operator.stream)
        both.append(awaited if before is None else {before: -1} | awaited)
        last[operator.stream] = number
    return both


def in_order(operators: tuple[Operator, ...], views: Iterable[View] = ()) -> tuple[Operator, ...]:
    """Return operators in an order in which they can run one after the other.

    The order within every stream stays, and so does the whole of it where it is good. Operators
    that wait for themselves, directly or through others, come last, as they are.
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


def circle(arcs: Waits) -> list[int]:
    """Return operators of which each waits for the next, and the last for the first; or nobody."""
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


def made(operator: Operator) -> Iterator[int]:
    """Yield what an operator makes, and what is made inside of it."""
    yield from operator.outputs
    for block in operator.blocks:
        yield from block.inputs
        for inner in block.operators:
            yield from made(inner)


def _read(operator: Operator) -> Iterator[int]:
    """Yield what an operator reads, and what is read inside of it."""
    yield from operator.inputs
    for block in operator.blocks:
        yield from block.outputs
        for inner in block.operators:
            yield from _read(inner)
