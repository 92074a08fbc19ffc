"""What a program reads and writes of each buffer, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memplan.errors import quoted
from memplan.graph import Graph, Kind, Operator
from memplan.graph.layout import Layout
from memplan.problem import Problem
from memplan.solvers.limits import MAX_COUNT, check_whole
from memplan.sources import Loaded

__all__ = ["Access", "count_bytes", "find_accesses"]


@dataclass(frozen=True, slots=True)
class Access:
    """One step of a program reads or writes bytes of a buffer.

    Attributes
    ----------
    time
        The step, within the lifetime of the buffer.
    read, written
        Bytes. A step that reads and writes the same buffer has one access for both.
    """

    time: int
    read: int
    written: int


def count_bytes(
    loaded: Loaded, accesses: Mapping[str, tuple[int, int]] | None
) -> list[tuple[int, int]]:
    """Return how many bytes of each row are read and written in a run.

    Parameters
    ----------
    loaded
        The problem, with its program where it has one.
    accesses
        By id: how often all bytes of the buffer are read, and written, instead of what the program
        says. Without a program, each buffer is written once and read once by default.
    """
    problem = loaded.problem
    if loaded.layout is None:
        found = [(size, size) for size in problem.size.tolist()]
    else:
        found = [
            (sum(each.read for each in row), sum(each.written for each in row))
            for row in find_accesses(loaded.layout)
        ]
    for id, times in (accesses or {}).items():
        row = problem.index(id)
        reads, writes = _check_times(problem, row, times)
        size = int(problem.size[row])
        found[row] = (size * reads, size * writes)
    return found


def _check_times(problem: Problem, row: int, times: tuple[int, int]) -> tuple[int, int]:
    label = quoted(problem.ids[row])
    reads, writes = times
    return (
        check_whole(reads, f"the number of reads of {label}", 0, MAX_COUNT),
        check_whole(writes, f"the number of writes of {label}", 0, MAX_COUNT),
    )


def find_accesses(layout: Layout) -> list[tuple[Access, ...]]:
    """Return the accesses to each row of a layout, by time.

    Each operator that reads a tensor reads its bytes once, and each that makes it writes them once;
    so does the caller with what goes in and out, and an operator with its workspace. What a loop
    does counts once. An operator that only gives its input another name touches nothing.
    """
    graph = layout.graph
    row_of = {
        tensor: at for at, row in enumerate(layout.rows) for tensor in layout.storages[row].tensors
    }
    found: list[dict[int, list[int]]] = [{} for _ in layout.rows]

    def note(tensor: int, time: int, side: int) -> None:
        if tensor in row_of:
            at = found[row_of[tensor]].setdefault(time, [0, 0])
            at[side] += graph.tensors[tensor].bytes

    for operator, (begin, end) in zip(graph.walk(), layout.lives.spans, strict=True):
        if _is_view(graph, operator):
            continue
        reads, writes = _list_tensors(operator)
        for tensor, is_first in reads:
            note(tensor, begin if is_first else end - 1, 0)
        for tensor, is_first in writes:
            note(tensor, begin if is_first else end - 1, 1)
    for tensor in graph.inputs:
        note(tensor, layout.lives.start[tensor], 1)
    for tensor in graph.outputs:
        note(tensor, layout.lives.end[tensor] - 1, 0)
    for at, row in enumerate(layout.rows):
        storage = layout.storages[row]
        if storage.workspace_of is not None:
            found[at] = {storage.start: [storage.bytes, storage.bytes]}
    return [
        tuple(Access(time, *both) for time, both in sorted(each.items()) if any(both))
        for each in found
    ]


def _list_tensors(operator: Operator) -> tuple[set[tuple[int, bool]], set[tuple[int, bool]]]:
    """Return what an operator reads and writes, each with whether that is when it begins."""
    reads = {(tensor, True) for tensor in operator.inputs}
    writes = {(tensor, False) for tensor in operator.outputs}
    for block in operator.blocks:  # it copies what goes into a block, and what comes out
        writes.update((tensor, True) for tensor in block.inputs)
        reads.update((tensor, False) for tensor in block.outputs)
    return reads, writes


def _is_view(graph: Graph, operator: Operator) -> bool:
    """Return whether all that an operator makes lies in what it reads."""
    base = {view.tensor: view.base for view in graph.views}

    def chain(tensor: int) -> Iterator[int]:
        while tensor in base:
            tensor = base[tensor]
            yield tensor

    made = [tensor for tensor in operator.outputs if graph.tensors[tensor].kind != Kind.WORKSPACE]
    return bool(made) and all(
        any(tensor in operator.inputs for tensor in chain(each)) for each in made
    )
