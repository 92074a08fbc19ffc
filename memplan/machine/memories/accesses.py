"""What a program reads and writes of each buffer, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np

from memplan.base.errors import MemplanError, listed, quoted, shown
from memplan.problem import Problem
from memplan.programs.graph import Graph, Kind, Operator
from memplan.programs.graph.layout import Layout
from memplan.programs.graph.updates import updates
from memplan.programs.sources import Loaded
from memplan.programs.sources.dialects import find_state, is_view
from memplan.solvers.limits import MAX_COUNT, check_number

__all__ = [
    "Access",
    "Given",
    "Times",
    "find_accesses",
    "find_kept",
    "is_timed",
    "list_accesses",
    "multiply",
    "sum_bytes",
]


@dataclass(frozen=True, slots=True)
class Access:
    """One step of a program reads or writes bytes of a buffer, or does both."""

    time: int  # within the lifetime of the buffer
    read: int  # in bytes
    written: int


Times = float | Fraction  # how often all bytes are touched; half of them is 0.5
Given = tuple[Times, Times] | Sequence[tuple[int, Times, Times]]  # of a buffer, as a caller says it
Reads = Mapping[str, tuple[Fraction, ...]]

_ONCE: Final = Fraction(1)
_KEPT: Final = frozenset({Kind.CONSTANT, Kind.VARIABLE})  # from one run to the next


def sum_bytes(accesses: Iterable[Sequence[Access]]) -> list[tuple[int, int]]:
    """Return how many bytes of each row all accesses to it read and write."""
    return [(sum(each.read for each in row), sum(each.written for each in row)) for row in accesses]


def multiply(bytes: int, times: Fraction) -> int:
    """Return so many times so many bytes, to the nearest whole number, and halves up."""
    return floor(bytes * times + Fraction(1, 2))


def find_kept(loaded: Loaded) -> list[bool]:
    """Return which rows a program keeps from one run to the next: they stay where they are."""
    if loaded.layout is None:
        return [False] * len(loaded.problem)
    return [label.kind in _KEPT for label in loaded.labels]


def check_reads(reads: Mapping[str, Times | Sequence[Times]] | None) -> Reads:
    """Return how often operators of some types read their inputs: one number, or one for each."""
    found = {}
    for type_, given in (reads or {}).items():
        numbers = cast("Sequence[Times]", given if _is_row(given) else (given,))
        name = f"how often operators of type {quoted(type_)} read an input"
        found[type_] = tuple(check_number(each, name, 0, MAX_COUNT) for each in numbers)
        if not numbers:
            raise MemplanError(f"{name} is an empty list; give one number, or one for each input")
    return found


def list_accesses(
    loaded: Loaded,
    accesses: Mapping[str, Given] | None = None,
    reads: Mapping[str, Times | Sequence[Times]] | None = None,
) -> list[tuple[Access, ...]]:
    """Return the accesses to each row, by time.

    Parameters
    ----------
    loaded
        The problem, with its program where it has one.
    accesses
        By id: how often all bytes of the buffer are read, and written, in a run, instead of what
        the program says; or a list with the same for each time. Without a program, each buffer is
        written when it begins, and read when it ends.
    reads
        By type of operators: how often they read all bytes of their inputs; see
        `memplan.machine.memories.assign`.

    Raises
    ------
    MemplanError
        If a time occurs twice, or is not within the lifetime; for a number that is none
        or out of range, or a type that no operator has.
    """
    problem, counts = loaded.problem, check_reads(reads)
    if loaded.layout is not None:
        found = find_accesses(loaded.layout, counts)
    elif counts:
        raise MemplanError("there are no operators, so nothing has types; give accesses by buffer")
    else:
        columns = (problem.start, problem.end, problem.size)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        found = [_write_and_read(*row) for row in rows]
    for id, given in (accesses or {}).items():
        row, label = problem.index(id), quoted(id)
        start, end, size = (int(c[row]) for c in (problem.start, problem.end, problem.size))
        if not is_timed(given):
            read, written = _check_times(problem, row, given)
            found[row] = (Access(start, multiply(size, read), multiply(size, written)),)
            continue
        times: dict[int, Access] = {}
        for time, *both in cast("Sequence[tuple[int, Times, Times]]", given):
            is_step = isinstance(time, (int, np.integer)) and start <= time < end
            if time in times or not is_step:
                raise MemplanError(
                    f"{label} cannot be accessed at {time}: each access needs a time of its own "
                    f"from {start} to {end - 1}"
                )
            read, written = _check_times(problem, row, both)
            times[time] = Access(time, multiply(size, read), multiply(size, written))
        found[row] = tuple(each for _, each in sorted(times.items()) if each.read or each.written)
    return found


def is_timed(given: Any) -> bool:
    """Return whether the accesses of a buffer are a list with the time of each."""
    return _is_row(given) and all(_is_row(each) and len(each) == 3 for each in given)


def _is_row(given: Any) -> bool:
    return isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)


def _write_and_read(start: int, end: int, size: int) -> tuple[Access, ...]:
    if end - start == 1:
        return (Access(start, size, size),)
    return Access(start, 0, size), Access(end - 1, size, 0)


def _check_times(problem: Problem, row: int, times: Any) -> tuple[Fraction, Fraction]:
    label = quoted(problem.ids[row])
    if not _is_row(times) or len(times) != 2:
        raise MemplanError(
            f"the accesses of {label} are {shown(times)}; they are (reads, writes), or a list of "
            "(time, reads, writes)"
        )
    reads, writes = times
    return (
        check_number(reads, f"the number of reads of {label}", 0, MAX_COUNT),
        check_number(writes, f"the number of writes of {label}", 0, MAX_COUNT),
    )


def find_accesses(layout: Layout, reads: Reads = MappingProxyType({})) -> list[tuple[Access, ...]]:
    """Return the accesses to each row of a layout, by time.

    Each operator that reads a tensor reads its bytes once, or as often as `reads` says for its
    type, and each that makes it writes them once; so does the caller with what goes in and out, and
    an operator with its workspace. What a loop does counts once. An operator touches no bytes that
    stay where they are: those to which it only gives another name, and parts of a result that
    already lie in it.
    """
    graph = layout.graph
    types = {operator.type for operator in graph.walk()}
    for type_ in reads:
        if type_ not in types:
            known = listed(sorted(types))
            raise MemplanError(f"no operator has the type {quoted(type_)}; there are {known}")
    place = {
        tensor: (at, offset)
        for at, row in enumerate(layout.rows)
        for tensor, offset in zip(
            layout.storages[row].tensors, layout.storages[row].offsets, strict=True
        )
    }
    inside = _Inside(graph, place)
    found: list[dict[int, list[int]]] = [{} for _ in layout.rows]

    def note(tensor: int, time: int, side: int, bytes: int) -> None:
        if tensor in place:
            at = found[place[tensor][0]].setdefault(time, [0, 0])
            at[side] += bytes

    for operator, (begin, end) in zip(graph.walk(), layout.lives.spans, strict=True):
        for tensor, count in inside.list_reads(operator, reads.get(operator.type, ())).items():
            note(tensor, begin, 0, multiply(graph.tensors[tensor].bytes, count))
        for tensor, bytes in inside.list_writes(operator).items():
            note(tensor, end - 1, 1, bytes)
        for block in operator.blocks:  # it copies what goes into a block, and what comes out
            for tensor in {*block.inputs}:
                note(tensor, begin, 1, graph.tensors[tensor].bytes)
            for tensor in {*block.outputs}:
                note(tensor, end - 1, 0, graph.tensors[tensor].bytes)
    for tensor in graph.inputs:
        if graph.tensors[tensor].kind is not Kind.WORKSPACE:
            note(tensor, layout.lives.start[tensor], 1, graph.tensors[tensor].bytes)
    for tensor in graph.outputs:
        note(tensor, layout.lives.end[tensor] - 1, 0, graph.tensors[tensor].bytes)
    for at, row in enumerate(layout.rows):
        storage = layout.storages[row]
        if storage.workspace_of is not None:
            found[at] = {storage.start: [storage.bytes, storage.bytes]}
    return [
        tuple(Access(time, *both) for time, both in sorted(each.items()) if any(both))
        for each in found
    ]


class _Inside:
    """Which bytes an operator touches, and which lie where they should be before it runs."""

    def __init__(self, graph: Graph, place: Mapping[int, tuple[int, int]]) -> None:
        self._graph, self._place = graph, place
        self._base = {view.tensor: view.base for view in graph.views}

    def list_reads(self, operator: Operator, counts: Sequence[Fraction]) -> dict[int, Fraction]:
        """Return how often an operator reads all bytes of each input that it reads.

        `counts` has one number for all inputs, or one for each; inputs beyond them are read once.
        """
        found: dict[int, Fraction] = {}
        if self._renames(operator):
            return found
        for at, tensor in enumerate(operator.inputs):
            if any(self._lies_in(tensor, each) for each in operator.outputs):
                continue
            alone = counts[0] if len(counts) == 1 else _ONCE
            count = counts[at] if at < len(counts) else alone
            found[tensor] = max(found.get(tensor, Fraction(0)), count)
        return found | dict.fromkeys(self._list_scratch(operator), _ONCE)

    def list_writes(self, operator: Operator) -> dict[int, int]:
        """Return the bytes that an operator writes, by tensor."""
        tensors = self._graph.tensors
        whole = {*find_state(self._graph, operator), *self._list_scratch(operator)}
        found = {tensor: tensors[tensor].bytes for tensor in whole}
        if self._renames(operator):
            return found
        for made in operator.outputs:
            parts = {each for each in operator.inputs if self._lies_in(each, made)}
            there = sum(tensors[part].bytes for part in parts)
            found[made] = max(0, tensors[made].bytes - there)
        return found

    def _list_scratch(self, operator: Operator) -> list[int]:
        """Return the tensors that are scratch of an operator, which it writes and reads."""
        both = (*operator.inputs, *operator.outputs)
        return [each for each in both if self._graph.tensors[each].kind is Kind.WORKSPACE]

    def _lies_in(self, part: int, whole: int) -> bool:
        """Return whether a tensor is declared to be a part of another one, which has a value."""
        if self._graph.tensors[whole].kind is Kind.WORKSPACE:
            return False
        while part in self._base:
            part = self._base[part]
            if part == whole:
                return True
        return False

    def _renames(self, operator: Operator) -> bool:
        """Return whether all that an operator makes lies in what it reads, unchanged."""
        made = [
            tensor
            for tensor in operator.outputs
            if self._graph.tensors[tensor].kind is not Kind.WORKSPACE
        ]
        return bool(made) and all(
            any(self._is_renamed(operator, given, each) for given in operator.inputs)
            for each in made
        )

    def _is_renamed(self, operator: Operator, given: int, made: int) -> bool:
        """Return whether a result is an input, or a part of it, that the operator leaves as it is.

        An operator that may write its result over this input computes something, unless its type
        says that it does not.
        """
        is_declared = self._lies_in(made, given)
        may_overwrite = (given, made) in operator.in_place
        if is_declared and not may_overwrite:
            return not updates(operator)
        is_shared = may_overwrite and made in self._place
        is_shared = is_shared and self._place[made] == self._place.get(given)
        return (is_declared or is_shared) and is_view(self._graph, operator, is_declared)
