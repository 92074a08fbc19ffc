"""A laid-out graph as the core's rules of safety see it: steps on streams, and who needs what.

The door of `memplan.graph` to `memplan._core`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memplan import _core
from memplan.errors import GraphError
from memplan.graph.liveness import Clock, given, wanted
from memplan.graph.model import Graph
from memplan.graph.order import waits

if TYPE_CHECKING:
    from memplan.graph.layout import Layout, Storage

__all__ = ["Rows", "Steps", "latest_ancestors", "places", "steps_of"]

_Ints = npt.NDArray[np.int32]

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""Where each row begins among the others, and these."""

_MAX_CELLS = 1 << 30  # as the core has it: 4 GiB
_START = 0
_NOBODY = -1


@dataclass(frozen=True)
class Steps:
    """What decides which storages may share memory.

    The steps are those of `Lives`, each on the stream of its operator. Before them is one for what
    the caller does before the program, and behind them one for what it does afterwards:

        stream 0   START ----------------> END
                     | |                   ^ ^
        stream 1     | +-> 1 -> 3 ---------+ |
        stream 2     +---> 2 -> 4 -> 5 ------+

    Attributes
    ----------
    core
        The same for the core: its operators are steps, its tensors the rows of the layout.
    operator
        By step: the index of the outermost operator at work, or -1 for nobody.
    """

    core: _core.StreamGraph
    operator: tuple[int, ...]

    def unsafe_pairs(self, algorithm: str) -> Rows:
        """Return every unsafe pair of rows once."""
        return _core.unsafe_pairs(self.core, algorithm)

    def unsafe_beyond_order(self) -> Rows:
        """Return, in both directions, the unsafe pairs of rows that no step needs together."""
        return _core.unsafe_beyond_order(self.core)

    def witness(self, row: int, other: int) -> _core.Witness:
        """Return why a pair of rows is safe or not, in steps."""
        return _core.witness(self.core, row, other)


def steps_of(layout: Layout) -> Steps:
    """Return the steps of a graph, and which of them need the storages that are planned.

    A storage is needed by whoever makes or reads one of its tensors. The first of these is its
    producer, if all others wait for it. If nobody knows who comes first, as where two streams write
    to views of one base, a step of nobody's makes it, that waits for nothing but the start: then no
    storage is over before, which is safe.

    Raises
    ------
    GraphError
        If operators times streams are more than 2^30.
    """
    graph = layout.graph
    clock = _NotingClock(graph)
    operator = [_NOBODY]
    spans = []
    for index, outer in enumerate(graph.operators):
        begin = clock.now + 1
        clock.run((outer,))
        operator += [index] * (clock.now + 1 - begin)
        spans.append((begin, clock.now))
    clock.end()
    operator.append(_NOBODY)

    streams = sorted({outer.stream for outer in graph.operators})
    if len(operator) * (len(streams) + 1) > _MAX_CELLS:
        raise GraphError(
            f"{len(operator)} operators on {len(streams)} streams are too many to tell who waits "
            "for whom: the product may be at most 2^30"
        )
    number_of = {stream: number for number, stream in enumerate(streams, 1)}
    numbers = [number_of[outer.stream] for outer in graph.operators]
    stream = np.array([0 if at == _NOBODY else numbers[at] for at in operator], dtype=np.int32)
    arc = _arcs(graph, spans, stream)
    storages = [layout.storages[row] for row in layout.rows]
    needs = [clock.needs(storage) for storage in storages]
    unled = _unled(stream, arc, storages, needs)
    if unled:
        stream, arc, needs, operator = _with_leaders(unled, stream, arc, needs, operator)
    producer = np.array([steps[0] for steps in needs], dtype=np.int32)
    bounds = np.cumsum([0, *map(len, needs)], dtype=np.int64)
    consumer = np.array([step for steps in needs for step in steps], dtype=np.int32)
    core = _core.StreamGraph(stream, arc[0], arc[1], producer, bounds, consumer)
    return Steps(core, tuple(operator))


