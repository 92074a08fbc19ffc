"""Hill climbing over orders of placing, in the manner of Vela, the compiler for Arm's Ethos-U.

First fit turns an order into a plan. The bottleneck is the buffer that ends highest. Its place
depends on its neighbours (which are live together with it), and on all buffers on which it or one
of them rests. Two buffers swap their places in the order; the first is one of these:

             +-------+
             |   D   |              order A B C D, bottleneck D
    +--------+-------+--+           neighbours of D: B, C
    |        B       |C |           B rests on A
    +-+--------------+  |           one of A, B, C, D swaps turns
    |A|              |  |           with another of them
    +-+              +--+

An order that is no worse is kept. Buffers that are not neighbours, but lie under one (A), make the
holes; so every other swap moves one of these, if there is any. The first order is that of Vela: by
the highest load of the lifetime, then by length of life, start and size.
"""

from __future__ import annotations

import math
import random
from typing import Final, NamedTuple

from memplan.problem import Problem
from memplan.solvers.run import Run
from memplan_lab.baselines._pairs import FirstFit, list_pairs

__all__ = ["solve"]

_PATIENCE: Final = 500  # swaps without a lower peak, after which it ends
_UNDER: Final = 0.5  # how often the first buffer of a swap is not a neighbour


class _Fault(NamedTuple):
    """The rows on which the bottleneck's place depends, and those that are not neighbours."""

    rows: list[int]
    under: list[int]


def solve(run: Run) -> None:
    """Swap until the plan is at the bound, or many swaps have gained nothing."""
    problem = run.problem
    pairs = list_pairs(run)
    if pairs is None:
        return
    first_fit = FirstFit(problem, pairs)
    size = problem.size.tolist()
    dice = random.Random(run.seed)
    kept = order = _make_first_order(problem, first_fit.others)
    fault, peak, idle = _Fault([], []), math.inf, 0
    while idle < _PATIENCE and all(run.step() for _ in order):
        offsets = first_fit.place(order)
        top = max((at + held for at, held in zip(offsets, size, strict=True)), default=0)
        run.offer(offsets, "hill climbing over orders")
        if run.settled:
            return
        idle = 0 if top < peak else idle + 1
        if top <= peak:
            kept, peak, fault = order, top, _find_fault(offsets, size, first_fit.others)
        order = _swap(kept, fault, dice)


def _make_first_order(problem: Problem, others: list[list[int]]) -> list[int]:
    start, end, size = problem.start.tolist(), problem.end.tolist(), problem.size.tolist()
    rows = range(len(problem))
    # The load of a lifetime is greatest where it begins, or where another begins within it.
    load = [
        size[row] + sum(size[o] for o in others[row] if start[o] <= start[row] < end[o])
        for row in rows
    ]
    highest = [
        max([load[row], *(load[o] for o in others[row] if start[o] >= start[row])]) for row in rows
    ]
    return sorted(
        rows,
        key=lambda row: (-highest[row], start[row] - end[row], start[row], -size[row]),
    )


def _find_fault(offsets: list[int], size: list[int], others: list[list[int]]) -> _Fault:
    top = max(range(len(size)), key=lambda row: (offsets[row] + size[row], -row))
    near = {top, *others[top]}
    found: dict[int, None] = {}  # in the order in which they are found
    waiting = [top, *others[top]]
    while waiting:
        row = waiting.pop()
        if row not in found:
            found[row] = None
            waiting += (o for o in others[row] if 0 < offsets[row] == offsets[o] + size[o])
    return _Fault(list(found), [row for row in found if row not in near])


def _swap(order: list[int], fault: _Fault, dice: random.Random) -> list[int]:
    if len(fault.rows) < 2:
        return list(order)
    pool = fault.under if fault.under and dice.random() < _UNDER else fault.rows
    one = dice.choice(pool)
    other = dice.choice([row for row in fault.rows if row != one])
    turn = {one: other, other: one}
    return [turn.get(row, row) for row in order]
