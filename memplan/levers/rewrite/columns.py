"""Converts a layout for the question in which order its operators should run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from memplan.levers.rewrite.effects import shared_by
from memplan.levers.rewrite.hazards import hazards
from memplan.problem import OrderProblem
from memplan.programs.graph import Block, Graph, Kind, Layout, Operator
from memplan.programs.graph.liveness import iterate_given, iterate_wanted
from memplan.programs.graph.order import waits
from memplan.programs.sources.dialects import Shared, find_dialect

__all__ = ["Columns", "columns_of", "columns_of_block", "order_problem"]


@dataclass(frozen=True)
class Columns:
    """The question of an order, asked in two ways that differ for operators with blocks.

    Such an operator takes several steps, and what only its first step needs is over in the others.
    """

    # Each operator holds all that it touches while it runs, and the most that its blocks hold at
    # one time as its workspace. A peak is at least what the order needs.
    problem: OrderProblem
    # An operator with blocks is three: what enters it, its blocks, what leaves it; others may run
    # in between. A bound on this question is one on the first, and on what an order needs. It is
    # `problem` itself if there are no blocks.
    relaxed: OrderProblem
    # Bytes that in-place writes may save at one time which the questions do not know of.
    slack: int = 0


def order_problem(layout: Layout) -> OrderProblem:
    """Return the question for the outermost operators of a graph, without in-place writes."""
    return columns_of(
        layout, in_place=False, inner_bounds=[0] * len(layout.graph.operators)
    ).problem


def columns_of(layout: Layout, *, in_place: bool, inner_bounds: Sequence[int]) -> Columns:
    """Return the question for the outermost operators of a graph, and its planned storages.

    The graph is laid out without in-place writes; `in_place` says whether operators may write
    results over inputs that die. `inner_bounds` has by outermost operator what its blocks hold at
    least in any order of theirs, in bytes.
    """
    graph = layout.graph
    draft = _Draft(layout, graph.operators)
    draft.find_storages(set(iterate_given(graph)), set(iterate_wanted(graph)))
    draft.add_arcs()
    if in_place:
        draft.add_in_place()
    problem = draft.problem()
    return Columns(problem, _relax(problem, graph.operators, inner_bounds), draft.find_slack())


def columns_of_block(layout: Layout, outer: Operator, block: Block) -> Columns:
    """Return the question for the operators of a block, and the storages that only it touches.

    The parameters of the block are given and its results are wanted; in a loop, both are both.
    """
    draft = _Draft(layout, block.operators)
    given, wanted = set(block.inputs), set(block.outputs)
    if outer.loop:
        given = wanted = given | wanted
    graph = layout.graph
    # What lives all the time is counted around the block.
    elsewhere = _find_touched_elsewhere(graph, block)
    elsewhere.update(iterate_given(graph), iterate_wanted(graph))
    draft.find_storages(given, wanted, without=elsewhere)
    draft.add_arcs()
    if find_dialect(graph.source).copies_blocks:  # into the sub-graph and out of it
        draft.fence()
    problem = draft.problem()
    return Columns(problem, _relax(problem, block.operators, [0] * len(problem)))


class _Draft:
    """Collects the columns for operators that run one after the other."""

    def __init__(self, layout: Layout, operators: Sequence[Operator]) -> None:
        self._layout = layout
        self._operators = operators
        self._number_of = {
            id(inner): at for at, outer in enumerate(operators) for inner in outer.walk()
        }
        self._touched = [set(_iterate_touched(operator)) for operator in operators]
        self._rows: list[int] = []  # by storage of the question: the row of the layout
        self._storage_of: dict[int, int] = {}  # by tensor
        self._users: list[set[int]] = []
        self._given: list[bool] = []
        self._wanted: list[bool] = []
        self._inner: dict[int, list[int]] = defaultdict(list)  # by operator: rows inside it alone
        self._arcs: set[tuple[int, int]] = set()
        self._in_place: set[tuple[int, int, int]] = set()

    def find_storages(
        self, given: Set[int], wanted: Set[int], without: Set[int] = frozenset()
    ) -> None:
        """Find the planned storages that these operators touch, and those inside one of them.

        Those that have a tensor of `without` are left out.
        """
        users_of: dict[int, set[int]] = defaultdict(set)
        for at, touched in enumerate(self._touched):
            for tensor in touched:
                users_of[tensor].add(at)
        for row, index in enumerate(self._layout.rows):
            storage = self._layout.storages[index]
            if storage.workspace_of is not None:
                at = self._number_of.get(id(storage.workspace_of), -1)
                if at >= 0:
                    self._inner[at].append(row)
                continue
            users = set().union(*(users_of[tensor] for tensor in storage.tensors))
            if not without.isdisjoint(storage.tensors):
                continue
            is_given = not given.isdisjoint(storage.tensors)
            is_wanted = not wanted.isdisjoint(storage.tensors)
            if len(users) == 1 and not is_given and not is_wanted:
                (user,) = users
                if self._operators[user].blocks:
                    self._inner[user].append(row)
                    continue
            if not users and not (is_given and is_wanted):
                continue  # nothing here touches it: lay_out has it in the first step, if anywhere
            self._storage_of.update(dict.fromkeys(storage.tensors, len(self._rows)))
            self._rows.append(row)
            self._users.append(users)
            self._given.append(is_given)
            self._wanted.append(is_wanted)

    def add_arcs(self) -> None:
        """Find which operators wait for which: for results, in effects, and in memory."""
        graph = self._layout.graph
        for at, awaited in enumerate(waits(self._operators, graph.views)):
            self._arcs.update((other, at) for other in awaited)
        self._arcs.update(hazards(self._layout, self._operators))
        last: dict[Shared, int] = {}
        for at, operator in enumerate(self._operators):
            for shared in shared_by(graph, operator):
                if shared in last:
                    self._arcs.add((last[shared], at))
                last[shared] = at

    def fence(self) -> None:
        """Keep the first operator first, and the last one last."""
        last = len(self._operators) - 1
        self._arcs.update((0, at) for at in range(1, last + 1))
        self._arcs.update((at, last) for at in range(last))

    def add_in_place(self) -> None:
        """Find the pairs of storages of which one may be written over the other."""
        for at, operator in enumerate(self._operators):
            for old, new in operator.in_place:
                one, other = self._storage_of.get(old), self._storage_of.get(new)
                if one is None or other is None or one == other:
                    continue
                read = {tensor for tensor in operator.inputs if self._storage_of.get(tensor) == one}
                if read == {old} and self._may_overwrite(one, other, old, new):
                    self._in_place.add((at, one, other))

    def _may_overwrite(self, one: int, other: int, old: int, new: int) -> bool:
        """Return whether any layout writes the storage `other` over `one`, whatever the order.

        Layouts write whole storages, over what is at least as large, is not wanted after the last
        operator and was not there before the first; and no output over an input of the graph.
        """
        layout = self._layout
        before, after = (layout.storages[layout.rows[self._rows[each]]] for each in (one, other))
        if self._wanted[one] or self._given[other]:
            return False
        if before.kind is Kind.INPUT and after.kind is Kind.OUTPUT:
            return False
        whole = after.offsets[after.tensors.index(new)] == 0
        return whole and after.bytes <= layout.graph.tensors[old].bytes

    def find_slack(self) -> int:
        """Return what in-place writes may save at one time that the question does not know of.

        It knows of writes to storages that the operator makes first in every order.
        """
        size = self._sizes()
        after: dict[int, list[int]] = defaultdict(list)
        for one, other in self._arcs:
            after[one].append(other)
        saved: dict[int, int] = defaultdict(int)
        for at, _, new in self._in_place:
            others = self._users[new] - {at}
            if not others <= _find_later(after, at, max(others, default=at)):
                saved[at] += size[new]
        return max(saved.values(), default=0)

    def _find_held_inside(self) -> list[int]:
        """Return by operator the most bytes that it alone holds at one time: blocks, workspaces."""
        problem = self._layout.problem
        held = [0] * len(self._operators)
        for at, rows in self._inner.items():
            events = []
            for row in rows:
                bytes = int(problem.size[row])
                events += [(int(problem.start[row]), bytes), (int(problem.end[row]), -bytes)]
            live = 0
            for _, change in sorted(events):  # what ends at a time goes before what begins there
                live += change
                held[at] = max(held[at], live)
        return held

    def problem(self) -> OrderProblem:
        """Return the columns."""
        layout, workspace = self._layout, self._find_held_inside()
        return OrderProblem(
            workspace=np.array(workspace, dtype=np.int64),
            arcs=np.array(sorted(self._arcs), dtype=np.int32).reshape(-1, 2),
            size=np.array(self._sizes(), dtype=np.int64),
            given=np.array(self._given, dtype=np.bool_),
            wanted=np.array(self._wanted, dtype=np.bool_),
            user_begin=np.cumsum([0, *map(len, self._users)], dtype=np.int64),
            user=np.array(
                [user for users in self._users for user in sorted(users)], dtype=np.int32
            ),
            in_place=np.array(sorted(self._in_place), dtype=np.int32).reshape(-1, 3),
            operators=tuple(operator.name or operator.type for operator in self._operators),
            storages=tuple(layout.storages[layout.rows[row]].name for row in self._rows),
        )

    def _sizes(self) -> list[int]:
        return [int(self._layout.problem.size[row]) for row in self._rows]


def _find_later(after: Mapping[int, Sequence[int]], first: int, last: int) -> set[int]:
    """Return the operators up to `last` that wait for `first`, also through others."""
    found: set[int] = set()
    todo = [first]
    while todo:
        later = {other for other in after.get(todo.pop(), ()) if other <= last} - found
        found |= later
        todo += later
    return found


def _relax(
    problem: OrderProblem, operators: Sequence[Operator], bounds: Sequence[int]
) -> OrderProblem:
    """Return the question in which an operator with blocks is three, one after the other.

    What was there before is needed as it is entered, and what it makes as it is left. If neither
    is sure in every order, the operator is no user of the storage; so the least of what it may
    need is counted.
    """
    if not any(operator.blocks for operator in operators):
        return problem
    enter: list[int] = []
    leave: list[int] = []
    workspace: list[int] = []
    names: list[str] = []
    arcs: list[tuple[int, int]] = []
    for at, operator in enumerate(operators):
        enter.append(len(workspace))
        if operator.blocks:
            workspace += [0, bounds[at], 0]
            names += [f"{problem.operators[at]} ({part})" for part in ("enter", "blocks", "leave")]
            arcs += [(enter[at], enter[at] + 1), (enter[at] + 1, enter[at] + 2)]
        else:
            workspace.append(int(problem.workspace[at]))
            names.append(problem.operators[at])
        leave.append(len(workspace) - 1)
    known = {(one, other) for one, other in problem.arcs.tolist()}
    arcs += [(leave[one], enter[other]) for one, other in known]
    users = []
    for storage in range(len(problem.size)):
        old = problem.users(storage).tolist()
        found = set()
        for at in old:
            others = [other for other in old if other != at]
            if problem.given[storage] or any((other, at) in known for other in others):
                found.add(enter[at])
            elif all((at, other) in known for other in others):
                found.add(leave[at])
        users.append(sorted(found))
    pairs = [
        (enter[at], old, new)
        for at, old, new in problem.in_place.tolist()
        if enter[at] == leave[at] and {enter[at]} <= set(users[old]) & set(users[new])
    ]
    return OrderProblem(
        workspace=np.array(workspace, dtype=np.int64),
        arcs=np.array(sorted(arcs), dtype=np.int32).reshape(-1, 2),
        size=problem.size,
        given=problem.given,
        wanted=problem.wanted,
        user_begin=np.cumsum([0, *map(len, users)], dtype=np.int64),
        user=np.array([user for each in users for user in each], dtype=np.int32),
        in_place=np.array(pairs, dtype=np.int32).reshape(-1, 3),
        operators=tuple(names),
        storages=problem.storages,
    )


def _find_touched_elsewhere(graph: Graph, block: Block) -> set[int]:
    """Return the tensors that are touched outside of a block."""
    found: set[int] = set()
    todo = list(graph.operators)
    while todo:
        operator = todo.pop()
        found.update(operator.inputs, operator.outputs)
        for inner in operator.blocks:
            if inner is not block:
                found.update(inner.inputs, inner.outputs)
                todo.extend(inner.operators)
    return found


def _iterate_touched(operator: Operator) -> Iterator[int]:
    for inner in operator.walk():
        yield from inner.inputs
        yield from inner.outputs
        for block in inner.blocks:
            yield from block.inputs
            yield from block.outputs
