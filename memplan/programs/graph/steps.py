"""Converts a layout for the core's test of which storages may share memory.

The core gets steps on streams, and for every storage the steps that need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memplan import _core
from memplan.base.errors import GraphError
from memplan.programs.graph.liveness import Clock, iterate_given, iterate_wanted
from memplan.programs.graph.model import Graph
from memplan.programs.graph.order import waits

if TYPE_CHECKING:
    from memplan.programs.graph.layout import Layout, Storage

__all__ = ["Rows", "Steps", "latest_ancestors", "places", "steps_of"]

_Ints = npt.NDArray[np.int32]

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""Compressed rows: where each row begins in the second array, and the entries of all rows."""

_MAX_CELLS = 1 << 30  # as the core has it: 4 GiB
_START = 0
_NO_OPERATOR = -1


@dataclass(frozen=True)
class Steps:
    """The steps of a program on its streams, which decide which storages may share memory.

    The steps are those of `Lives`, each on the stream of its operator. Before them is a step for
    what the caller does before the program, and after them one for what it does afterwards:

        stream 0   START ----------------> END
                     | |                   ^ ^
        stream 1     | +-> 1 -> 3 ---------+ |
        stream 2     +---> 2 -> 4 -> 5 ------+
    """

    core: _core.StreamGraph  # its operators are the steps, its tensors the rows of the layout
    # By step: the index of the outermost operator that runs, or -1 if none does.
    operator: tuple[int, ...]

    def unsafe_pairs(self, algorithm: str) -> Rows:
        """Return every unsafe pair of rows once."""
        return _core.unsafe_pairs(self.core, algorithm)

    def unsafe_beyond_order(self) -> Rows:
        """Return the unsafe pairs of rows that no single step needs, in both directions."""
        return _core.unsafe_beyond_order(self.core)

    def witness(self, row: int, other: int) -> _core.Witness:
        """Return why a pair of rows is safe or not, in steps."""
        return _core.witness(self.core, row, other)


def steps_of(layout: Layout) -> Steps:
    """Return the steps of a graph, with those that need each of the planned storages.

    A storage is needed by every step that makes or reads one of its tensors. The first of these is
    its producer, if all others wait for it. If the first one is not known, as when two streams
    write to views of one base, an extra step is its producer. That step waits for the start only,
    so no other storage counts as over before it; this is safe.
    """
    graph = layout.graph
    clock = _RecordingClock(graph)
    operator = [_NO_OPERATOR]
    spans = []
    for index, outer in enumerate(graph.operators):
        begin = clock.now + 1
        clock.run((outer,))
        operator += [index] * (clock.now + 1 - begin)
        spans.append((begin, clock.now))
    clock.end()
    operator.append(_NO_OPERATOR)

    streams = sorted({outer.stream for outer in graph.operators})
    if len(operator) * (len(streams) + 1) > _MAX_CELLS:
        raise GraphError(
            f"{len(operator)} operators on {len(streams)} streams are too many to order: the "
            "product may be at most 2^30"
        )
    number_of = {stream: number for number, stream in enumerate(streams, 1)}
    numbers = [number_of[outer.stream] for outer in graph.operators]
    stream = np.array([0 if at == _NO_OPERATOR else numbers[at] for at in operator], dtype=np.int32)
    arc = _find_arcs(graph, spans, stream)
    storages = [layout.storages[row] for row in layout.rows]
    needs = [clock.needs(storage) for storage in storages]
    leaderless = _find_without_producer(stream, arc, storages, needs)
    if leaderless:
        stream, arc, needs, operator = _add_producers(leaderless, stream, arc, needs, operator)
    producer = np.array([steps[0] for steps in needs], dtype=np.int32)
    bounds = np.cumsum([0, *map(len, needs)], dtype=np.int64)
    consumer = np.array([step for steps in needs for step in steps], dtype=np.int32)
    core = _core.StreamGraph(stream, arc[0], arc[1], producer, bounds, consumer)
    return Steps(core, tuple(operator))


