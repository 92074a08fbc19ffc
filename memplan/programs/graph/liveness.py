"""The lifetimes of tensors: the liveness of static memory planning, with ranges for sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memplan.programs.graph.model import Graph, Kind, Operator

__all__ = ["Clock", "Lives", "iterate_given", "iterate_wanted", "lives"]


@dataclass(frozen=True, slots=True)
class Lives:
    """The lifetimes of a graph's tensors, and the steps in which they are measured."""

    # By tensor: it is needed during `[start, end)`. A tensor that no operator makes or reads has
    # `start == end`.
    start: tuple[int, ...]
    end: tuple[int, ...]
    # How many there are. An operator without blocks takes one step. One with blocks takes a step to
    # enter, the steps of its blocks one after the other, and a step to leave.
    steps: int
    operators: tuple[Operator, ...]  # by step: the operator at work
    # By operator, in the order of `Graph.walk`: the steps `[start, end)` from entering it to
    # leaving it.
    spans: tuple[tuple[int, int], ...]


def lives(graph: Graph) -> Lives:
    """Return the lifetimes of all tensors.

    A tensor is needed from the step that makes it to the last step that reads it or a view of it,
    both included. Inputs of the graph are needed from the beginning, outputs until the end,
    constants and variables always. Where the caller's inputs are planned and nothing reads one of
    them, the caller sets them in a step -1, so that it is over before the first operator. Branches
    run one after the other: tensors local to different branches share no time, and a tensor that
    both read is live through both. What a loop reads from outside, or carries from one iteration to
    the next, is live until the loop ends.
    """
    clock = Clock(graph)
    begin = -1 if _has_unread_input(graph) else 0
    for index in iterate_given(graph):  # first, so that loops know that these come from outside
        clock.touch(index, begin, begin + 1)
    clock.run(graph.operators)
    steps = max(clock.now, 1)
    for index in iterate_wanted(graph):
        clock.touch(index, steps - 1, steps)
    count = len(graph.tensors)
    start = tuple(clock.first.get(index, 0) for index in range(count))
    end = tuple(clock.last.get(index, 0) for index in range(count))
    return Lives(start, end, steps, tuple(clock.operators), tuple(clock.spans))


def iterate_given(graph: Graph) -> Iterator[int]:
    """Yield the tensors that exist before the first step; a tensor may be yielded twice."""
    kinds = (Kind.CONSTANT, Kind.VARIABLE, Kind.INPUT)
    yield from (i for i, tensor in enumerate(graph.tensors) if tensor.kind in kinds)
    yield from graph.inputs


def _has_unread_input(graph: Graph) -> bool:
    """Return whether the caller gives a planned tensor that no operator reads or hands out."""
    if Kind.INPUT not in graph.planned:
        return False
    used = set(graph.outputs)
    for operator in graph.walk():
        used.update(operator.inputs, operator.outputs)
        used.update(*((*block.inputs, *block.outputs) for block in operator.blocks))
    base = _find_outermost({view.tensor: view.base for view in graph.views})
    used.update([base[tensor] for tensor in used if tensor in base])
    return any(index not in used and graph.tensors[index].bytes for index in graph.inputs)


def iterate_wanted(graph: Graph) -> Iterator[int]:
    """Yield the tensors that are needed after the last step; a tensor may be yielded twice."""
    kinds = (Kind.CONSTANT, Kind.VARIABLE, Kind.OUTPUT)
    yield from (i for i, tensor in enumerate(graph.tensors) if tensor.kind in kinds)
    yield from graph.outputs


class Clock:
    """Counts the steps of operators, and records when they touch tensors."""

    def __init__(self, graph: Graph) -> None:
        self.now = 0
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.operators: list[Operator] = []
        self.spans: list[tuple[int, int]] = []
        self._touched: list[int] = []
        self._base = _find_outermost({view.tensor: view.base for view in graph.views})

    def touch(self, index: int, start: int, end: int) -> None:
        """Extend the lifetime of a tensor, and of its bases, to include `[start, end)`."""
        first, last = self.first, self.last
        if index not in first or start < first[index]:
            first[index] = start
        if index not in last or end > last[index]:
            last[index] = end
        self._touched.append(index)
        if index in self._base:
            self.touch(self._base[index], start, end)

    def run(self, operators: tuple[Operator, ...]) -> None:
        """Count the steps of operators that run one after the other."""
        for operator in operators:
            number, begin, mark = len(self.spans), self.now, len(self._touched)
            self.spans.append((begin, begin + 1))
            self._step(operator)
            for index in operator.inputs:
                self.touch(index, begin, self.now)
            if operator.blocks:
                self._run_blocks(operator, begin)
                if operator.loop:
                    self._keep_until_loop_ends(operator, begin, mark)
                self.spans[number] = (begin, self.now)
            for index in operator.outputs:
                self.touch(index, self.now - 1, self.now)

    def _step(self, operator: Operator) -> None:
        self.operators.append(operator)
        self.now += 1

    def _run_blocks(self, operator: Operator, begin: int) -> None:
        copied = None  # the last step of the first block, which copies its results to the outputs
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

    def _keep_until_loop_ends(self, operator: Operator, begin: int, mark: int) -> None:
        """Extend what a loop carries, or reads from outside, to the end of the loop."""
        held = {index for block in operator.blocks for index in (*block.inputs, *block.outputs)}
        held.update(index for index in self._touched[mark:] if self.first[index] <= begin)
        for index in held:
            self.touch(index, begin, self.now)


def _find_outermost(base: dict[int, int]) -> dict[int, int]:
    """Return for every view the tensor at the end of its chain of bases."""
    found: dict[int, int] = {}
    for view in base:
        chain = [view]
        while chain[-1] in base and chain[-1] not in found:
            chain.append(base[chain[-1]])
        end = found.get(chain[-1], chain[-1])
        found.update((index, end) for index in chain if index in base)
    return found
