"""What a program reads and writes of each buffer, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from memplan.errors import MemplanError, quoted, shown
from memplan.graph import Graph, Kind, Operator
from memplan.graph.layout import Layout
from memplan.problem import Problem
from memplan.solvers.limits import MAX_COUNT, check_whole
from memplan.sources import Loaded

__all__ = ["Access", "Given", "count_bytes", "find_accesses", "list_accesses", "sum_bytes"]


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


Given = tuple[int, int] | Sequence[tuple[int, int, int]]  # of a buffer, as the caller says it


def count_bytes(loaded: Loaded, accesses: Mapping[str, Given] | None) -> list[tuple[int, int]]:
    """Return how many bytes of each row are read and written in a run.

    Parameters
    ----------
    loaded
        The problem, with its program where it has one.
    accesses
        By id: how often all bytes of the buffer are read, and written, instead of what the program
        says; or a list with the same for each time. Without a program, each buffer is written once
        and read once by default.
    """
    problem, given = loaded.problem, accesses or {}
    timed = {id: each for id, each in given.items() if _is_timed(each)}
    found = sum_bytes(list_accesses(loaded, timed))
    for id, times in given.items():
        if id not in timed:
            row = problem.index(id)
            reads, writes = _check_times(problem, row, times)
            size = int(problem.size[row])
            found[row] = (size * reads, size * writes)
    return found


def sum_bytes(accesses: Iterable[Sequence[Access]]) -> list[tuple[int, int]]:
    """Return how many bytes of each row all accesses to it read and write."""
    return [(sum(each.read for each in row), sum(each.written for each in row)) for row in accesses]


def _is_timed(given: Any) -> bool:
    return _is_row(given) and all(_is_row(each) and len(each) == 3 for each in given)


def _is_row(given: Any) -> bool:
    return isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)


def list_accesses(loaded: Loaded, accesses: Mapping[str, Given] | None) -> list[tuple[Access, ...]]:
    """Return the accesses to each row, by time.

    Parameters
    ----------
    loaded
        The problem, with its program where it has one.
    accesses
        By id: a list of times, with how often all bytes of the buffer are read and written then.
        Without a program, each buffer is written when it begins, and read when it ends. What a
        program keeps from one run to the next has none.

    Raises
    ------
    MemplanError
        If a time is missing, occurs twice, or is not within the lifetime.
    """
    problem = loaded.problem
    if loaded.layout is None:
        columns = (problem.start, problem.end, problem.size)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        found = [_write_and_read(*row) for row in rows]
    else:
        kept = {"constant", "variable"}
        found = [
            () if label.kind in kept else each
            for each, label in zip(find_accesses(loaded.layout), loaded.labels, strict=True)
        ]
    for id, given in (accesses or {}).items():
        row, label = problem.index(id), quoted(id)
        if not _is_timed(given):
            raise MemplanError(
                f"{label} may move, so its accesses need times: a list of (time, reads, writes)"
            )
        start, end, size = (int(c[row]) for c in (problem.start, problem.end, problem.size))
        times: dict[int, Access] = {}
        for time, *both in cast("Sequence[tuple[int, int, int]]", given):
            is_step = isinstance(time, (int, np.integer)) and start <= time < end
            if time in times or not is_step:
                raise MemplanError(
                    f"{label} cannot be accessed at {time}: each access needs a time of its own "
                    f"from {start} to {end - 1}"
                )
            reads, writes = _check_times(problem, row, both)
            times[time] = Access(time, size * reads, size * writes)
        found[row] = tuple(each for _, each in sorted(times.items()) if each.read or each.written)
    return found


def _write_and_read(start: int, end: int, size: int) -> tuple[Access, ...]:
    if end - start == 1:
        return (Access(start, size, size),)
    return Access(start, 0, size), Access(end - 1, size, 0)


def _check_times(problem: Problem, row: int, times: Sequence[Any]) -> tuple[int, int]:
    label = quoted(problem.ids[row])
    if not _is_row(times) or len(times) != 2:
        raise MemplanError(
            f"the accesses of {label} are {shown(times)}; they are (reads, writes), or a list of "
            "(time, reads, writes)"
        )
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
    base = {view.tensor: view.base for view in graph.views}
    found: list[dict[int, list[int]]] = [{} for _ in layout.rows]

    def note(tensor: int, time: int, side: int) -> None:
        if tensor in row_of:
            at = found[row_of[tensor]].setdefault(time, [0, 0])
            at[side] += graph.tensors[tensor].bytes

    for operator, (begin, end) in zip(graph.walk(), layout.lives.spans, strict=True):
        if _is_view(graph, base, operator):
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


def _is_view(graph: Graph, base: Mapping[int, int], operator: Operator) -> bool:
    """Return whether all that an operator makes lies in what it reads.

    `base` has what each view of the graph is a part of.
    """

    def chain(tensor: int) -> Iterator[int]:
        while tensor in base:
            tensor = base[tensor]
            yield tensor

    made = [tensor for tensor in operator.outputs if graph.tensors[tensor].kind != Kind.WORKSPACE]
    return bool(made) and all(
        any(tensor in operator.inputs for tensor in chain(each)) for each in made
    )
