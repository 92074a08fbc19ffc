"""Finds tensors that could be dropped between two uses, and made again just before the second.

A storage x takes memory even while it is idle:

    step         0     1     2     3     4
    makes x      #
    reads x            #                 #
    held         [------------------------)      as it is
    held again   [-----------)          m[--)    dropped after step 1, made again (m) before step 4

At the moment m, every operator that has written x so far runs once more. The tensors that it reads
must exist then, so those that would be over by then are kept longer. Files do not say whether an
operator has the same result a second time (random numbers, side effects); the user must judge it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

from memplan.problem.columns import NONE
from memplan.programs.graph.layout import Layout
from memplan.programs.graph.liveness import iterate_wanted
from memplan.programs.graph.model import Kind, Operator

__all__ = ["Remake", "describe_operator", "find_remakes"]

_MADE_IN_THE_RUN = (Kind.INTERMEDIATE, Kind.OUTPUT)


@dataclass(frozen=True, slots=True)
class Remake:
    """A storage that could be dropped for a while."""

    row: int  # in the problem
    # It is not held during `[dropped, again)`; the moment at which it is made again lies just
    # before the step `again`.
    dropped: int
    again: int
    by: tuple[str, ...]  # the operators that make it again, as "name (type)", in their order
    # Rows that these read, which would be over by then: each is kept until that moment.
    kept: tuple[int, ...]
    extra: tuple[int, ...]  # rows that are needed at that moment only: workspaces and other results


def find_remakes(layout: Layout, start: int, end: int) -> tuple[Remake, ...]:
    """Return the storages that could be dropped during `[start, end)`, and how to make them again.

    Times are steps of `Lives`; with several streams, the order of operators is not known. At most
    one comes for each row, in the order of the rows. Left out are storages in a group, those that
    are written inside branches or loops, and those made from tensors that have been overwritten
    since.
    """
    graph = layout.graph
    if graph.has_streams or start >= end:
        return ()
    history = _History(layout)
    found = []
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        live = storage.start <= start and end <= storage.end
        if live and storage.kind in _MADE_IN_THE_RUN and layout.problem.group[row] == NONE:
            remake = history.remake(row, start, end)
            if remake is not None:
                found.append(remake)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Touch:
    """A time during which an operator, or the caller, needs a storage."""

    start: int
    end: int
    operator: Operator | None
    writes: bool


class _History:
    """The touches of each storage, in the order of time."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._row_of = {index: row for row, index in enumerate(layout.rows)}
        self._storage_of = {
            tensor: index
            for index, storage in enumerate(layout.storages)
            for tensor in storage.tensors
        }
        self._workspace_of = {  # by identity: two operators may be equal
            id(storage.workspace_of): index
            for index, storage in enumerate(layout.storages)
            if storage.workspace_of is not None
        }
        self._touches: dict[int, list[_Touch]] = defaultdict(list)
        number = 0
        for operator in layout.graph.operators:
            inside = list(operator.walk())
            written = {tensor for one in inside for tensor in one.outputs}
            read = {tensor for one in inside for tensor in one.inputs}
            for block in (block for one in inside for block in one.blocks):
                read.update(block.inputs, block.outputs)
            self._record_touches(*layout.lives.spans[number], operator, read, written)
            number += len(inside)
        steps = layout.lives.steps
        self._record_touches(steps - 1, steps, None, set(iterate_wanted(layout.graph)), set())

    def _record_touches(
        self, start: int, end: int, operator: Operator | None, read: set[int], written: set[int]
    ) -> None:
        writes = {self._storage_of[tensor] for tensor in written if tensor in self._storage_of}
        reads = {self._storage_of[tensor] for tensor in read if tensor in self._storage_of}
        for index in reads | writes:
            self._touches[index].append(_Touch(start, end, operator, index in writes))

    def remake(self, row: int, start: int, end: int) -> Remake | None:
        """Return how to drop a row that is live during `[start, end)` for that time."""
        index = self._layout.rows[row]
        idle = self._find_idle_time(index, start, end)
        if idle is None:
            return None
        dropped, again = idle
        written = [each for each in self._touches[index] if each.writes and each.end <= dropped]
        if not written or any(each.operator is None or each.operator.blocks for each in written):
            return None
        kept: dict[int, None] = {}
        extra: dict[int, None] = {}
        for each in written:
            assert each.operator is not None
            for operand in self._find_storages(each.operator.inputs):
                if operand == index:
                    continue
                if self._is_overwritten(operand, each.start, again):
                    return None
                if self._layout.storages[operand].end <= again and operand in self._row_of:
                    kept[self._row_of[operand]] = None
            workspace = self._workspace_of.get(id(each.operator), NONE)
            for other in (*self._find_storages(each.operator.outputs), workspace):
                if other != index and other in self._row_of and not self._is_held(other, again):
                    extra[self._row_of[other]] = None
        by = tuple(
            describe_operator(each.operator) for each in written if each.operator is not None
        )
        return Remake(row, dropped, again, by, tuple(kept), tuple(extra))

    def _find_idle_time(self, index: int, start: int, end: int) -> tuple[int, int] | None:
        """Return the time between two touches that contains `[start, end)`."""
        for before, after in pairwise(self._touches[index]):
            if before.end <= start and end <= after.start:
                return before.end, after.start
        return None

    def _is_overwritten(self, index: int, since: int, until: int) -> bool:
        """Return whether an operator writes to a storage in `[since, until)`."""
        touches = self._touches[index]
        return any(touch.writes and since <= touch.start < until for touch in touches)

    def _is_held(self, index: int, time: int) -> bool:
        """Return whether a storage is live at the moment just before the step `time`."""
        storage = self._layout.storages[index]
        return storage.start < time < storage.end

    def _find_storages(self, tensors: tuple[int, ...]) -> list[int]:
        return [self._storage_of[tensor] for tensor in tensors if tensor in self._storage_of]


def describe_operator(operator: Operator) -> str:
    """Return "name (type)", or the type of an operator without a name."""
    return f"{operator.name} ({operator.type})" if operator.name else operator.type