class _NotingClock(Clock):
    """Notes at which steps tensors are needed; step 0 of `Lives` is step 1 here."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._graph = graph
        self._noted: list[set[int]] = [set() for _ in graph.tensors]
        self._caller: int | None = _START
        for index in given(graph):
            self.touch(index, 0, 1)
        self._caller = None

    def end(self) -> None:
        """Let the caller have what it wants."""
        self._caller = self.now + 1
        for index in wanted(self._graph):
            self.touch(index, self.now, self.now + 1)

    def touch(self, index: int, start: int, end: int) -> None:
        super().touch(index, start, end)
        self._noted[index].update((start + 1, end) if self._caller is None else (self._caller,))

    def needs(self, storage: Storage) -> list[int]:
        """Return the steps at which a storage is needed, in ascending order."""
        if not storage.tensors:  # the workspace of an operator
            return sorted({storage.start + 1, storage.end})
        return sorted(set().union(*(self._noted[tensor] for tensor in storage.tensors)))


def _arcs(graph: Graph, spans: list[tuple[int, int]], stream: _Ints) -> _Ints:
    """Return who must be over, and who waits for it: two rows.

    Whoever runs first or last on its stream speaks for the others there. A tensor of the caller's
    that an operator makes again is there before: nobody waits for a later one.
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
    """Return by step where it comes on its stream, from 1."""
    place = np.empty_like(stream)
    for number in range(int(stream.max(initial=-1)) + 1):
        on_it = stream == number
        place[on_it] = np.arange(1, int(on_it.sum()) + 1)
    return place


def latest_ancestors(stream: _Ints, arc: _Ints) -> _Ints:
    """Return by step and stream the place there of the last step that is over before, or 0.

    Parameters
    ----------
    stream
        By step.
    arc
        Who must be over, and who waits for it: two rows.
    """
    nothing = np.empty(0, dtype=np.int32)
    alone = _core.StreamGraph(stream, arc[0], arc[1], nothing, np.zeros(1, dtype=np.int64), nothing)
    return _core.latest_ancestors(alone)


def _unled(stream: _Ints, arc: _Ints, storages: list[Storage], needs: list[list[int]]) -> list[int]:
    """Return the storages of which some step does not wait for the first one."""
    several = [row for row, storage in enumerate(storages) if len(storage.tensors) > 1]
    if not several:
        return []  # whoever reads a tensor waits for its maker
    place, latest = places(stream), latest_ancestors(stream, arc)

    def is_led(first: int, *others: int) -> bool:
        return bool((latest[list(others), stream[first]] >= place[first]).all())

    return [row for row in several if not is_led(*needs[row])]


def _with_leaders(
    unled: list[int], stream: _Ints, arc: _Ints, needs: list[list[int]], operator: list[int]
) -> tuple[_Ints, _Ints, list[list[int]], list[int]]:
    """Put a step of nobody's right before the first step of each of these storages.

    All of them go on the caller's stream, behind one another. That orders nothing else: none waits
    for an operator, and no storage is read by one.
    """
    rows = sorted(unled, key=lambda row: needs[row][0])
    firsts = np.array([needs[row][0] for row in rows])

    def moved(steps: _Ints) -> _Ints:
        return (steps + np.searchsorted(firsts, steps, side="right")).astype(np.int32)

    stream = np.insert(stream, firsts, 0)
    operator = np.insert(np.array(operator), firsts, _NOBODY).tolist()
    needs = [moved(np.array(steps, dtype=np.int32)).tolist() for steps in needs]
    arcs = [moved(arc).T]
    for number, row in enumerate(rows):
        leader = int(firsts[number]) + number
        arcs.append(np.array([(leader, step) for step in needs[row]], dtype=np.int32))
        needs[row].insert(0, leader)
    return stream, np.concatenate(arcs).T.copy(), needs, operator
