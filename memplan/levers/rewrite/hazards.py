"""Which operators keep their order because they write to memory that others use.

Usually one operator makes a tensor, and those that read it wait for it. Where several write to one
piece of memory (updates in place, state, parts of a buffer, values that a loop carries), a reader
stays between the writes around it, and writes to the same bytes keep their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from memplan.programs.graph import Graph, Kind, Layout, Operator
from memplan.programs.graph.updates import updates
from memplan.programs.sources.dialects import find_state, is_view

__all__ = ["Use", "find_uses", "hazards"]


@dataclass(frozen=True, slots=True)
class Use:
    """An operator that reads or writes the bytes `[lower, upper)` of a storage."""

    operator: int
    lower: int
    upper: int
    writes: bool


def hazards(layout: Layout, operators: Sequence[Operator]) -> Iterator[tuple[int, int]]:
    """Yield pairs of operators, by place, of which the second has to wait for the first.

    The layout has no in-place writes. The operators run one after the other: they are the outermost
    ones, or those of a block.
    """
    made = {
        tensor for operator in operators for inner in operator.walk() for tensor in inner.outputs
    }
    for number, found in find_uses(layout, operators).items():
        writers = {use.operator for use in found if use.writes}
        storage = layout.storages[number]
        is_state = storage.kind is not Kind.INTERMEDIATE or not made.issuperset(storage.tensors)
        if len(writers) > 1 or (writers and is_state):
            yield from _conflicts(found)


def find_uses(layout: Layout, operators: Sequence[Operator]) -> dict[int, list[Use]]:
    """Return by storage of a layout without in-place writes which operators read or write it."""
    graph = layout.graph
    place: dict[int, tuple[int, int]] = {}
    for number, storage in enumerate(layout.storages):
        for tensor, offset in zip(storage.tensors, storage.offsets, strict=True):
            place[tensor] = (number, offset)
    declared = {view.tensor for view in graph.views}
    uses: dict[int, list[Use]] = defaultdict(list)
    for at, operator in enumerate(operators):
        for tensor, writes in _uses(graph, operator, place, declared):
            if tensor in place:
                number, lower = place[tensor]
                use = Use(at, lower, lower + graph.tensors[tensor].bytes, writes)
                uses[number].append(use)
    return uses


def _conflicts(uses: Sequence[Use]) -> Iterator[tuple[int, int]]:
    """Yield each pair of operators of which one writes bytes that the other uses."""
    for at, use in enumerate(uses):
        for other in uses[:at]:
            if other.operator == use.operator or not (use.writes or other.writes):
                continue
            if use.lower < other.upper and other.lower < use.upper:
                yield other.operator, use.operator


def _uses(
    graph: Graph, operator: Operator, place: dict[int, tuple[int, int]], declared: Set[int]
) -> Iterator[tuple[int, bool]]:
    """Yield the tensors that an operator and its blocks use, and whether they are written."""
    for inner in operator.walk():
        state = find_state(graph, inner)
        overwrites = updates(inner)
        for tensor in inner.inputs:
            yield tensor, tensor in state or overwrites
        read = {place[tensor][0] for tensor in inner.inputs if tensor in place}
        for tensor in inner.outputs:
            views = is_view(graph, inner, tensor in declared)
            yield tensor, not (views and tensor in place and place[tensor][0] in read)
        for block in inner.blocks:
            yield from ((tensor, True) for tensor in block.inputs)
            yield from ((tensor, False) for tensor in block.outputs)
