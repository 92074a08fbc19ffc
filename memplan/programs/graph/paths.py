"""The paths of a program that chooses between branches, and the layout of each.

    a = Conv(x)                          conservative   enter  then  else  leave
    if cond:  b = Big(a)                 a              [-------------------)
    else:     d = Small(a)               b                     [-----------)    it may be the result
                                         d                           [-----)
    path cond=else: as if the operator had only this branch, so that b does not exist

The conservative layout holds what any branch needs, because it does not know which one runs. The
layout of a path is that of the program in which some choices are made already. Both have the same
pieces of memory, under the same names; a path has fewer of them, and they live shorter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.conflicts import Conflicts
from memplan.problem.groups import restrict_groups
from memplan.programs.graph.layout import Layout, Storage
from memplan.programs.graph.liveness import Lives, iterate_given, lives
from memplan.programs.graph.model import Block, Graph, Kind, Operator
from memplan.programs.graph.steps import steps_of

__all__ = ["BEFORE_RUN", "Choice", "Path", "find_choices", "find_first_use", "list_paths", "narrow"]

Path = Mapping[int, int]
"""By index of a choice: the index of the branch that runs. Choices that are not in it are open."""

BEFORE_RUN = -1  # the step of what is known, or is there, before the first operator
_ALWAYS = -2  # what outlives a run is there before any condition is known


@dataclass(frozen=True, slots=True)
class Choice:
    """An operator that runs one of several blocks, once in a run.

    Attributes
    ----------
    name
        The name of the operator, or of its first output if that is not distinct.
    branches
        The names of its blocks; "1", "2", ... if these are not distinct.
    operator
        The number of the operator in the order of `Graph.walk`.
    step
        The step of `Lives` in which it is entered: then its condition is known at the latest.
    inside
        The choice and the branch that it lies in, or `None`.
    given
        Whether the condition is an input of the program, so that the caller knows it: the first
        input of the operator is one of the program's, with a single element of type "bool".
    """

    name: str
    branches: tuple[str, ...]
    operator: int
    step: int
    inside: tuple[int, int] | None
    given: bool


def find_choices(graph: Graph, times: Lives) -> tuple[Choice, ...]:
    """Return the operators that run one of several blocks, in the order of the program.

    Those inside a loop are left out, because they may choose otherwise in every round.
    """
    found: list[Choice] = []
    numbers = count()

    def visit(operators: Iterable[Operator], inside: tuple[int, int] | None, loop: bool) -> None:
        for operator in operators:
            number = next(numbers)
            chooses = len(operator.blocks) > 1 and not operator.loop and not loop
            if chooses:
                step = times.spans[number][0]
                at = len(found)
                given = _is_given(graph, operator)
                found.append(Choice("", _name_branches(operator), number, step, inside, given))
                named.append(operator)
            for branch, block in enumerate(operator.blocks):
                here = (at, branch) if chooses else inside
                visit(block.operators, here, loop or operator.loop)

    named: list[Operator] = []
    visit(graph.operators, None, False)
    names = _name_choices(graph, named)
    return tuple(replace(each, name=name) for each, name in zip(found, names, strict=True))


def _is_given(graph: Graph, operator: Operator) -> bool:
    if not operator.inputs or operator.inputs[0] not in graph.inputs:
        return False
    condition = graph.tensors[operator.inputs[0]]
    return condition.dtype == "bool" and condition.bytes == 1


def _name_branches(operator: Operator) -> tuple[str, ...]:
    names = tuple(block.name for block in operator.blocks)
    distinct = all(names) and len(set(names)) == len(names)
    return names if distinct else tuple(str(at + 1) for at in range(len(names)))


def _name_choices(graph: Graph, operators: Sequence[Operator]) -> Iterator[str]:
    """Yield a distinct name for each: its own, or else that of its first output."""
    outputs = [graph.tensors[each.outputs[0]].name if each.outputs else "" for each in operators]
    used = Counter([each.name for each in operators] + outputs)
    for at, (operator, output) in enumerate(zip(operators, outputs, strict=True)):
        own = operator.name and used[operator.name] == 1 + (operator.name == output)
        yield operator.name if own else output or f"{operator.type} number {at + 1}"


def list_paths(choices: Sequence[Choice], most: int) -> list[dict[int, int]] | None:
    """Return every path on which no choice is open; `None` if there are more than `most`.

    A choice inside a branch that does not run is not on a path.
    """
    paths: list[dict[int, int]] = [{}]
    for index, choice in enumerate(choices):
        longer = []
        for path in paths:
            if choice.inside is not None and path.get(choice.inside[0]) != choice.inside[1]:
                longer.append(path)
                continue
            longer += [path | {index: branch} for branch in range(len(choice.branches))]
        paths = longer
        if len(paths) > most:
            return None
    return paths


def find_first_use(layout: Layout) -> Column:
    """Return for each row of the problem the step from which it is needed.

    It is `BEFORE_RUN` for what the caller gives, and less for what outlives a run.
    """
    graph = layout.graph
    given = dict.fromkeys(iterate_given(graph), BEFORE_RUN)
    for index in given:
        if graph.tensors[index].kind in (Kind.CONSTANT, Kind.VARIABLE):
            given[index] = _ALWAYS
    storages = [layout.storages[index] for index in layout.rows]
    first = [
        min([storage.start, *(given[each] for each in storage.tensors if each in given)])
        for storage in storages
    ]
    return np.array(first, dtype=np.int64)


def narrow(
    layout: Layout, problem: Problem, choices: Sequence[Choice], path: Path
) -> tuple[Layout, Column]:
    """Return the layout of a path, and the rows of the program's problem that are left in it.

    The pieces of memory are those of the whole program, so that a name means the same in all
    layouts. Each is as long and as large as the tensors need which are used on the path.

    Parameters
    ----------
    layout
        The layout of the whole program.
    problem
        Its problem, possibly with other pins, alignments or reserved ranges than in the layout.
    choices
        As `find_choices` returns them.
    path
        The choices that are made.

    Raises
    ------
    GraphError
        If the program reads on this path what only another branch makes.
    """
    taken = {choices[index].operator: branch for index, branch in path.items()}
    graph, kept = _take(layout.graph, taken)
    times = lives(graph)
    span_of = dict(zip(kept, times.spans, strict=True))
    at_work = _number_workspaces(layout)
    storages, origin = [], []
    for index, storage in enumerate(layout.storages):
        if storage.workspace_of is not None:
            span = span_of.get(at_work[index])
            left = span and replace(storage, start=span[0], end=span[1])
        else:
            left = _shorten(storage, graph, times)
        if left:
            storages.append(left)
            origin.append(index)
    row_of = {index: row for row, index in enumerate(layout.rows)}
    rows = tuple(at for at, index in enumerate(origin) if index in row_of)
    old = np.array([row_of[origin[at]] for at in rows], dtype=np.int64)
    planned = [storages[at] for at in rows]
    made = Layout(graph, times, tuple(storages), rows, _select(problem, old, planned, graph))
    if graph.has_streams:
        conflicts = Conflicts.of_rows(*steps_of(made).unsafe_beyond_order())
        made = replace(made, problem=_select(problem, old, planned, graph, conflicts))
    return made, old


def _take(graph: Graph, taken: Mapping[int, int]) -> tuple[Graph, list[int]]:
    """Return a graph with one block of some operators, and the numbers of operators left in it."""
    numbers, kept = count(), []

    def run(operators: Iterable[Operator], runs: bool) -> Iterator[Operator]:
        for operator in operators:
            number = next(numbers)
            if runs:
                kept.append(number)
            blocks = []
            for at, block in enumerate(operator.blocks):
                left = runs and taken.get(number, at) == at
                inner = tuple(run(block.operators, left))
                if left:
                    blocks.append(replace(block, operators=inner))
            if number in taken and runs:
                blocks = [_keep_results(operator, blocks[0])]
            yield replace(operator, blocks=tuple(blocks)) if operator.blocks else operator

    return replace(graph, operators=tuple(run(graph.operators, True))), kept


def _keep_results(operator: Operator, block: Block) -> Block:
    """Return a block that holds the results from the beginning if the first block does so."""
    held = (each for each in operator.blocks[0].inputs if each in operator.outputs)
    return replace(block, inputs=tuple(dict.fromkeys((*block.inputs, *held))))


def _number_workspaces(layout: Layout) -> dict[int, int]:
    """Return by index of a storage that is a workspace the number of its operator."""
    holders = [number for number, each in enumerate(layout.graph.walk()) if each.workspace]
    storages = [at for at, each in enumerate(layout.storages) if each.workspace_of is not None]
    return dict(zip(storages, holders, strict=True))


def _shorten(storage: Storage, graph: Graph, times: Lives) -> Storage | None:
    """Return what is left of a storage if only its used tensors count; `None` if none is used."""
    start, end = times.start, times.end
    used = [
        (tensor, at)
        for tensor, at in zip(storage.tensors, storage.offsets, strict=True)
        if end[tensor] > start[tensor]
    ]
    size = max((at + graph.tensors[tensor].bytes for tensor, at in used), default=0)
    if not size:
        return None
    return replace(
        storage,
        tensors=tuple(tensor for tensor, _ in used),
        offsets=tuple(at for _, at in used),
        bytes=size,
        start=min(start[tensor] for tensor, _ in used),
        end=max(end[tensor] for tensor, _ in used),
    )


def _select(
    problem: Problem,
    rows: Column,
    storages: Sequence[Storage],
    graph: Graph,
    conflicts: Conflicts | None = None,
) -> Problem:
    """Return the problem of some rows, with the lifetimes and sizes of these storages."""
    step = graph.alignment
    size = [-(-each.bytes // step) * step for each in storages]
    return Problem.from_arrays(
        [each.start for each in storages],
        [each.end for each in storages],
        np.minimum(size, problem.size[rows]) if storages else [],
        ids=[problem.ids[row] for row in rows.tolist()],
        alignment=problem.alignment[rows],
        pin=problem.pin[rows],
        reserved=problem.reserved,
        conflicts=conflicts,
        groups=restrict_groups(problem.group, problem.lead, rows),
    )
