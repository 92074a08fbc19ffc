"""Which storages of a program on parallel streams may share memory, and why (SOMAS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from memplan.base.errors import GraphError, UnsupportedError, listed, quoted, shown
from memplan.programs.graph.layout import Layout, lay_out
from memplan.programs.graph.model import Graph
from memplan.programs.graph.steps import Rows, steps_of

__all__ = ["Algorithm", "UnsafePairs", "Why", "beyond_lifetimes", "unsafe_pairs", "why"]

Algorithm = Literal["memplan", "1", "1opt", "2"]


@dataclass(frozen=True, eq=False)
class UnsafePairs:
    """The unsafe pairs of storages, as compressed rows of the upper triangle of the relation.

    Attributes
    ----------
    layout
        The layout; rows are those of `layout.problem`.
    row_begin
        Shape (n + 1,), `int64`.
    other
        `int32`: row `i` is unsafe with `other[row_begin[i] : row_begin[i + 1]]`, ascending and all
        greater than `i`. The relation is symmetric.
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
    """Return the pairs of storages that are needed at the same time in some execution.

    Operators of a stream run one after the other; between streams, an operator waits for the
    makers of what it reads, and for nothing else. A storage is needed from the operator that makes
    it to the last that reads it, both included; inputs from before the first operator, outputs
    until after the last one, a workspace while its operator runs.

    Parameters
    ----------
    program
        A graph stands for `lay_out(graph)`.
    algorithm
        "memplan", or one of those published (SOMAS). All return the same pairs; "memplan" is
        the fastest.

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
    """Return the unsafe pairs whose lifetimes in the layout's problem do not meet.

    These are the cost of parallel streams. They are usually few, and are found without computing
    the other pairs.

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
        The program; indices below are those of its outermost operators.
    a, b
        The names of the two storages.
    safe
        Whether they are never needed at the same time, in any execution.
    first
        Of a safe pair: the storage that is over before the other one is made.
    paths
        Of a safe pair: for each stream that needs `first`, a path from the last operator there
        that needs it to the maker of the other storage. Each operator on a path comes later on the
        same stream than the one before, or waits for it.
    order
        Of an unsafe pair: all operators, in an order in which they may run.
    at
        Both are needed while `order[at[0] : at[1]]` run: one operator, or two at the same time. It
        is empty if both exist while no operator runs, as inputs do at the start.
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
        """Return the reason in one sentence."""
        return self._explain_safe() if self.safe else self._explain_unsafe()

    def _explain_safe(self) -> str:
        second = quoted(self.b if self.first == self.a else self.a)
        text = f"{quoted(self.first)} and {second} may share memory: "
        if not self.paths:
            return f"{text}{quoted(self.first)} is not needed after the start of the program."
        paths = "; ".join(" -> ".join(map(self._name, path)) for path in self.paths)
        return f"{text}{quoted(self.first)} is over before {second} is made ({paths})."

    def _explain_unsafe(self) -> str:
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
    """Explain why two tensors may share memory, or may not.

    Parameters
    ----------
    program
        As for `unsafe_pairs`.
    a, b
        Names of tensors, or of storages (as "conv (workspace)").

    Raises
    ------
    GraphError
        If there is no such tensor, if it has no planned memory, or if both have the same memory.
    """
    layout = program if isinstance(program, Layout) else lay_out(program)
    rows = _map_names(layout)
    one, other = (_find_row(layout.graph, rows, name) for name in (a, b))
    name_of = [layout.storages[index].name for index in layout.rows]
    if one == other:
        shared = quoted(name_of[one])
        raise GraphError(f"{quoted(a)} and {quoted(b)} have the same memory, {shared}")
    steps = steps_of(layout)
    witness = steps.witness(one, other)

    def operators(some: list[int]) -> tuple[int, ...]:
        """Return the operators that run at these steps; the caller's steps are left out."""
        return tuple(dict.fromkeys(steps.operator[s] for s in some if steps.operator[s] >= 0))

    graph, a, b = layout.graph, name_of[one], name_of[other]
    if witness.safe:
        paths = tuple(operators(path) for path in witness.paths if steps.operator[path[0]] >= 0)
        return Why(graph, a, b, True, first=name_of[witness.first], paths=paths)
    order = operators(witness.order)
    running = operators(witness.order[witness.begin : witness.end])
    start = order.index(running[0]) if running else len(operators(witness.order[: witness.begin]))
    return Why(graph, a, b, False, order=order, at=(start, start + len(running)))


def _map_names(layout: Layout) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        rows[storage.name] = row
        rows.update((layout.graph.tensors[tensor].name, row) for tensor in storage.tensors)
    return rows


def _find_row(graph: Graph, rows: dict[str, int], name: str) -> int:
    if name in rows:
        return rows[name]
    if all(tensor.name != name for tensor in graph.tensors):
        raise GraphError(f"there is no tensor {quoted(name)}")
    raise GraphError(f"tensor {quoted(name)} takes no memory that is planned")
