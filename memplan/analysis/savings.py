"""The greatest load after a buffer is made smaller, moved, dropped and made again, or fused away.

The greatest load is a lower bound on every plan, and the effect of one change on it is quick to
compute. Only a buffer that is live where the load is greatest can bring it down, and not below
the greatest load of the times at which that buffer is not live:

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

from memplan.analysis.changed import fuse, halve, remake_row
from memplan.base.errors import ProblemError
from memplan.problem import Problem, spans
from memplan.problem.columns import NONE, Column, frozen
from memplan.problem.immutable import Immutable
from memplan.problem.loads import Loads
from memplan.programs.graph import Layout
from memplan.programs.graph.fusion import Fusion, choose_together, find_fusions
from memplan.programs.graph.remake import Remake, find_remakes

__all__ = ["Change", "Savings", "Worst", "savings"]

_MOST_TOGETHER = 100


class Change(StrEnum):
    """A change to one buffer."""

    HALVED = "halved"  # it holds half of its bytes, rounded up
    REMOVED = "removed"  # or moved to another memory, which is the same for this arena
    RECOMPUTED = "recomputed"  # dropped after one use, and made again just before the next
    FUSED = "fused"  # not stored, because the operators around it are one


@dataclass(frozen=True, slots=True)
class Worst:
    """The greatest load after a change."""

    load: int  # in bytes
    # The first section `[start, end)` with this load. If both are equal, the greatest load is at
    # the moment just before `start` at which a buffer is made again.
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Savings(Immutable):
    """The buffers that make the greatest load, and that load after a change to each of them.

    Attributes
    ----------
    problem
        The problem.
    peak, start, end
        Its greatest load, in bytes, and the first section `[start, end)` that attains it. All 0
        if nothing is held at any time.
    count
        How many sections attain it.
    together
        A small set of rows such that in each of these sections one of them is live. If `count` is
        more than 1, possibly no single buffer brings the load down. Empty if it would be too large.
    rows
        Shape (m,): the rows of the problem that are held then, the most bytes first, ties by id.
    bytes
        Shape (m,): what each holds then.
    after
        By change, shape (m,): the greatest load of the problem with that change to that row only;
        `peak` where it does not come down, -1 where the change is impossible or its effect unknown.
    remakes
        By row that can be made again: how it is made again.
    fusions
        By row that fused operators need not store: the fusion with the smallest load.
    runs
        The fewest runs of operators which, all fused, lower the load further than any one of them.
        Empty if there are none.
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
    fusions: Mapping[int, Fusion]
    runs: tuple[Fusion, ...] = ()

    @property
    def runs_rows(self) -> tuple[int, ...]:
        """The rows that are not stored if all of `runs` are fused."""
        return tuple(row for each in self.runs for row in each.rows)

    def fusions_for(self, rows: Sequence[int]) -> tuple[Fusion, ...]:
        """Return what to fuse so that these rows are not stored: one row, or `runs_rows`."""
        return self.runs if len(rows) > 1 else (self.fusions[rows[0]],)

    def __len__(self) -> int:
        return len(self.rows)

    def saved(self, change: Change) -> Column:
        """Return how many bytes each change saves, shape (m,); 0 where it cannot be made."""
        after = self.after[change]
        return np.where(after == NONE, 0, self.peak - after)

    def best(self, change: Change) -> int | None:
        """Return the index in `rows` of the buffer that saves most; `None` if none saves anything.

        Of equal ones it is the one that holds the most bytes.
        """
        saved = self.saved(change)
        return int(saved.argmax()) if saved.any() else None

    def within(self, limit: int, change: Change) -> Column:
        """Return the indices in `rows` for which the change brings the load within a limit."""
        after = self.after[change]
        return np.flatnonzero((after != NONE) & (after <= limit))

    def changed(self, rows: Sequence[int], change: Change) -> Problem:
        """Return the problem with a change to each of some rows; pins or a group may contradict it.

        Only one row can be made again; one row can be fused away, or all `runs_rows`. A fusion may
        free other rows as well, and its operators take one step, so that later times move.

        A buffer that is made again becomes a second buffer; its id has "(again)" at its end. The
        moment at which it is made takes a unit of time, so that all later times move by one.
        """
        if change is Change.RECOMPUTED:
            (row,) = rows
            return remake_row(self.problem, self.remakes[row])
        if change is Change.FUSED:
            return fuse(self.problem, *self.fusions_for(rows))
        if change is Change.HALVED:
            return reduce(halve, rows, self.problem)
        return self.problem.subset(np.delete(np.arange(len(self.problem)), rows))

    def worst(self, rows: Sequence[int], change: Change) -> Worst:
        """Return the greatest load after a change to each of some rows, and its section."""
        loads = Loads(self.changed(rows, change))
        section = loads.peak_section
        if section is None:
            return Worst(0, 0, 0)
        start, end = int(loads.start[section]), int(loads.end[section])
        if change is Change.RECOMPUTED:
            again = self.remakes[rows[0]].again
            start, end = start - (start > again), end - (end > again)
        if change is Change.FUSED:
            for fusion in self.fusions_for(rows):  # in the order of time
                fewer = fusion.end - fusion.start - 1
                start, end = (time + fewer * (time > fusion.start) for time in (start, end))
        return Worst(loads.peak, start, end)