class _RecordingClock(Clock):
    """Also records all steps that need a tensor; step 0 of `Lives` is step 1 here."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._graph = graph
        self._needed_at: list[set[int]] = [set() for _ in graph.tensors]
        self._caller: int | None = _START
        for index in iterate_given(graph):
            self.touch(index, 0, 1)
        self._caller = None

    def end(self) -> None:
        """Record that the caller needs the results after the last step."""
        self._caller = self.now + 1
        for index in iterate_wanted(self._graph):
            self.touch(index, self.now, self.now + 1)

    def touch(self, index: int, start: int, end: int) -> None:
        super().touch(index, start, end)
        self._needed_at[index].update((start + 1, end) if self._caller is None else (self._caller,))

    def needs(self, storage: Storage) -> list[int]:
        """Return the steps at which a storage is needed, in ascending order."""
        if not storage.tensors:  # the workspace of an operator
            return sorted({storage.start + 1, storage.end})
        return sorted(set().union(*(self._needed_at[tensor] for tensor in storage.tensors)))


def _find_arcs(graph: Graph, spans: list[tuple[int, int]], stream: _Ints) -> _Ints:
    """Return arcs between steps as two rows: the steps that must be over, and those that wait.

    Only the first and the last operator of a stream need arcs to the caller's steps. A tensor that
    the caller gives and a later operator makes again is there before, so earlier operators do not
    wait for that one.
    """
    arcs = [
        (spans[other][1], spans[number][0])
        for number, awaited in enumerate(waits(graph.operators, graph.views))
        for other in awaited
        if other < number
    ]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for operator, (begin, end) in zip(graph.operators, spans, strict=True):
        first.setdefault(operator.stream, begin)
        last[operator.stream] = end
    arcs += [(_START, begin) for begin in first.values()]
    arcs += [(end, len(stream) - 1) for end in last.values()]
    return np.array(arcs, dtype=np.int32).reshape(-1, 2).T.copy()


def places(stream: _Ints) -> _Ints:
    """Return the place of each step on its stream, from 1."""
    place = np.empty_like(stream)
    for number in range(int(stream.max(initial=-1)) + 1):
        on_it = stream == number
        place[on_it] = np.arange(1, int(on_it.sum()) + 1)
    return place


def latest_ancestors(stream: _Ints, arc: _Ints) -> _Ints:
    """Return by step and stream the place of the last step there that is over before it, or 0.

    The rows of `arc` are the steps that must be over, and those that wait for them.
    """
    nothing = np.empty(0, dtype=np.int32)
    alone = _core.StreamGraph(stream, arc[0], arc[1], nothing, np.zeros(1, dtype=np.int64), nothing)
    return _core.latest_ancestors(alone)


def _find_without_producer(
    stream: _Ints, arc: _Ints, storages: list[Storage], needs: list[list[int]]
) -> list[int]:
    """Return the storages of which some step does not wait for the first one."""
    several = [row for row, storage in enumerate(storages) if len(storage.tensors) > 1]
    if not several:
        return []  # readers of a tensor wait for its maker, which is the producer
    place, latest = places(stream), latest_ancestors(stream, arc)

    def is_led(first: int, *others: int) -> bool:
        return bool((latest[list(others), stream[first]] >= place[first]).all())

    return [row for row in several if not is_led(*needs[row])]


def _add_producers(
    leaderless: list[int], stream: _Ints, arc: _Ints, needs: list[list[int]], operator: list[int]
) -> tuple[_Ints, _Ints, list[list[int]], list[int]]:
    """Insert a producer right before the first step of each of these storages.

    All producers are on the caller's stream, one behind the other. This orders nothing else,
    because none of them waits for an operator or reads a storage.
    """
    rows = sorted(leaderless, key=lambda row: needs[row][0])
    firsts = np.array([needs[row][0] for row in rows])

    def shift(steps: _Ints) -> _Ints:
        return (steps + np.searchsorted(firsts, steps, side="right")).astype(np.int32)

    stream = np.insert(stream, firsts, 0)
    operator = np.insert(np.array(operator), firsts, _NO_OPERATOR).tolist()
    needs = [shift(np.array(steps, dtype=np.int32)).tolist() for steps in needs]
    arcs = [shift(arc).T]
    for number, row in enumerate(rows):
        leader = int(firsts[number]) + number
        arcs.append(np.array([(leader, step) for step in needs[row]], dtype=np.int32))
        needs[row].insert(0, leader)
    return stream, np.concatenate(arcs).T.copy(), needs, operator
