"""Buffers coloured into shared objects (static memory planning; SOMAS, appendix G).

An object holds one buffer at a time and is as large as its largest. Interfering buffers get
different objects, which is a colouring of the interference graph; the cost of a colour is its
largest member (max-colouring of an interval graph, NP-hard). Such a plan needs more memory than a
plan with offsets, because a small buffer leaves a part of a large object free.

    object 1  +---- T1 ----+------ T4 ------+
    object 2     +- T3 -+
    object 3   +---- T2 ------+
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.spans import spans
from memplan.solvers.run import Run
from memplan_lab.baselines._blocks import SharedObject, lay_out

__all__ = ["solve"]

_ORDERS = ("size", "start", "end")
_FITS = ("best", "first", "worst")
_SIZE = attrgetter("size")


def solve(run: Run) -> None:
    """Put every buffer into an object that is free and large enough, or into a new one."""
    order = run.choice("order", _ORDERS)
    fit = run.choice("fit", _FITS)
    problem = run.problem
    objects: list[SharedObject] = []
    times = _Times(problem)
    for row in _sort_rows(problem, order):
        if not run.step():
            return
        size, busy = int(problem.size[row]), times.bits_of(row)
        if not size:
            continue
        free = [each for each in objects if each.size >= size and not each.busy & busy]
        if not free:
            chosen = SharedObject()
            objects.append(chosen)
        elif fit == "first":
            chosen = free[0]
        else:
            chosen = (min if fit == "best" else max)(free, key=_SIZE)
        chosen.add(problem, row, busy)
    lay_out(run, objects, f"by {order}, {fit} fit")


class _Times:
    """When buffers are held, as integers with a bit for every stretch between two events."""

    def __init__(self, problem: Problem) -> None:
        held = spans(problem)
        events = np.unique(np.concatenate([held.start, held.end]))
        self._first = np.searchsorted(events, held.start).tolist()
        self._last = np.searchsorted(events, held.end).tolist()
        by_row = np.argsort(held.buffer, kind="stable")
        self._spans = by_row.tolist()
        rows = np.arange(len(problem) + 1)
        self._begin = np.searchsorted(held.buffer[by_row], rows).tolist()

    def bits_of(self, row: int) -> int:
        """Return the bits of a buffer: those of all its spans, without its gaps."""
        bits = 0
        for span in self._spans[self._begin[row] : self._begin[row + 1]]:
            bits |= (1 << self._last[span]) - (1 << self._first[span])
        return bits


def _sort_rows(problem: Problem, order: str) -> Iterator[int]:
    keys: dict[str, tuple[Column, ...]] = {
        "size": (problem.start, -problem.size),
        "start": (-problem.size, problem.start),
        "end": (-problem.size, problem.end),
    }
    return iter(np.lexsort(keys[order]).tolist())
