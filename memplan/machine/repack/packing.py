"""The search for the most valuable choice of buffers that fit together."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from random import Random

import numpy as np
import numpy.typing as npt

from memplan.machine.repack.repacker import Repacker
from memplan.problem import Problem, spans
from memplan.problem.plan import Status
from memplan.solvers.limits import MAX_COUNT, check_seconds, check_whole

__all__ = ["Clock", "Packing"]

# Limits on the placements and search nodes of one question, quick or thorough.
_QUICK_PASSES = 3  # over all buffers in the repacker
_THOROUGH = 20_000
_HARD = 100  # a thorough question of the first choice may spend a hundredth of the budget
_DEFAULT_NODES = 400_000  # the whole budget if the caller gives no limit: about a second
_RESELECTED = 0.5  # the share of the chosen buffers in a stretch of time that are removed at once


@dataclass(slots=True)
class Clock:
    """The budget of time and nodes."""

    end: float | None
    nodes: int
    spent: int = 0

    @classmethod
    def of(cls, timeout: float | None, nodes: int | None) -> Clock:
        """Return a clock that starts now, from the limits that a caller gives."""
        limit = check_seconds(timeout)
        left = _DEFAULT_NODES if limit is None else MAX_COUNT
        if nodes is not None:
            left = check_whole(nodes, "nodes", 1, MAX_COUNT)
        return cls(None if limit is None else time.monotonic() + limit, left)

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.spent >= self.nodes or (self.end is not None and time.monotonic() >= self.end)

    def ask(self, repacker: Repacker, nodes: int) -> bool | None:
        """Ask whether all buffers fit, within `nodes` and the rest of the budget."""
        left = None if self.end is None else max(0.0, self.end - time.monotonic())
        answer = repacker.fits(timeout=left, nodes=max(1, min(nodes, self.nodes - self.spent)))
        self.spent += max(1, repacker.nodes)
        return answer


@dataclass(slots=True)
class Packing:
    """One call of `memplan.pack_most_valuable`; rows are those of the problem."""

    problem: Problem
    capacity: int
    benefit: list[int]
    forced: npt.NDArray[np.bool_]
    clock: Clock
    seed: int
    chosen: set[int] = field(default_factory=set)
    repacker: Repacker = field(init=False)  # has the chosen buffers

    def run(self, bound: int, known: Collection[int]) -> Status:
        """Choose buffers, and return the status; `repacker` has the plan.

        No choice has a greater benefit than `bound`; the known rows fit together, but for their
        addresses perhaps.
        """
        must = np.flatnonzero(self.forced)
        self.repacker = self.pack_forced()
        fits = self.clock.ask(self.repacker, self.clock.nodes)
        if not fits:
            return Status.UNKNOWN if fits is None else Status.INFEASIBLE
        self.chosen = set(must.tolist())
        able = np.maximum(self.problem.pin, 0) + self.problem.size <= self.capacity
        rows = [row for row in self._sort_by_density() if able[row] and not self.forced[row]]
        rows = self._take_best([rows, sorted(rows, key=lambda row: row not in known)])
        self._exchange(rows)
        self._reselect(rows, bound)
        return Status.OPTIMAL if self.value == bound else Status.FEASIBLE

    @property
    def value(self) -> int:
        """The benefit of all chosen buffers."""
        return sum(self.benefit[row] for row in self.chosen)

    @staticmethod
    def limit_quick(repacker: Repacker) -> int:
        """Return the limit on nodes of a quick question."""
        return _QUICK_PASSES * (len(repacker) + 100)

    def pack_forced(self) -> Repacker:
        """Return a repacker with the buffers that must be chosen, which are not placed yet."""
        part = self.problem.subset(np.flatnonzero(self.forced))
        return Repacker(part, self.capacity, seed=self.seed)

    def _sort_by_density(self) -> list[int]:
        held = spans.spans(self.problem)
        area = np.bincount(
            held.buffer,
            (held.upper - held.lower).astype(np.float64) * (held.end - held.start),
            len(self.problem),
        )
        gain = np.array(self.benefit, dtype=np.float64)
        density = np.where(area > 0, gain / np.maximum(area, 1), np.inf)
        order: list[int] = np.lexsort((np.arange(len(gain)), -density)).tolist()
        return order

    def put_in(self, repacker: Repacker, row: int, nodes: int) -> bool | None:
        """Add a buffer to a repacker; remove it again if not all fit."""
        buffer = self.problem.buffer(row)
        repacker.add(buffer)
        fits = self.clock.ask(repacker, nodes)
        if not fits:
            repacker.remove(buffer.id)
        return fits

    def _take(self, rows: Iterable[int], nodes: int = 0) -> None:
        """Choose the rows that fit, one by one.

        If a quick question stays open, a second one may spend `nodes` nodes, unless that is 0.
        """
        for row in rows:
            if self.clock.over:
                return
            if row in self.chosen:
                continue
            fits = self.put_in(self.repacker, row, self.limit_quick(self.repacker))
            if fits is None and nodes and self.benefit[row]:
                fits = self.put_in(self.repacker, row, nodes)
            if fits:
                self.chosen.add(row)

    def _take_best(self, orders: list[list[int]]) -> list[int]:
        """Choose in each of several orders; keep the best choice, and return its order."""
        must, start, found = self.chosen, self.repacker, []
        for order in orders:
            self.repacker, self.chosen = start.copy(), set(must)
            self._take(order, min(_THOROUGH, self.clock.nodes // _HARD))
            found.append((self.value, self.repacker, self.chosen, order))
        _, self.repacker, self.chosen, order = max(found, key=lambda each: each[0])
        return order

    def _exchange(self, rows: list[int]) -> None:
        """Replace chosen buffers by rejected ones of more value, as long as the value rises."""
        better = True
        while better and not self.clock.over:
            better = False
            for row in rows:
                if row in self.chosen or not self.benefit[row] or self.clock.over:
                    continue
                if self._swap_in(row):
                    self._take(rows)
                    better = True

    def _swap_in(self, row: int) -> bool:
        problem, ids = self.problem, self.problem.ids
        start, end = problem.start[row], problem.end[row]
        meets = (problem.start < end) & (start < problem.end) & ~self.forced
        others = [other for other in np.flatnonzero(meets).tolist() if other in self.chosen]
        # Those with the least benefit for each byte are removed first.
        others.sort(
            key=lambda other: (self.benefit[other] / max(1, int(problem.size[other])), other)
        )
        trial, gone, spare = self.repacker.copy(), [], self.benefit[row]
        for other in others:
            if self.benefit[other] >= spare:
                continue
            spare -= self.benefit[other]
            gone.append(other)
            trial.remove(ids[other])
            if self.put_in(trial, row, self.limit_quick(trial)):
                self.repacker = trial
                self.chosen = (self.chosen - set(gone)) | {row}
                return True
            if self.clock.over:
                break
        return False

    def _reselect(self, rows: list[int], bound: int) -> None:
        """Repeat the choice for random stretches of time, until the budget is half spent."""
        chance = Random(self.seed)
        problem, rank = self.problem, {row: at for at, row in enumerate(rows)}
        last = self.clock.spent + (self.clock.nodes - self.clock.spent) // 2
        while self.value < bound and self.clock.spent < last and not self.clock.over:
            middle = chance.choice(rows)
            start, end = problem.start[middle], problem.end[middle]
            near = [row for row in rows if problem.start[row] < end and start < problem.end[row]]
            out = [row for row in near if row in self.chosen and chance.random() < _RESELECTED]
            trial, chosen = self.repacker.copy(), self.chosen.difference(out)
            trial.remove(*(problem.ids[row] for row in out))
            for row in sorted(near, key=lambda row: rank[row] + chance.random() * len(rows) / 4):
                if row not in chosen and self.put_in(trial, row, self.limit_quick(trial)):
                    chosen.add(row)
            if sum(self.benefit[row] for row in chosen) >= self.value:
                self.repacker, self.chosen = trial, chosen
