"""Which storages of a program on parallel streams may share memory, and why (source 004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from memplan.errors import GraphError, UnsupportedError, listed, quoted, shown
from memplan.graph.layout import Layout, lay_out
from memplan.graph.model import Graph
from memplan.graph.steps import Rows, steps_of

__all__ = ["Algorithm", "UnsafePairs", "Why", "beyond_lifetimes", "unsafe_pairs", "why"]

Algorithm = Literal["memplan", "1", "1opt", "2"]


@dataclass(frozen=True, eq=False)
class UnsafePairs:
    """A symmetric relation, as compressed rows of its upper triangle.

    Attributes
    ----------
    layout
        Whose rows are told of: those of `layout.problem`.
    row_begin
        `int64`, one more than there are rows.
    other
        `int32`: row `i` is unsafe with `other[row_begin[i] : row_begin[i + 1]]`, ascending and all
        greater than `i`, and with those in whose rows it is.
    """

    layout: Layout
    row_begin: npt.NDArray[np.int64]
    other: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.other)

    def __contains__(self, pair: tuple[int, int]) -> bool:
        low, high = sorted(pair)
        row = self.other[self.row_begin[low] : self.row_begin[low + 1]]
        at = int(np.searchsorted(row, high))
        return at < len(row) and int(row[at]) == high


def unsafe_pairs(program: Graph | Layout, algorithm: Algorithm = "memplan") -> UnsafePairs:
    """Return the pairs of storages that some execution needs at the same time.

    Operators of a stream run one after the other; between streams, an operator waits for what it
    reads, and for nothing else. A storage is needed from the operator that makes it to the last
    that reads it, both included; inputs from before the first operator, outputs until after the
    last one, a workspace while its operator runs.

    Parameters
    ----------
    program
        A graph stands for `lay_out(graph)`.
    algorithm
        Ours, or one of those published: all give the same pairs, the others later.

    Raises
    ------
    GraphError
        As `lay_out`, and if operators times streams are more than 2^30.
    UnsupportedError
        If there is no such algorithm.
    """
    if algorithm not in get_args(Algorithm):
        known = ", ".join(get_args(Algorithm))
        raise UnsupportedError(f"there is no algorithm {shown(algorithm)}; choose one of {known}")
    layout = program if isinstance(program, Layout) else lay_out(program)
    row_begin, other = steps_of(layout).unsafe_pairs(algorithm)
    return UnsafePairs(layout, row_begin, other)


def beyond_lifetimes(program: Graph | Layout) -> Rows:
    """Return the unsafe pairs of which the lifetimes in the layout's problem say nothing.

    These are what parallel streams cost: usually few of all pairs, and found without the others.

    Parameters
    ----------
    program
        As for `unsafe_pairs`.

    Returns
    -------
    row_begin, other
        Compressed rows in both directions: row `i` has `other[row_begin[i] : row_begin[i + 1]]`,
        ascending.

    Raises
    ------
    GraphError
        As `lay_out`, and if operators times streams are more than 2^30.
    """
    layout = program if isinstance(program, Layout) else lay_out(program)
    return steps_of(layout).unsafe_beyond_order()


@dataclass(frozen=True)
class Why:
    """Why two storages may share memory, or may not.

    Attributes
    ----------
    graph
        Whose operators the indices below are: the outermost ones.
    a, b
        The storages that were asked about, by name.
    safe
        Whether no execution needs both at once.
    first
        Of a safe pair: the storage that is over before the other one is made.
    paths
        Of a safe pair: for each stream that needs it, operators from the last there to the one that
        makes the other. Each is a later one of the same stream, or waits for the one before.
    order
        Of an unsafe pair: all operators, in an order in which they may run.
    at
        Both are needed while `order[at[0] : at[1]]` run: one operator, or two at the same time. It
        is empty where both are there without an operator, as inputs are at the start.
    """

    graph: Graph
    a: str
    b: str
    safe: bool
    first: str = ""
    paths: tuple[tuple[int, ...], ...] = ()
    order: tuple[int, ...] = ()
    at: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        """Say it in a sentence or two."""
        return self._of_safe() if self.safe else self._of_unsafe()

    def _of_safe(self) -> str:
        second = quoted(self.b if self.first == self.a else self.a)
        text = f"{quoted(self.first)} and {second} may share memory: "
        if not self.paths:
            return f"{text}nobody needs {quoted(self.first)} after the start of the program."
        told = "; ".join(" -> ".join(map(self._name, path)) for path in self.paths)
        return f"{text}{quoted(self.first)} is over before {second} is made ({told})."

    def _of_unsafe(self) -> str:
        text = f"{quoted(self.a)} and {quoted(self.b)} may not share memory: both are needed"
        running = self.order[slice(*self.at)]
        if running:
            text += f" while {' and '.join(map(self._name, running))} "
            text += "runs" if len(running) == 1 else "run at the same time"
        reached: dict[int, int] = {}
        for index in self.order[: self.at[0]]:
            reached[self.graph.operators[index].stream] = index
        if reached:
            come_to = listed([self._name(index) for index in reached.values()], quote=False)
            return f"{text}, if the streams have come to {come_to}."
        return f"{text}, before any other operator." if running else f"{text} at the start."

    def _name(self, index: int) -> str:
        operator = self.graph.operators[index]
        name = quoted(operator.name) if operator.name else f"{operator.type} number {index}"
        return f"{name} (stream {operator.stream})"


def why(program: Graph | Layout, a: str, b: str) -> Why:
    """Say why two tensors may share memory, or may not.

    Parameters
    ----------
    program
        As for `unsafe_pairs`.
    a, b
        Names of tensors, or of storages (as "conv (workspace)").

    Raises
    ------
    GraphError
        If there is no such tensor, if it takes no memory that is planned, or if both have the same.
    """
    layout = program if isinstance(program, Layout) else lay_out(program)
    rows = _rows_by_name(layout)
    one, other = (_row(layout.graph, rows, name) for name in (a, b))
    name_of = [layout.storages[index].name for index in layout.rows]
    if one == other:
        shared = quoted(name_of[one])
        raise GraphError(f"{quoted(a)} and {quoted(b)} have the same memory, {shared}")
    steps = steps_of(layout)
    told = steps.witness(one, other)

    def operators(some: list[int]) -> tuple[int, ...]:
        """Return who is at work at these steps; the caller is not shown."""
        return tuple(dict.fromkeys(steps.operator[s] for s in some if steps.operator[s] >= 0))

    graph, a, b = layout.graph, name_of[one], name_of[other]
    if told.safe:
        paths = tuple(operators(path) for path in told.paths if steps.operator[path[0]] >= 0)
        return Why(graph, a, b, True, first=name_of[told.first], paths=paths)
    order = operators(told.order)
    running = operators(told.order[told.begin : told.end])
    start = order.index(running[0]) if running else len(operators(told.order[: told.begin]))
    return Why(graph, a, b, False, order=order, at=(start, start + len(running)))


def _rows_by_name(layout: Layout) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        rows[storage.name] = row
        rows.update((layout.graph.tensors[tensor].name, row) for tensor in storage.tensors)
    return rows


def _row(graph: Graph, rows: dict[str, int], name: str) -> int:
    if name in rows:
        return rows[name]
    if all(tensor.name != name for tensor in graph.tensors):
        raise GraphError(f"there is no tensor {quoted(name)}")
    raise GraphError(f"tensor {quoted(name)} takes no memory that is planned")
