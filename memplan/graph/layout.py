"""From a graph to a problem: which tensors share memory, and what is left to be placed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memplan.errors import GraphError, ProblemError, quoted
from memplan.graph.liveness import Lives, lives
from memplan.graph.model import Graph, Kind, Operator
from memplan.graph.sharing import Sharing
from memplan.graph.steps import steps_of
from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.conflicts import Conflicts

__all__ = ["Layout", "Storage", "lay_out"]


@dataclass(frozen=True, slots=True)
class Storage:
    """A piece of memory that one tensor has, or several share.

    Attributes
    ----------
    name
        Of the tensor that the others are views of.
    tensors
        Indices into the tensors of the graph, in the order in which they are made; empty for
        the workspace of an operator.
    offsets
        By these: where each begins in the storage.
    bytes
        What all of them need.
    start, end
        When one of them is needed: `[start, end)` in the steps of `Lives`.
    kind
        Of the first of them that is more than an intermediate, or that.
    pin
        The offset that the file gives it, or `None`.
    workspace_of
        The operator whose workspace it is, or `None`.
    """

    name: str
    tensors: tuple[int, ...]
    offsets: tuple[int, ...]
    bytes: int
    start: int
    end: int
    kind: Kind
    pin: int | None = None
    workspace_of: Operator | None = None


@dataclass(frozen=True)
class Layout:
    """A graph's storages, and the problem of placing those that are planned.

    Attributes
    ----------
    graph
        What was laid out.
    lives
        When its tensors are needed.
    storages
        All of them that take memory at some time, planned or not.
    rows
        By row of the problem: the index of its storage.
    problem
        What is to be placed; its ids are the names of storages. Lifetimes are those of the graph's
        own order of operators. What streams may need together beyond them are its conflicts, and
        tensors that must lie side by side its groups.
    """

    graph: Graph
    lives: Lives
    storages: tuple[Storage, ...]
    rows: tuple[int, ...]
    problem: Problem


def lay_out(
    graph: Graph,
    *,
    include: Iterable[Kind | str] | None = None,
    in_place: bool = False,
    pins: bool = True,
    round_up: bool = True,
) -> Layout:
    """Return which pieces of memory a graph needs, and the problem of placing them.

    Views and aliases share the memory of their base, which lives as long as any of them.

    Parameters
    ----------
    graph
        What is to run.
    include
        The kinds that are planned; the runtime's own choice by default.
    in_place
        Whether to take every in-place choice: an output over an input of at least its size that
        dies there, both planned. Less memory is live then, but what shares memory cannot be placed
        apart: take the better of the two plans.
    pins
        Whether offsets that the file gives are kept.
    round_up
        Whether sizes are rounded up to the graph's alignment, as runtimes do.

    Raises
    ------
    GraphError
        If a view reaches beyond its base, if aliases or pins contradict each other, if a group has
        a member that is only a part of what it shares its memory with, or one that is not planned
        beside some that are, and if what is to be placed is no `Problem` (it holds more than 2^62
        bytes at one time, for example).
    """
    kinds = graph.planned if include is None else frozenset(Kind(kind) for kind in include)
    times = lives(graph)
    sharing = Sharing(graph, times, pins=pins)
    if in_place:
        sharing.take_in_place(kinds)
    storages = _storages(graph, times, sharing) + _workspaces(graph, times)
    rows = tuple(index for index, storage in enumerate(storages) if storage.kind in kinds)
    planned = [storages[row] for row in rows]
    groups = _groups(graph, sharing, planned)
    problem = _problem(planned, graph.alignment, round_up, groups)
    layout = Layout(graph, times, tuple(storages), rows, problem)
    if len({operator.stream for operator in graph.operators}) < 2:
        return layout
    conflicts = Conflicts.of_rows(*steps_of(layout).unsafe_beyond_order())
    problem = _problem(planned, graph.alignment, round_up, groups, conflicts)
    return replace(layout, problem=problem)


def _groups(graph: Graph, sharing: Sharing, planned: Sequence[Storage]) -> list[list[int]]:
    """Return the rows of every group, in the order of its tensors."""
    row_of = {tensor: row for row, storage in enumerate(planned) for tensor in storage.tensors}
    groups = []
    for number, group in enumerate(graph.groups):
        members = [tensor for tensor in group if graph.tensors[tensor].bytes > 0]
        rows = [row_of[tensor] for tensor in members if tensor in row_of]
        for tensor in members if rows else ():
            name = f"{quoted(graph.tensors[tensor].name)} of group {number}"
            if tensor not in row_of:
                beside = quoted(planned[rows[0]].name)
                raise GraphError(f"{name} is not planned, and {beside} beside it is")
            storage = planned[row_of[tensor]]
            if sharing.find(tensor)[1] or graph.tensors[tensor].bytes != storage.bytes:
                raise GraphError(
                    f"{name} is only a part of {quoted(storage.name)}; groups are of whole tensors"
                )
        if len(set(rows)) < len(rows):
            raise GraphError(f"two tensors of group {number} have the same memory")
        if rows:
            groups.append(rows)
    return groups


def _problem(
    storages: Sequence[Storage],
    alignment: int,
    round_up: bool,
    groups: Sequence[Sequence[int]],
    conflicts: Conflicts | None = None,
) -> Problem:
    step = alignment if round_up else 1
    try:
        return Problem.from_arrays(
            [s.start for s in storages],
            [s.end for s in storages],
            [-(-s.bytes // step) * step for s in storages],
            ids=[s.name for s in storages],
            alignment=[alignment] * len(storages),
            pin=[NONE if s.pin is None else s.pin for s in storages],
            conflicts=conflicts,
            groups=groups,
        )
    except ProblemError as error:
        raise GraphError(str(error)) from None


def _storages(graph: Graph, times: Lives, sharing: Sharing) -> list[Storage]:
    found = []
    for base, group in sharing.groups().items():
        if group.end == group.start or group.bytes == 0:
            continue
        tensors = sorted(group.tensors, key=lambda tensor: (times.start[tensor], tensor))
        found.append(
            Storage(
                graph.tensors[base].name,
                tuple(tensors),
                tuple(sharing.find(tensor)[1] for tensor in tensors),
                group.bytes,
                group.start,
                group.end,
                group.kind,
                group.pin,
            )
        )
    return found


def _workspaces(graph: Graph, times: Lives) -> list[Storage]:
    names = {tensor.name for tensor in graph.tensors}
    found = []
    for operator, (start, end) in zip(graph.walk(), times.spans, strict=True):
        if operator.workspace == 0:
            continue
        name = plain = f"{operator.name or operator.type} (workspace)"
        number = 1
        while name in names:
            number += 1
            name = f"{plain} {number}"
        names.add(name)
        found.append(
            Storage(
                name,
                (),
                (),
                operator.workspace,
                start,
                end,
                Kind.WORKSPACE,
                workspace_of=operator,
            )
        )
    return found
