"""Converts a layout for the question which of its operators should run again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from memplan.levers.rewrite.again.costs import Costs, find_costs, time_of_move
from memplan.levers.rewrite.columns import columns_of
from memplan.levers.rewrite.effects import shared_by
from memplan.levers.rewrite.hazards import find_uses
from memplan.problem import OrderProblem, RecomputeProblem
from memplan.problem.columns import NONE
from memplan.programs.graph import Graph, Kind, Layout, Operator
from memplan.programs.graph.liveness import iterate_given, iterate_wanted
from memplan.programs.graph.updates import updates
from memplan.programs.sources.dialects import Shared, find_dialect

__all__ = ["Again", "again_of"]

_GIVEN: Final = (Kind.INPUT, Kind.CONSTANT, Kind.VARIABLE)


@dataclass(frozen=True)
class Again:
    """The question which operators of a graph should run again."""

    graph: Graph
    problem: RecomputeProblem  # its operators are the outermost ones of the graph
    # By tensor: its storage in the question; others are not in the arena.
    storage_of: Mapping[int, int]
    # The operators whose results are parts of an input, unchanged. They cost nothing, and are done
    # again with each copy that a reader needs.
    views: frozenset[int]
    handed_out: frozenset[int]  # tensors that are needed after the last operator
    moved: Mapping[int, int]  # by storage that may be moved: the tensor that fills it
    once: Mapping[int, str]  # by operator that may not run again: why, in a few words
    # The question that bounds are of: an operator with blocks is three, as in `Columns.relaxed`. It
    # is `problem` itself if there are no blocks.
    relaxed: RecomputeProblem
    # By operator of `relaxed`: the operator of `problem` that it is, or is a part of.
    whole: tuple[int, ...]

    def put_together(self, runs: Iterable[int]) -> tuple[int, ...]:
        """Return a sequence of `relaxed` as one of `problem`, with whole operators."""
        count, parts = len(self.problem), len(self.whole)
        return tuple(
            self.whole[run] if run < parts else count + run - parts
            for run in runs
            if run >= parts or run == 0 or self.whole[run - 1] != self.whole[run]
        )

    def to_file(self, runs: Iterable[int], order: Sequence[int]) -> tuple[int, ...]:
        """Return a sequence with the numbers of operators in the file.

        `n + t` then moves tensor `t` back, as storages have other numbers in other orders.
        """
        count = len(order)
        return tuple(order[run] if run < count else count + self.moved[run - count] for run in runs)

    def from_file(self, runs: Iterable[int], order: Sequence[int]) -> list[int]:
        """Return a sequence with the numbers of this question; -1 for what it does not have."""
        place = {op: at for at, op in enumerate(order)}
        count = len(order)
        place |= {count + tensor: count + storage for storage, tensor in self.moved.items()}
        return [place.get(run, -1) for run in runs]


def again_of(
    layout: Layout, costs: Costs | None = None, rates: tuple[int, int] | None = None
) -> Again:
    """Return the question for the outermost operators of a graph, and its planned storages.

    An operator may run again if it does nothing but compute its results from what it reads, and if
    these have the same values whenever it runs. So these run once:

    - what draws random numbers, has effects outside of the program, or has blocks;
    - what writes to an input, or to a storage that another operator writes to as well;
    - what reads state that an operator of the program writes to;
    - what makes a tensor that is not in the arena, or has to lie beside others.

    A storage may be moved out and back if one operator alone writes to it, or none to what is given
    and not handed out; and if nothing ties it to other storages. Nothing may be moved if copies
    outside are planned as well.

    Parameters
    ----------
    layout
        The graph laid out without in-place writes.
    costs
        See `find_costs`.
    rates
        Bytes in a second, out and back; `None` if nothing may be moved.
    """
    graph = layout.graph
    columns = columns_of(layout, in_place=False, inner_bounds=[0] * len(graph.operators))
    program = columns.problem
    uses = find_uses(layout, graph.operators)
    writers = {n: {use.operator for use in found if use.writes} for n, found in uses.items()}
    place = {tensor: n for n, each in enumerate(layout.storages) for tensor in each.tensors}
    name_of = {layout.storages[row].name: row for row in layout.rows}
    number_of = {name_of[name]: number for number, name in enumerate(program.storages)}
    views, fixed = _find_views(layout, place, writers, number_of)
    fixed |= _find_fixed(layout, place, writers)
    based = {view.tensor for view in graph.views}
    given = {place[tensor] for tensor in iterate_given(graph) if tensor in place}
    state = {n for n, found in writers.items() if len(found) > 1 or (found and n in given)}
    maker = np.full(len(program.size), -1, dtype=np.int32)
    for n, number in number_of.items():
        if n not in fixed | given and len(writers.get(n, ())) == 1:
            (op,) = writers[n]
            if op == program.users(number)[0]:
                maker[number] = op
    touched = [set[int]() for _ in graph.operators]
    for n, found in uses.items():
        for use in found:
            touched[use.operator].add(n)
    once: dict[int, str] = {}
    for at, operator in enumerate(graph.operators):
        made = [place[tensor] for tensor in operator.outputs if tensor in place]
        why = _find_effect(graph, operator)
        if state & touched[at]:
            why = why or "it reads or writes what an operator writes over"
        elif any(n not in number_of or maker[number_of[n]] != at for n in made):
            why = why or "what it makes is tied to the memory of other tensors"
        if why:
            once[at] = why
    moved = {
        number: roots[0]
        for n, number in number_of.items()
        if (maker[number] >= 0 or (n in given - fixed and not writers.get(n)))
        and not (n in given and program.wanted[number])
        and len(roots := [t for t in layout.storages[n].tensors if t not in based]) == 1
        and Kind.OUTSIDE not in graph.planned
    }
    moves = {}
    if rates is not None:
        moves = {number: time_of_move(int(program.size[number]), *rates) for number in moved}
    times = find_costs(graph, views, costs, tuple(moves.values()))
    move = np.full(len(maker), -1, dtype=np.int64)
    move[list(moves)] = times[len(graph.operators) :]
    problem = RecomputeProblem(
        program,
        np.array(times[: len(graph.operators)], dtype=np.int64),
        np.array([at not in once for at in range(len(graph.operators))], dtype=np.bool_),
        maker,
        move,
    )
    storage_of = {tensor: number_of[n] for tensor, n in place.items() if n in number_of}
    wanted = frozenset(iterate_wanted(graph))
    relaxed, whole = _relax(problem, columns.relaxed, graph)
    return Again(
        graph=graph,
        problem=problem,
        storage_of=storage_of,
        views=views,
        handed_out=wanted,
        moved=moved,
        once=once,
        relaxed=relaxed,
        whole=whole,
    )


def _relax(
    problem: RecomputeProblem, program: OrderProblem, graph: Graph
) -> tuple[RecomputeProblem, tuple[int, ...]]:
    """Return the question for the parts of operators with blocks, and whose parts they are.

    What such an operator touches is never made again and never moved, and it runs once.
    """
    operators = graph.operators
    whole = [at for at, each in enumerate(operators) for _ in range(3 if each.blocks else 1)]
    if program is problem.program:
        return problem, tuple(whole)
    cost, maker = np.zeros(len(whole), dtype=np.int64), problem.maker.copy()
    first = np.searchsorted(whole, range(len(operators)))
    cost[first] = problem.cost
    made = maker >= 0
    maker[made] = first[maker[made]]
    return RecomputeProblem(program, cost, problem.again[whole], maker, problem.move), tuple(whole)


def _find_effect(graph: Graph, operator: Operator) -> str:
    """Return what an operator does beside making results of its inputs alone, or nothing."""
    shared = shared_by(graph, operator)
    if operator.blocks:
        return "it has blocks of operators"
    if not operator.outputs:
        return "it makes nothing"
    if updates(operator):
        return "it writes over an input"
    if Shared.WORLD in shared:
        return "it has effects outside of the program"
    if shared or operator.type in find_dialect(graph.source).random_in_training:
        return "it draws random numbers"
    return ""


def _find_views(
    layout: Layout,
    place: Mapping[int, int],
    writers: Mapping[int, set[int]],
    number_of: Mapping[int, int],
) -> tuple[frozenset[int], set[int]]:
    """Return the operators that only make views, and the storages that others make views of.

    A view is made beside its reader, of the latest copy. That is free if the operator needs no
    other memory; the storage is never made again if it does.
    """
    views: set[int] = set()
    fixed: set[int] = set()
    for at, operator in enumerate(layout.graph.operators):
        made = {place[tensor] for tensor in operator.outputs if tensor in place}
        parts = {n for n in made if at not in writers.get(n, ())}
        if not parts:
            continue
        needed = {place[tensor] for tensor in operator.inputs if tensor in place}
        others = {n for n in needed - parts if n in number_of}
        alone = len(parts) == 1 and made == parts and parts <= needed and not others
        if alone and not operator.blocks and not operator.workspace:
            views.add(at)
        else:
            fixed |= parts
    return frozenset(views), fixed


def _find_fixed(
    layout: Layout, place: Mapping[int, int], writers: Mapping[int, set[int]]
) -> set[int]:
    """Return the storages that are never made again, whatever operator makes them.

    They are those that operators with blocks touch, have to share memory or to lie beside others,
    or have a tensor that no operator makes, and that is not given either.
    """
    graph = layout.graph
    blocks = [operator for operator in graph.operators if operator.blocks]
    tensors = {tensor for pair in graph.aliases for tensor in pair}
    tensors |= {tensor for outer in blocks for tensor in _iterate_mentioned(outer)}
    made = {tensor for operator in graph.operators for tensor in operator.outputs}
    made |= {view.tensor for view in graph.views}
    tensors |= set(range(len(graph.tensors))) - made - set(iterate_given(graph))
    fixed = {place[tensor] for tensor in tensors if tensor in place}
    group = layout.problem.group.tolist()
    return fixed | {n for row, n in enumerate(layout.rows) if group[row] != NONE}


def _iterate_mentioned(outer: Operator) -> Iterator[int]:
    for operator in outer.walk():
        yield from (*operator.inputs, *operator.outputs)
        for block in operator.blocks:
            yield from (*block.inputs, *block.outputs)
