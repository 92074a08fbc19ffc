"""Recordings as problems, as graphs, and as problems of orders.

All have the same sizes, but different lifetimes. A problem has those of eager mode; a graph has
those of a compiler, which frees a tensor after its last reader; a problem of orders has none yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import numpy as np

from memplan.problem import OrderProblem, Problem
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View
from memplan_lab.corpus.precision import bytes_in_int8
from memplan_lab.corpus.recording import RecordedOperator, Recording
from memplan_lab.extras import require

__all__ = ["Shaped", "graph_of", "order_of", "problem_of"]

torch = require("torch", extra="corpus")

_ALIGNMENT = 512  # of PyTorch's allocator for accelerators
_PLANNED = frozenset({Kind.INTERMEDIATE, Kind.OUTPUT})  # inputs and weights are the caller's


def problem_of(recording: Recording) -> Problem:
    """Return the problem of a run in eager mode: all that its operators allocate.

    Sizes are rounded up to 512 bytes, as by PyTorch's allocator for accelerators.
    """
    made = [one for one in recording.storages if one.start >= 0 and one.bytes]
    size = np.array([one.bytes for one in made], dtype=np.int64)
    return Problem.from_arrays(
        [one.start for one in made],
        [one.end for one in made],
        -(-size // _ALIGNMENT) * _ALIGNMENT,
    )


def order_of(recording: Recording) -> OrderProblem:
    """Return the problem of all orders in which the operators of a run compute the same.

    An operator waits for the last change of each storage that it reads. An operator that changes a
    storage also waits for all earlier readers. Operators that draw random numbers keep their order,
    because they share a generator. Storages that are held at the end are wanted; sizes are those of
    `problem_of`.
    """
    count = len(recording.steps)
    users: dict[int, list[int]] = {
        number: [] for number, one in enumerate(recording.storages) if one.start >= 0 and one.bytes
    }
    arcs: set[tuple[int, int]] = set()
    changed: dict[int, int] = {}  # by storage: its last change
    readers: dict[int, list[int]] = {}  # by storage: its readers since then
    drawn = -1
    for at, step in enumerate(recording.steps):
        for number in {*step.reads, *step.makes, *step.changes}:
            if number in users:
                users[number].append(at)
            if number in changed:
                arcs.add((changed[number], at))
        for number in step.reads:
            readers.setdefault(number, []).append(at)
        for number in (*step.makes, *step.changes):
            arcs.update((reader, at) for reader in readers.pop(number, ()) if reader < at)
            changed[number] = at
        if _is_random(step.operator):
            if drawn >= 0:
                arcs.add((drawn, at))
            drawn = at
    held = recording.held
    size = np.array([recording.storages[number].bytes for number in users], dtype=np.int64)
    return OrderProblem(
        np.zeros(count, dtype=np.int64),
        np.array(sorted(arcs), dtype=np.int32).reshape(-1, 2),
        -(-size // _ALIGNMENT) * _ALIGNMENT,
        np.zeros(len(users), dtype=np.bool_),
        np.array([number in held for number in users], dtype=np.bool_),
        np.cumsum([0, *map(len, users.values())], dtype=np.int64),
        np.array([at for each in users.values() for at in each], dtype=np.int32),
        np.zeros((0, 3), dtype=np.int32),
        tuple(step.operator for step in recording.steps),
    )


@cache
def _is_random(operator: str) -> bool:
    """Return whether an operator draws from PyTorch's generator, which its tags say."""
    library, _, name = operator.partition(".")
    packet = getattr(getattr(torch.ops, library), name)
    seeded = torch.Tag.nondeterministic_seeded
    return any(seeded in getattr(packet, each).tags for each in packet.overloads())


@dataclass(frozen=True)
class Shaped:
    """A graph, and where a recording's storages are in it."""

    graph: Graph  # on one stream
    tensor_of: dict[int, int]  # by number of a storage: the tensor that has all changes of it


def graph_of(
    recording: Recording, wanted: Collection[int], *, int8: bool = False, name: str = ""
) -> Shaped:
    """Return a run as a graph on one stream.

    An operator that changes a storage makes a view of it, so that later readers wait for that.
    """
    sizes = bytes_in_int8(recording) if int8 else [one.bytes for one in recording.storages]
    growing = _Growing(recording, sizes, frozenset(wanted))
    operators = tuple(map(growing.operator, recording.steps))
    newest = growing.newest
    graph = Graph(
        name,
        tuple(growing.tensors),
        operators,
        tuple(i for i, tensor in enumerate(growing.tensors) if tensor.kind is Kind.INPUT),
        tuple(newest[number] for number in sorted(growing.wanted)),
        views=tuple(growing.views),
        alignment=_ALIGNMENT,
        planned=_PLANNED,
        source="torch",
    )
    return Shaped(graph, newest)


class _Growing:
    """The tensors and views of a graph that takes in one step after the other."""

    def __init__(self, recording: Recording, sizes: list[int], wanted: frozenset[int]) -> None:
        self.tensors: list[Tensor] = []
        self.views: list[View] = []
        self.newest: dict[int, int] = {}
        self.wanted = wanted
        self._storages = recording.storages
        self._sizes = sizes
        for number, one in enumerate(recording.storages):
            if one.start < 0:
                self._add(number, Kind.VARIABLE if one.weight else Kind.INPUT)

    def operator(self, step: RecordedOperator) -> Operator:
        """Return a step as an operator on the tensors as they are now."""
        inputs = tuple(self.newest[number] for number in step.reads)
        for number in step.makes:
            self._add(number, Kind.OUTPUT if number in self.wanted else Kind.INTERMEDIATE)
        for number in step.changes:
            before = self.newest[number]
            self._add(number, Kind.INTERMEDIATE)
            self.views.append(View(self.newest[number], before))
        outputs = tuple(self.newest[number] for number in (*step.makes, *step.changes))
        return Operator("", step.operator, inputs, outputs)

    def _add(self, number: int, kind: Kind) -> None:
        one = self._storages[number]
        self.newest[number] = index = len(self.tensors)
        dtype = str(one.dtype).removeprefix("torch.")
        self.tensors.append(Tensor(str(index), self._sizes[number], kind, dtype, one.shape))
