"""Turns a graph into a problem: finds the tensors that share memory, and the storages to place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memplan.base.errors import GraphError, ProblemError, quoted
from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.conflicts import Conflicts
from memplan.programs.graph.liveness import Lives, lives
from memplan.programs.graph.model import Graph, Kind, Operator
from memplan.programs.graph.sharing import Sharing
from memplan.programs.graph.steps import steps_of

__all__ = ["Layout", "Storage", "find_storages", "lay_out"]


@dataclass(frozen=True, slots=True)
class Storage:
    """A piece of memory that one tensor has, or several share.

    Attributes
    ----------
    name
        The name of the tensor that the others are views of.
    tensors
        Indices of tensors in the graph, in the order in which they are made; empty for the
        workspace of an operator.
    offsets
        For each of these: its offset in the storage.
    bytes
        The size of the memory that they share.
    start, end
        One of them is needed during `[start, end)`, in the steps of `Lives`.
    kind
        The kind of the first of them that is not an intermediate; otherwise intermediate.
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
        The program.
    lives
        The lifetimes of its tensors.
    storages
        All storages that take memory at some time, planned or not.
    rows
        By row of the problem: the index of its storage.
    problem
        The problem of placing the planned storages; its ids are their names. Lifetimes are those
        of the graph's order of operators. Its conflicts are the other pairs that parallel streams
        may need together, and its groups are the tensors that must lie side by side.
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
    """Find the pieces of memory that a graph needs, and make the problem of placing them.

    Views and aliases share the memory of their base, which lives as long as any of them.

    Parameters
    ----------
    graph
        The program.
    include
        The kinds of tensors to plan; by default those that the format's runtime plans.
    in_place
        Whether to write outputs over inputs wherever an operator may, the input dies there and is
        at least as large, and both are planned. Less memory is live then, but tensors that share
        memory cannot be placed apart; so plan with and without, and take the better plan.
    pins
        Whether to keep the offsets that the file gives.
    round_up
        Whether sizes are rounded up to the graph's alignment, as runtimes do.

    Raises
    ------
    GraphError
        If a view reaches beyond its base; if aliases or pins contradict each other; if a member of
        a group is only a part of a storage, or is not planned though others of the group are; and
        if the result is not a valid `Problem` (it holds more than 2^62 bytes at one time, say).
    """
    kinds = graph.planned if include is None else frozenset(Kind(kind) for kind in include)
    times = lives(graph)
    sharing = Sharing(graph, times, pins=pins)
    if in_place:
        sharing.take_in_place(kinds)
    storages = _make_storages(graph, times, sharing) + _make_workspaces(graph, times)
    rows = tuple(index for index, storage in enumerate(storages) if storage.kind in kinds)
    planned = [storages[row] for row in rows]
    groups = _find_groups(graph, sharing, planned)
    problem = _make_problem(planned, graph.alignment, round_up, groups)
    layout = Layout(graph, times, tuple(storages), rows, problem)
    if not graph.has_streams:
        return layout
    conflicts = Conflicts.of_rows(*steps_of(layout).unsafe_beyond_order())
    problem = _make_problem(planned, graph.alignment, round_up, groups, conflicts)
    return replace(layout, problem=problem)


def find_storages(graph: Graph) -> list[Storage]:
    """Return the planned storages of a graph on one stream, in the order of `lay_out`.

    The bytes of its tensors may be numbers of any kind, such as `memplan.problem.many.Many`. Graphs
    with several streams or groups are refused.
    """
    if graph.groups or graph.has_streams:
        raise GraphError("the storages of groups and streams are not found without a problem")
    times = lives(graph)
    found = _make_storages(graph, times, Sharing(graph, times, pins=False))
    found += _make_workspaces(graph, times)
    return [storage for storage in found if storage.kind in graph.planned]


def _find_groups(graph: Graph, sharing: Sharing, planned: Sequence[Storage]) -> list[list[int]]:
    """Return the rows of every group, in the order of its tensors."""
    row_of = {tensor: row for row, storage in enumerate(planned) for tensor in storage.tensors}
    groups = []
    for number, group in enumerate(graph.groups):
        members = [tensor for tensor in group if graph.tensors[tensor].bytes > 0]
        rows = [row_of[tensor] for tensor in members if tensor in row_of]
        for tensor in members if rows else ():
            name = f"{quoted(graph.tensors[tensor].name)} of group {number}"
            if tensor not in row_of:
                other = quoted(planned[rows[0]].name)
                raise GraphError(f"{name} is not planned, but {other} of the same group is")
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


def _make_problem(
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


def _make_storages(graph: Graph, times: Lives, sharing: Sharing) -> list[Storage]:
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


def _make_workspaces(graph: Graph, times: Lives) -> list[Storage]:
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
