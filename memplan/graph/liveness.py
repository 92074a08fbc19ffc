"""When every tensor is needed (source 003, section on liveness; ranges instead of sets)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memplan.graph.model import Graph, Kind, Operator

__all__ = ["Clock", "Lives", "given", "lives", "wanted"]


@dataclass(frozen=True, slots=True)
class Lives:
    """The lifetimes of a graph's tensors, and the clock that they are told in.

    Attributes
    ----------
    start, end
        By tensor: needed during `[start, end)`. A tensor that nobody makes or reads has
        `start == end`.
    steps
        The end of time. An operator without blocks takes one step. One with blocks takes a step to
        enter, the steps of its blocks one after the other, and a step to leave.
    operators
        By step: the operator at work.
    spans
        By operator, in the order of `Graph.walk`: the steps `[start, end)` from entering it to
        leaving it.
    """

    start: tuple[int, ...]
    end: tuple[int, ...]
    steps: int
    operators: tuple[Operator, ...]
    spans: tuple[tuple[int, int], ...]


def lives(graph: Graph) -> Lives:
    """Return when every tensor is needed.

    A tensor is needed from the step that makes it to the last that reads it, or a view of it, both
    included. Inputs of the graph are there from the beginning, outputs until the end, constants
    and variables always. Branches run one after the other, so what is local to one shares no time
    with the other, and what both read is live through both. What a loop reads from outside, and
    what it carries from round to round, is live until it ends.
    """
    clock = Clock(graph)
    for index in given(graph):  # before the run, so that a loop sees that they come from outside
        clock.touch(index, 0, 1)
    clock.run(graph.operators)
    steps = max(clock.now, 1)
    for index in wanted(graph):
        clock.touch(index, steps - 1, steps)
    count = len(graph.tensors)
    start = tuple(clock.first.get(index, 0) for index in range(count))
    end = tuple(clock.last.get(index, 0) for index in range(count))
    return Lives(start, end, steps, tuple(clock.operators), tuple(clock.spans))


def given(graph: Graph) -> Iterator[int]:
    """Yield the tensors that are there before the first step; some may come twice."""
    kinds = (Kind.CONSTANT, Kind.VARIABLE, Kind.INPUT)
    yield from (i for i, tensor in enumerate(graph.tensors) if tensor.kind in kinds)
    yield from graph.inputs


def wanted(graph: Graph) -> Iterator[int]:
    """Yield the tensors that are needed after the last step; some may come twice."""
    kinds = (Kind.CONSTANT, Kind.VARIABLE, Kind.OUTPUT)
    yield from (i for i, tensor in enumerate(graph.tensors) if tensor.kind in kinds)
    yield from graph.outputs


class Clock:
    """Lets time pass for operators one after the other, and notes when tensors are touched."""

    def __init__(self, graph: Graph) -> None:
        self.now = 0
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.operators: list[Operator] = []
        self.spans: list[tuple[int, int]] = []
        self._touched: list[int] = []
        self._base = _outermost({view.tensor: view.base for view in graph.views})

    def touch(self, index: int, start: int, end: int) -> None:
        """Extend a tensor, and what it is a view of, to `[start, end)`."""
        first, last = self.first, self.last
        if index not in first or start < first[index]:
            first[index] = start
        if index not in last or end > last[index]:
            last[index] = end
        self._touched.append(index)
        if index in self._base:
            self.touch(self._base[index], start, end)

    def run(self, operators: tuple[Operator, ...]) -> None:
        """Let time pass for some operators."""
        for operator in operators:
            number, begin, mark = len(self.spans), self.now, len(self._touched)
            self.spans.append((begin, begin + 1))
            self._step(operator)
            for index in operator.inputs:
                self.touch(index, begin, self.now)
            if operator.blocks:
                self._enter(operator, begin)
                if operator.loop:
                    self._hold(operator, begin, mark)
                self.spans[number] = (begin, self.now)
            for index in operator.outputs:
                self.touch(index, self.now - 1, self.now)

    def _step(self, operator: Operator) -> None:
        self.operators.append(operator)
        self.now += 1

    def _enter(self, operator: Operator, begin: int) -> None:
        copied = None  # when the first block hands its results over
        for block in operator.blocks:
            for index in block.inputs:
                self.touch(index, begin, self.now)  # written as the operator is entered
            self.run(block.operators)
            for index in block.outputs:
                self.touch(index, self.now - 1, self.now)
            copied = self.now - 1 if copied is None else copied
        self._step(operator)
        for index in operator.outputs:
            self.touch(index, self.now - 1 if copied is None else copied, self.now)

    def _hold(self, operator: Operator, begin: int, mark: int) -> None:
        """Keep until a loop ends what it carries, and what it reads from outside."""
        held = {index for block in operator.blocks for index in (*block.inputs, *block.outputs)}
        held.update(index for index in self._touched[mark:] if self.first[index] <= begin)
        for index in held:
            self.touch(index, begin, self.now)


def _outermost(base: dict[int, int]) -> dict[int, int]:
    """Return for every view the tensor at the end of its chain of bases."""
    found: dict[int, int] = {}
    for view in base:
        chain = [view]
        while chain[-1] in base and chain[-1] not in found:
            chain.append(base[chain[-1]])
        end = found.get(chain[-1], chain[-1])
        found.update((index, end) for index in chain if index in base)
    return found