def savings(problem: Problem, layout: Layout | None = None) -> Savings:
    """Return what a change to each buffer that is live at the greatest load would save.

    The layout of the program, if there is one, tells what can be made again. The result is exact.
    The time is O(n log n), vectorised, plus O(n) for each buffer that has gaps or can be made
    again, O(n log n) for each of at most 12 runs of operators to fuse, and about as much for all
    that are fused together.
    """
    loads = Loads(problem)
    section = loads.peak_section
    if section is None:
        none = frozen(np.empty(0, dtype=np.int64))
        return Savings(
            problem=problem,
            peak=0,
            start=0,
            end=0,
            count=0,
            together=(),
            rows=none,
            bytes=none,
            after=dict.fromkeys(Change, none),
            remakes={},
            fusions={},
        )
    start, end = int(loads.start[section]), int(loads.end[section])
    levels = _Levels(problem, loads, section)
    again = {each.row: each for each in (find_remakes(layout, start, end) if layout else ())}
    recomputed = [
        levels.remake_row(again[row]) if row in again else NONE for row in levels.rows.tolist()
    ]
    possible = find_fusions(layout) if layout else ()
    fusions = _choose_fusions(problem, _find_around(layout, possible, start, end))
    least = min([loads.peak, *(load for load, _ in fusions.values())])
    runs = choose_together(problem, possible, least) or ()
    fused = [
        min(fusions[row][0], loads.peak) if row in fusions else NONE for row in levels.rows.tolist()
    ]
    return Savings(
        problem=problem,
        peak=loads.peak,
        start=start,
        end=end,
        count=int((loads.load == loads.peak).sum()),
        together=levels.together(),
        rows=frozen(levels.rows),
        bytes=frozen(levels.bytes),
        after={
            Change.HALVED: frozen(levels.reduce_spans(lambda held: held // 2)),
            Change.REMOVED: frozen(levels.reduce_spans(lambda held: held)),
            Change.RECOMPUTED: frozen(np.array(recomputed, dtype=np.int64)),
            Change.FUSED: frozen(np.array(fused, dtype=np.int64)),
        },
        remakes=again,
        fusions={row: fusion for row, (_, fusion) in fusions.items()},
        runs=runs,
    )


def _find_around(
    layout: Layout | None, fusions: Sequence[Fusion], start: int, end: int
) -> list[Fusion]:
    """Return the fusions that free a row which is live during `[start, end)`."""
    if layout is None:
        return []
    live = {
        row
        for row, index in enumerate(layout.rows)
        if layout.storages[index].start <= start and end <= layout.storages[index].end
    }
    return [each for each in fusions if not live.isdisjoint(each.rows)]


def _choose_fusions(problem: Problem, fusions: Sequence[Fusion]) -> dict[int, tuple[int, Fusion]]:
    """Return by row the smallest load after a fusion, and this fusion; of equal ones a shortest."""
    found: dict[int, tuple[int, Fusion]] = {}
    for fusion in sorted(fusions, key=lambda each: each.end - each.start):
        try:
            load = Loads(fuse(problem, fusion)).peak
        except ProblemError:  # pins contradict it
            continue
        for row in fusion.rows:
            if row not in found or load < found[row][0]:
                found[row] = load, fusion
    return found


class _Levels:
    """Computes the greatest load after a change to one row, without the changed problem."""

    def __init__(self, problem: Problem, loads: Loads, section: int) -> None:
        self._problem, self._start, self._end = problem, loads.start, loads.end
        self._load, self._peak = loads.load, loads.peak
        # The greatest load of all sections before each section, and of it and all later ones.
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

    def reduce_spans(self, share: Callable[[Column], Column]) -> Column:
        """Return for each row the peak if each of its spans held `share` fewer bytes."""
        first = np.searchsorted(self._start, self._spans.start[self._live])
        end = np.searchsorted(self._start, self._spans.end[self._live])
        # The peak is inside the span, so inside it the load stays greatest there.
        outside = np.maximum(self._before[first], self._behind[end])
        found: Column = np.maximum(outside, self._peak - share(self.bytes))
        spans = np.bincount(self._spans.buffer, minlength=len(self._problem))
        for at in np.flatnonzero(spans[self.rows] > 1).tolist():
            found[at] = self._reduce_all_spans(int(self.rows[at]), share)
        return found

    def _reduce_all_spans(self, row: int, share: Callable[[Column], Column]) -> int:
        held = self._spans.keep(self._spans.buffer == row)
        amounts = share(held.upper - held.lower)
        first = np.searchsorted(self._start, held.start)
        end = np.searchsorted(self._start, held.end)
        low, high = int(first.min()), int(end.max())
        level = self._load[low:high].copy()
        for begin, stop, bytes_less in zip(first - low, end - low, amounts, strict=True):
            level[begin:stop] -= bytes_less
        return int(max(self._before[low], self._behind[high], level.max()))

    def together(self) -> tuple[int, ...]:
        """Return rows that cover all sections of the peak, each covering most of the rest.

        The greedy set cover is small, but not always the smallest.
        """
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

    def remake_row(self, remake: Remake) -> int:
        """Return the peak if a row is dropped and made again, but at most the present peak."""
        problem = self._problem
        size, ends = problem.size, problem.end
        kept = list(remake.kept)
        extra = sum(size[list(remake.extra)].tolist())
        if extra + sum(size[kept].tolist()) >= self._peak:
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
        moment = int(size[crossing].sum() + size[kept].sum()) + extra
        behind = np.searchsorted(self._end, remake.again, side="right")
        outside = max(int(self._before[low]), int(self._behind[behind]))
        most = max(outside, moment, int(early.max(initial=0)), int(late.max(initial=0)))
        return int(min(most, self._peak))
