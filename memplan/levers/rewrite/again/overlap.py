"""How much of the time of moves hides behind the operators that run meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memplan.levers.rewrite.again.costs import time_of_move
from memplan.levers.rewrite.effects import MOVE_BACK, MOVE_OUT
from memplan.programs.graph import Kind, Layout

__all__ = ["Overlap", "find_overlap"]


class Overlap(NamedTuple):
    """What moves take, in picoseconds."""

    moving: int  # if nothing runs meanwhile
    hidden: int  # by how much less longer the program takes if operators run beside the moves


def find_overlap(
    layout: Layout, times: Sequence[int], rates: tuple[int, int], capacity: int
) -> Overlap:
    """Return what moves of a program take, alone and beside its operators.

    Moves use one channel, in their order, and operators run in theirs. A tensor that is moved out
    takes memory until it has left, and one that comes back as soon as it starts to. It starts once
    it fits beside all operators up to its first reader. So a run like that stays in the capacity.
    Times are by operator, in picoseconds, without those of the moves; rates are bytes in a second,
    out and back.
    """
    operators = layout.graph.operators
    if any(each.blocks for each in operators) or not any(
        each.type == MOVE_BACK for each in operators
    ):
        return Overlap(0, 0)
    run = _Run(layout, times, rates, capacity)
    return Overlap(run.moving, max(0, run.moving + run.computing - run.finish()))


class _Run:
    """A processor and a channel, which start what they can whenever one of them is done."""

    def __init__(
        self, layout: Layout, times: Sequence[int], rates: tuple[int, int], capacity: int
    ) -> None:
        graph = layout.graph
        self._capacity, self._load = capacity, _list_loads(layout)
        self._moves: list[int] = []
        self._runs: list[int] = []
        self._size: dict[int, int] = {}  # of what a move moves
        self._leaves: set[int] = set()
        self._times = list(times)
        for at, operator in enumerate(graph.operators):
            if operator.type not in (MOVE_OUT, MOVE_BACK):
                self._runs.append(at)
                continue
            self._moves.append(at)
            outside = (*operator.inputs, *operator.outputs)
            (self._size[at],) = (
                graph.tensors[t].bytes for t in outside if graph.tensors[t].kind is Kind.OUTSIDE
            )
            self._times[at] = time_of_move(self._size[at], rates[operator.type == MOVE_BACK])
            if operator.type == MOVE_OUT:
                self._leaves.add(at)
        self.moving = sum(self._times[at] for at in self._moves)
        self.computing = sum(self._times[at] for at in self._runs)

    def finish(self) -> int:
        """Return when all is done."""
        now = 0
        moved = ran = 0  # how many are done
        moving = running = -1  # until when; -1: idle
        while moved < len(self._moves) or ran < len(self._runs):
            if moving < 0 and moved < len(self._moves) and self._may_move(moved, ran):
                moving = now + self._times[self._moves[moved]]
            if running < 0 and ran < len(self._runs) and self._may_run(ran, moved, moving >= 0):
                running = now + self._times[self._runs[ran]]
            now = min(each for each in (moving, running) if each >= 0)
            if moving == now:
                moved, moving = moved + 1, -1
            if running == now:
                ran, running = ran + 1, -1
        return now

    def _may_move(self, moved: int, ran: int) -> bool:
        """Whether the next move can start, of which all before are done."""
        move = self._moves[moved]
        if move in self._leaves:
            return ran == len(self._runs) or self._runs[ran] > move
        between = range(self._runs[ran] if ran < len(self._runs) else move, move)
        most = max((self._load[at] + self._early(at, moved) for at in between), default=0)
        return most + self._size[move] <= self._capacity

    def _early(self, run: int, moved: int) -> int:
        """Return the bytes that are back, of the moves that are done, before it is their turn."""
        return sum(self._size[move] for move in self._moves[:moved] if move > run)

    def _may_run(self, ran: int, moved: int, is_moving: bool) -> bool:
        """Whether the next operator can start: all before it is back, and it fits."""
        run = self._runs[ran]
        left = [move for move in self._moves[moved:] if move < run]
        if any(move not in self._leaves for move in left):
            return False
        beside = sum(self._size[move] for move in left)
        beside += self._early(run, moved + is_moving)
        return self._load[run] + beside <= self._capacity


def _list_loads(layout: Layout) -> list[int]:
    """Return the load of each operator."""
    problem, steps = layout.problem, len(layout.graph.operators)
    change = np.zeros(steps + 1, dtype=np.int64)
    np.add.at(change, problem.start.clip(0, steps), problem.size)
    np.add.at(change, problem.end.clip(0, steps), -problem.size)
    found: list[int] = change.cumsum()[:steps].tolist()
    return found
