"""Checks a graph when it is made by hand or by a reader, so that no later step has to.

What a rewrite makes of a checked graph is right by construction, and is checked in tests alone:
where the environment has MEMPLAN_CHECK_GRAPHS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memplan.base.errors import GraphError, listed, quoted
from memplan.programs.graph import order

if TYPE_CHECKING:
    from memplan.programs.graph.model import Graph, Operator

__all__ = ["CHECKS_ALL", "MAX_DEPTH", "check"]

CHECKS_ALL = bool(os.environ.get("MEMPLAN_CHECK_GRAPHS"))

MAX_BYTES = 1 << 62
MAX_DEPTH = 100  # of nested blocks; far below Python's limit on recursion


def check(graph: Graph) -> None:
    """Raise `GraphError` for the first thing that is wrong."""
    _check_depth(graph)
    _check_tensors(graph)
    _check_operators(graph)
    _check_streams(graph)
    _check_groups(graph)
    _check_views(graph)
    _Order(graph).check()


def _check_depth(graph: Graph) -> None:
    level = list(graph.operators)
    for _ in range(MAX_DEPTH):
        level = [inner for op in level for block in op.blocks for inner in block.operators]
        if not level:
            return
    raise GraphError(f"blocks are nested more than {MAX_DEPTH} deep")


def _check_tensors(graph: Graph) -> None:
    if not 1 <= graph.alignment <= MAX_BYTES:
        raise GraphError(f"the alignment is {graph.alignment}; it must be between 1 and 2^62")
    seen: set[str] = set()
    for number, tensor in enumerate(graph.tensors):
        if not tensor.name:
            raise GraphError(f"tensor number {number} has no name")
        if tensor.name in seen:
            raise GraphError(f"two tensors have the name {quoted(tensor.name)}")
        seen.add(tensor.name)
        wrong = ""
        if not 0 <= tensor.bytes <= MAX_BYTES:
            wrong = f"has a size of {tensor.bytes} bytes"
        elif tensor.pin is not None and not 0 <= tensor.pin <= MAX_BYTES:
            wrong = f"is pinned to offset {tensor.pin}"
        if wrong:
            name = quoted(tensor.name)
            raise GraphError(f"tensor {name} {wrong}; it must be between 0 and 2^62")


def _check_operators(graph: Graph) -> None:
    count = len(graph.tensors)
    for where, indices in _iterate_mentions(graph):
        if indices and (min(indices) < 0 or max(indices) >= count):
            name = where if isinstance(where, str) else _describe(where)
            raise GraphError(f"{name} names a tensor that does not exist")
    for operator in graph.walk():
        if not 0 <= operator.workspace <= MAX_BYTES:
            raise GraphError(
                f"{_describe(operator)} has a workspace of {operator.workspace} bytes; "
                "it must be between 0 and 2^62"
            )
        for operand, result in operator.in_place:
            if operand not in operator.inputs or result not in operator.outputs:
                raise GraphError(
                    f"{_describe(operator)} has an in-place pair that is not an input and an output"
                )
        _check_reads(graph, operator)


def _check_reads(graph: Graph, operator: Operator) -> None:
    """Check that an operator that can be done in parts reads pictures and makes one."""
    for read in operator.reads:
        if read.tensor not in operator.inputs or graph.find_size(read.tensor) is None:
            raise GraphError(
                f"{_describe(operator)} reads rows of a tensor that is not an input, or not a "
                "picture: a shape of four axes for one item of a batch"
            )
    if not operator.why_whole and (operator.makes < 0 or graph.find_size(operator.makes) is None):
        raise GraphError(f"{_describe(operator)} can be done in parts, but makes no picture")
    if operator.macs < 0:
        raise GraphError(f"{_describe(operator)} has {operator.macs} multiplications")


def _iterate_mentions(graph: Graph) -> Iterator[tuple[str | Operator, tuple[int, ...]]]:
    """Yield all indices of tensors in the graph, with the place that they are in."""
    yield "an input of the graph", graph.inputs
    yield "an output of the graph", graph.outputs
    for pair in graph.aliases:
        yield "an alias", pair
    for view in graph.views:
        yield "a view", (view.tensor, view.base)
    for group in graph.groups:
        yield "a group", group
    for operator in graph.walk():
        yield operator, operator.inputs + operator.outputs
        for pair in operator.in_place:
            yield operator, pair
        for block in operator.blocks:
            yield operator, block.inputs + block.outputs


def _check_streams(graph: Graph) -> None:
    for outer in graph.operators:
        if outer.stream < 0:
            raise GraphError(
                f"{_describe(outer)} is on stream {outer.stream}; streams are numbered from 0"
            )
        inside = [inner for block in outer.blocks for inner in block.operators]
        while inside:
            inner = inside.pop()
            if inner.stream not in (0, outer.stream):
                raise GraphError(
                    f"{_describe(inner)} is on stream {inner.stream}, but runs inside of "
                    f"{_describe(outer)}, which is on stream {outer.stream}"
                )
            inside.extend(deeper for block in inner.blocks for deeper in block.operators)


def _check_groups(graph: Graph) -> None:
    group_of: dict[int, int] = {}
    for number, group in enumerate(graph.groups):
        for index in group:
            name = f"tensor {quoted(graph.tensors[index].name)}"
            if group_of.get(index) == number:
                raise GraphError(f"group {number} lists {name} twice")
            if index in group_of:
                raise GraphError(
                    f"groups {group_of[index]} and {number} share {name}; "
                    "a tensor may be in one group only"
                )
            group_of[index] = number


def _check_views(graph: Graph) -> None:
    base: dict[int, int] = {}
    for view in graph.views:
        if view.offset < 0:
            name = quoted(graph.tensors[view.tensor].name)
            raise GraphError(f"the view {name} begins {-view.offset} bytes before its base")
        if view.tensor in base:
            name = quoted(graph.tensors[view.tensor].name)
            raise GraphError(f"tensor {name} is a view of two tensors")
        base[view.tensor] = view.base
    settled: set[int] = set()
    for tensor in base:
        path = {tensor}
        at = tensor
        while at in base and at not in settled:
            at = base[at]
            if at in path:
                name = quoted(graph.tensors[at].name)
                raise GraphError(f"the view {name} is a view of itself")
            path.add(at)
        settled.update(path)


class _Order:
    """Checks that readers of a tensor come after its maker; a view is made with its base."""

    def __init__(self, graph: Graph) -> None:
        given = ("input", "constant", "variable")
        self._graph = graph
        self._base = {view.tensor: view.base for view in graph.views}
        self._there = {i for i, tensor in enumerate(graph.tensors) if tensor.kind in given}
        self._there.update(graph.inputs)
        self._made: set[int] = set()

    def check(self) -> None:
        self._run(self._graph.operators)
        for index in self._graph.outputs:
            self._read(index, "is an output of the graph")

    def _run(self, operators: tuple[Operator, ...]) -> None:
        for operator in operators:
            for index in operator.inputs:
                if index not in self._there:
                    self._read(index, operator)
            for block in operator.blocks:
                self._there.update(block.inputs)
                self._run(block.operators)
                for index in block.outputs:
                    self._read(index, f"is handed out by block {quoted(block.name)}")
            for index in operator.outputs:
                if index in self._made:
                    name = quoted(self._graph.tensors[index].name)
                    raise GraphError(f"two operators make tensor {name}")
                self._made.add(index)
                self._there.add(index)

    def _read(self, index: int, by: Operator | str) -> None:
        root = index
        while root not in self._there and root in self._base:
            root = self._base[root]
        if root in self._there:
            return
        how = by if isinstance(by, str) else f"is read by {_describe(by)}"
        name = f"tensor {quoted(self._graph.tensors[root].name)}"
        if root != index:
            how = f"has the view {quoted(self._graph.tensors[index].name)}, which {how}"
        if root not in self._find_all_made():
            raise GraphError(f"nothing makes {name}, which {how}")
        self._check_cycles()
        raise GraphError(
            f"{name}, which {how}, is not made before: the operators are not in order, "
            "or run in a cycle"
        )

    def _check_cycles(self) -> None:
        """Raise `GraphError` if there is no order in which the outermost operators can run."""
        operators = self._graph.operators
        arcs = order.waits(operators, self._graph.views)
        if found := order.find_cycle(arcs):
            raise GraphError(f"the operators run in a cycle: {self._describe_cycle(found, arcs)}")
        arcs = order.on_streams(operators, arcs)
        several = len({operator.stream for operator in operators}) > 1
        if several and (found := order.find_cycle(arcs)):
            raise GraphError(
                f"the order of operators on their streams contradicts the arcs: "
                f"{self._describe_cycle(found, arcs)}"
            )

    def _describe_cycle(self, cycle: list[int], arcs: order.Waits) -> str:
        sentences = []
        for one, other in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            operator, tensor = self._graph.operators[one], arcs[one][other]
            reason = f"stream {operator.stream}"
            if tensor >= 0:
                reason = f"tensor {quoted(self._graph.tensors[tensor].name)}"
            waits_for = quoted(_name(self._graph.operators[other]))
            sentences.append(f"{quoted(_name(operator))} waits for {waits_for} ({reason})")
        return listed(sentences, quote=False)

    def _find_all_made(self) -> set[int]:
        return {
            tensor
            for operator in self._graph.operators
            for tensor in order.iterate_outputs(operator)
        }


def _describe(operator: Operator) -> str:
    return f"operator {quoted(_name(operator))}"


def _name(operator: Operator) -> str:
    return operator.name or operator.type
