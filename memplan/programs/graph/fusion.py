"""Finds runs of operators which, fused into one, would not store the tensors between them.

    step       0     1     2     3               one step for conv, add and relu
    operator   conv  add   relu  pool            fused   pool
    a          [--)                              [----)         read by conv
    b          [--------)                        -              made by conv, read by add alone
    c                [--------)                  -              made by add, read by relu alone
    d                      [--------)            [------------)

All that the operators of a run read and make otherwise is needed at once in the fused step, also
their workspaces. So a fusion may as well raise the load. Files do not say which operators a runtime
or a compiler can fuse; the user must judge it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.programs.graph.layout import Layout
from memplan.programs.graph.model import Graph, Kind, Operator
from memplan.programs.graph.remake import describe_operator

__all__ = ["Fusion", "choose_together", "find_fusions"]

_LONGEST = 4  # operators of a run


@dataclass(frozen=True, slots=True)
class Fusion:
    """Operators that follow each other and could be one."""

    rows: tuple[int, ...]  # of the problem, which would not be stored
    start: int  # the steps `[start, end)` of these operators, which become one step
    end: int
    operators: tuple[str, ...]  # as "name (type)", in their order


def find_fusions(layout: Layout) -> tuple[Fusion, ...]:
    """Return the runs of operators that could be one; with several streams, no runs are known.

    They are runs of two to four outermost operators without blocks, by their first step and length.
    Each makes an intermediate tensor that only the next one reads. A tensor which shares memory
    with another one, is in a group or has a pin stays stored. A run is left out if an operator
    writes to memory that an earlier one of the run reads.
    """
    graph = layout.graph
    if graph.has_streams:
        return ()
    steps = _find_steps(layout)
    internal = _find_internal(layout)
    storage_of = {
        tensor: index for index, storage in enumerate(layout.storages) for tensor in storage.tensors
    }
    found = []
    for first, operator in enumerate(graph.operators):
        if operator.blocks:
            continue
        for last in range(first + 1, min(first + _LONGEST, len(graph.operators))):
            run = graph.operators[first : last + 1]
            if run[-1].blocks or not _is_linked(run[-2], run[-1], internal):
                break
            if _overwrites(run, storage_of):
                break
            read = {tensor for each in run for tensor in each.inputs}
            made = [tensor for each in run for tensor in each.outputs]
            rows = tuple(internal[tensor] for tensor in made if tensor in read & internal.keys())
            names = tuple(map(describe_operator, run))
            found.append(Fusion(rows, steps[first], steps[last] + 1, names))
    return tuple(found)


def choose_together(
    problem: Problem, fusions: Sequence[Fusion], limit: int
) -> tuple[Fusion, ...] | None:
    """Return the fewest fusions with which the greatest load is as small as fusions can make it.

    What a run stores in between is live only during the run. So a fusion changes no load outside
    of its own steps, and the load of its step is that of all that is needed there, without what is
    not stored. Hence runs that share no step can be chosen one by one, along time:

        needed[t]       the fewest fusions for the steps before t, if no load may exceed a limit
        needed[t + 1] = needed[t]          if the load of step t is within the limit
        needed[e]     = needed[s] + 1      if a fusion of the steps [s, e) has a load within it

    The smallest limit is found by bisection, in O((steps + fusions) log(steps + fusions)).

    Parameters
    ----------
    problem
        The problem of a layout, without gaps.
    fusions
        Of that layout, as `find_fusions` returns them.
    limit
        Only loads below this are of interest, in bytes.

    Returns
    -------
    fusions
        By their first step; `None` if they cannot bring the load below the limit.
    """
    fusions = [each for each in fusions if not _pins_meet(problem, each)]
    if not len(problem) or not fusions:
        return None
    loads, merged = _measure(problem, fusions)
    best = loads.copy()  # the least load that any fusion makes of each step
    for fusion, load in zip(fusions, merged.tolist(), strict=True):
        part = best[fusion.start : fusion.end]
        np.minimum(part, load, out=part)
    before = sum(problem.size[problem.start < 0].tolist())  # no fusion changes what is given
    least = max(int(best.max()), before)
    if least >= limit:
        return None
    values = np.unique(np.concatenate([loads, merged]))
    values = values[(values >= least) & (values < limit)]
    below, above = 0, len(values)  # values[above] is known to be enough, or out of the question
    found: tuple[Fusion, ...] | None = None
    at = 0  # first the smallest value, because it is often enough
    while below < above:
        chosen = _choose_within(loads, fusions, merged, int(values[at]))
        if chosen is None:
            below = at + 1
        else:
            above, found = at, chosen
        at = (below + above) // 2
    return found


def _measure(problem: Problem, fusions: Sequence[Fusion]) -> tuple[Column, Column]:
    """Return the load of every step, and of the one step of each fusion."""
    steps = int(problem.end.max())
    begun, over = np.zeros(steps + 1, dtype=np.int64), np.zeros(steps + 1, dtype=np.int64)
    np.add.at(begun, np.maximum(problem.start, 0), problem.size)  # step -1 is the caller's
    np.add.at(over, problem.end, problem.size)
    loads = np.cumsum(begun - over)[:-1]
    start = np.array([each.start for each in fusions])
    end = np.array([min(each.end, steps) for each in fusions])
    total = np.cumsum(begun)
    freed = np.array([sum(problem.size[list(each.rows)].tolist()) for each in fusions])
    merged: Column = loads[start] + total[end - 1] - total[start] - freed
    return loads, merged


def _choose_within(
    loads: Column, fusions: Sequence[Fusion], merged: Column, limit: int
) -> tuple[Fusion, ...] | None:
    """Return the fewest fusions with which no load exceeds a limit; `None` if there are none.

    Of equally few it returns those of the fewest steps.
    """
    usable = np.flatnonzero(merged <= limit).tolist()
    ways: dict[int, list[int]] = {}
    for index in usable:
        ways.setdefault(fusions[index].end, []).append(index)
    fits = (loads <= limit).tolist()
    one = len(loads) + 1  # what a fusion costs in steps: more than all steps together
    never = one * one
    needed, by = [0] * (len(loads) + 1), [NONE] * (len(loads) + 1)
    for end in range(1, len(needed)):
        needed[end] = needed[end - 1] if fits[end - 1] else never
        for index in ways.get(end, ()):
            cost = needed[fusions[index].start] + one + end - fusions[index].start
            if cost < needed[end]:
                needed[end], by[end] = cost, index
    if needed[-1] >= never:
        return None
    chosen, end = [], len(loads)
    while end > 0:
        if by[end] == NONE:
            end -= 1
        else:
            chosen.append(fusions[by[end]])
            end = chosen[-1].start
    return tuple(reversed(chosen))


def _pins_meet(problem: Problem, fusion: Fusion) -> bool:
    """Return whether two pinned rows that the fused step needs have an address in common."""
    if not problem.has_pins:
        return False
    needed = (problem.start < fusion.end) & (problem.end > fusion.start)
    pinned = np.flatnonzero(needed & (problem.pin != NONE) & (problem.size > 0))
    lower = problem.pin[pinned]
    order = np.argsort(lower)
    lower, upper = lower[order], (lower + problem.size[pinned])[order]
    return bool((lower[1:] < np.maximum.accumulate(upper)[:-1]).any())


def _find_steps(layout: Layout) -> list[int]:
    """Return the first step of each outermost operator."""
    found, number = [], 0
    for operator in layout.graph.operators:
        found.append(layout.lives.spans[number][0])
        number += sum(1 for _ in operator.walk())
    return found


def _find_internal(layout: Layout) -> dict[int, int]:
    """Return the rows of tensors that one operator makes and one other reads, by tensor."""
    graph = layout.graph
    reads, made = _count_uses(graph)
    kept = {*graph.inputs, *graph.outputs}
    kept.update(tensor for view in graph.views for tensor in (view.tensor, view.base))
    kept.update(tensor for pair in graph.aliases for tensor in pair)
    kept.update(tensor for group in graph.groups for tensor in group)
    found = {}
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        if len(storage.tensors) != 1 or storage.kind is not Kind.INTERMEDIATE:
            continue
        (tensor,) = storage.tensors
        once = reads[tensor] == 1 and made[tensor] == 1
        free = layout.problem.pin[row] == NONE and layout.problem.group[row] == NONE
        if once and free and tensor not in kept:
            found[tensor] = row
    return found


def _count_uses(graph: Graph) -> tuple[Counter[int], Counter[int]]:
    """Return how many operators read and make each tensor; those of blocks count twice."""
    reads: Counter[int] = Counter()
    made: Counter[int] = Counter()
    for operator in graph.walk():
        reads.update(set(operator.inputs))
        made.update(set(operator.outputs))
        for block in operator.blocks:
            for tensor in (*block.inputs, *block.outputs):
                reads[tensor] += 2
    return reads, made


def _is_linked(maker: Operator, reader: Operator, internal: dict[int, int]) -> bool:
    return any(tensor in internal and tensor in reader.inputs for tensor in maker.outputs)


def _overwrites(run: tuple[Operator, ...], storage_of: dict[int, int]) -> bool:
    """Return whether the last operator of a run writes to memory that an earlier one reads."""
    written = {storage_of.get(tensor, NONE) for tensor in run[-1].outputs} - {NONE}
    read = {storage_of.get(tensor, NONE) for each in run[:-1] for tensor in each.inputs}
    return not written.isdisjoint(read)
