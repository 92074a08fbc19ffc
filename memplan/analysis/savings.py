"""What the load would come down to if one buffer were smaller, elsewhere or there less long.

The greatest load is a bound on every plan, and it is quick to say what one change does to it. Only
a buffer that is live where the load is greatest can bring it down, and not further than to the
second greatest load of a time at which that buffer is not live:

    load
      |   +--+      +--+                  a is live in the highest tower alone: without it, the
      |   |a |      |  |                  load comes down to that of the next, as a whole. b is
      |   +--+------+--+    +--+          live in both: without it, they come down by its bytes,
      +---|b           |----+  |---       or to the third, whichever is more.
          +------------+    +--+
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

import numpy as np

from memplan.analysis.changed import halved, remade
from memplan.graph import Layout
from memplan.graph.remake import Remake, find_remakes
from memplan.problem import Problem, spans
from memplan.problem.columns import NONE, Column, frozen
from memplan.problem.loads import Loads

__all__ = ["Change", "Savings", "Worst", "savings"]

_MOST_TOGETHER = 100


class Change(StrEnum):
    """What is done to one buffer."""

    HALVED = "halved"  # it holds half of its bytes, rounded up
    REMOVED = "removed"  # or moved to another memory: to this arena that is the same
    RECOMPUTED = "recomputed"  # dropped after one use, and made again just before the next


@dataclass(frozen=True, slots=True)
class Worst:
    """The greatest load after a change.

    Attributes
    ----------
    load
        In bytes.
    start, end
        The first time `[start, end)` at which it is attained. Where both are the same, that is the
        moment just before `start` at which a buffer is made again.
    """

    load: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Savings:
    """Who makes the greatest load, and what it would be after a change to each of them.

    Attributes
    ----------
    problem
        What was looked at.
    peak, start, end
        Its greatest load, in bytes, and the first section `[start, end)` that attains it. All 0
        where nothing is held at any time.
    count
        How many sections attain it.
    together
        Rows that are live in all of these sections together, few rather than many: where `count` is
        more than 1, nobody alone may bring the load down. Empty where that would be too many.
    rows
        Shape (m,): the rows of the problem that are held then, the most bytes first, ties by id.
    bytes
        Shape (m,): what each holds then.
    after
        By change, shape (m,): the greatest load of the problem with that change to that row alone;
        `peak` where it does not come down, -1 where the change cannot be made, or nobody knows.
    remakes
        By row: how those are made again that can be.
    """

    problem: Problem
    peak: int
    start: int
    end: int
    count: int
    together: tuple[int, ...]
    rows: Column
    bytes: Column
    after: Mapping[Change, Column]
    remakes: Mapping[int, Remake]

    def __len__(self) -> int:
        return len(self.rows)

    def saved(self, change: Change) -> Column:
        """Return how many bytes come down, shape (m,); 0 where the change cannot be made."""
        after = self.after[change]
        return np.where(after == NONE, 0, self.peak - after)

    def best(self, change: Change) -> int | None:
        """Return who saves most by a change, as an index of `rows`; `None` where nobody does.

        Of equal ones it is the one that holds the most.
        """
        saved = self.saved(change)
        return int(saved.argmax()) if saved.any() else None

    def within(self, limit: int, change: Change) -> Column:
        """Return the indices of `rows` of which one change brings the load within a limit."""
        after = self.after[change]
        return np.flatnonzero((after != NONE) & (after <= limit))

    def changed(self, rows: Sequence[int], change: Change) -> Problem:
        """Return the problem with one change to each of some rows; only one can be made again.

        What is made again is a buffer of its own: its id is that of the first with "(again)" behind
        it. The moment at which it is made takes a unit of time; all that is later is so by one.

        Raises
        ------
        ProblemError
            If pins or a group contradict the change.
        """
        if change is Change.RECOMPUTED:
            (row,) = rows
            return remade(self.problem, self.remakes[row])
        if change is Change.HALVED:
            return reduce(halved, rows, self.problem)
        return self.problem.subset(np.delete(np.arange(len(self.problem)), rows))

    def worst(self, rows: Sequence[int], change: Change) -> Worst:
        """Return the greatest load after one change to each of some rows, and when it is attained.

        Raises
        ------
        ProblemError
            As `changed`.
        """
        loads = Loads(self.changed(rows, change))
        section = loads.peak_section
        if section is None:
            return Worst(0, 0, 0)
        start, end = int(loads.start[section]), int(loads.end[section])
        if change is Change.RECOMPUTED:
            again = self.remakes[rows[0]].again
            start, end = start - (start > again), end - (end > again)
        return Worst(loads.peak, start, end)


def savings(problem: Problem, layout: Layout | None = None) -> Savings:
    """Return what one change to each buffer that is live at the greatest load would save of it.

    Exact, in O(n log n) and vectorised, but for buffers with gaps and for those that could be made
    again: those cost O(n) each.

    Parameters
    ----------
    problem
        What is to be placed.
    layout
        Of the program whose problem that is, if it is one: it says who could be made again.
    """
    loads = Loads(problem)
    section = loads.peak_section
    if section is None:
        nobody = frozen(np.empty(0, dtype=np.int64))
        return Savings(problem, 0, 0, 0, 0, (), nobody, nobody, dict.fromkeys(Change, nobody), {})
    start, end = int(loads.start[section]), int(loads.end[section])
    levels = _Levels(problem, loads, section)
    again = {each.row: each for each in (find_remakes(layout, start, end) if layout else ())}
    recomputed = [
        levels.remade(again[row]) if row in again else NONE for row in levels.rows.tolist()
    ]
    return Savings(
        problem,
        loads.peak,
        start,
        end,
        int((loads.load == loads.peak).sum()),
        levels.together(),
        frozen(levels.rows),
        frozen(levels.bytes),
        {
            Change.HALVED: frozen(levels.less(lambda held: held // 2)),
            Change.REMOVED: frozen(levels.less(lambda held: held)),
            Change.RECOMPUTED: frozen(np.array(recomputed, dtype=np.int64)),
        },
        again,
    )


class _Levels:
    """The load with something taken away here, and something added there."""

    def __init__(self, problem: Problem, loads: Loads, section: int) -> None:
        self._problem, self._start, self._end = problem, loads.start, loads.end
        self._load, self._peak = loads.load, loads.peak
        # The greatest load of all sections before one, and of this one and all behind it.
        self._before = np.concatenate([[0], np.maximum.accumulate(loads.load)])
        self._behind = np.concatenate([np.maximum.accumulate(loads.load[::-1])[::-1], [0]])
        self._spans = held = spans.spans(problem)
        time = loads.start[section]
        live = np.flatnonzero((held.start <= time) & (time < held.end))
        bytes_held = (held.upper - held.lower)[live]
        ids = [problem.ids[row] for row in held.buffer[live].tolist()]
        order = sorted(range(len(live)), key=lambda at: (-bytes_held[at], ids[at]))
        self._live = live[order]
        self.rows: Column = held.buffer[self._live]
        self.bytes: Column = bytes_held[order]

    def less(self, share: Callable[[Column], Column]) -> Column:
        """Return by row the peak where its spans hold so much less each."""
        first = np.searchsorted(self._start, self._spans.start[self._live])
        end = np.searchsorted(self._start, self._spans.end[self._live])
        # The peak is inside of the span: that is where the load is greatest, also afterwards.
        outside = np.maximum(self._before[first], self._behind[end])
        found: Column = np.maximum(outside, self._peak - share(self.bytes))
        spans = np.bincount(self._spans.buffer, minlength=len(self._problem))
        for at in np.flatnonzero(spans[self.rows] > 1).tolist():
            found[at] = self._less_in_all(int(self.rows[at]), share)
        return found

    def _less_in_all(self, row: int, share: Callable[[Column], Column]) -> int:
        held = self._spans.keep(self._spans.buffer == row)
        less = share(held.upper - held.lower)
        first = np.searchsorted(self._start, held.start)
        end = np.searchsorted(self._start, held.end)
        low, high = int(first.min()), int(end.max())
        level = self._load[low:high].copy()
        for begin, stop, bytes_less in zip(first - low, end - low, less, strict=True):
            level[begin:stop] -= bytes_less
        return int(max(self._before[low], self._behind[high], level.max()))

    def together(self) -> tuple[int, ...]:
        """Return rows that cover all sections of the peak: each time the one that covers most."""
        held, bare = self._spans, self._load == self._peak
        first = np.searchsorted(self._start, held.start)
        end = np.searchsorted(self._start, held.end)
        size = self._problem.size
        found: list[int] = []
        while bare.any() and len(found) < _MOST_TOGETHER:
            before = np.concatenate([[0], np.cumsum(bare)])
            covers = np.zeros(len(size), dtype=np.int64)
            np.add.at(covers, held.buffer, before[end] - before[first])
            best = np.flatnonzero(covers == covers.max())
            row = int(best[size[best].argmax()])
            for at in np.flatnonzero(held.buffer == row).tolist():
                bare[first[at] : end[at]] = False
            found.append(row)
        return () if bare.any() else tuple(found)

    def remade(self, remake: Remake) -> int:
        """Return the peak where a row is dropped and made again, or the peak of now if less."""
        problem = self._problem
        size, ends = problem.size, problem.end
        kept = list(remake.kept)
        beside = sum(size[list(remake.extra)].tolist())
        if beside + sum(size[kept].tolist()) >= self._peak:
            return self._peak
        since = min([remake.dropped, *ends[kept].tolist()])
        low = int(np.searchsorted(self._end, since, side="right"))
        high = int(np.searchsorted(self._start, remake.again))
        start, level = self._start[low:high], self._load[low:high].copy()
        for row in kept:
            level[start >= ends[row]] += size[row]
        early = level[start < remake.dropped]
        late = level[self._end[low:high] > remake.dropped] - size[remake.row]
        crossing = (problem.start < remake.again) & (remake.again < ends)
        moment = int(size[crossing].sum() + size[kept].sum()) + beside
        behind = np.searchsorted(self._end, remake.again, side="right")
        outside = max(int(self._before[low]), int(self._behind[behind]))
        most = max(outside, moment, int(early.max(initial=0)), int(late.max(initial=0)))
        return int(min(most, self._peak))
