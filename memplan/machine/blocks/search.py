"""The search for few and small blocks: first for their number, then for their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import heappop, heappush
from math import gcd, lcm
from typing import Any, Final, NamedTuple

import numpy as np

from memplan.base.errors import InfeasibleError, NoPlanError
from memplan.machine.blocks.bounds import count_blocks, list_moments, sum_profile
from memplan.machine.blocks.boxes import Box, Boxes
from memplan.machine.blocks.caps import Caps
from memplan.machine.blocks.shares import Shares
from memplan.machine.blocks.strips import Strips
from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.plan import Plan, Status
from memplan.solvers.planning import SharedBudget
from memplan.solvers.refereed import NODES, find_plan
from memplan.solvers.stopping import is_stopped

__all__ = ["BlockSearch", "Placed"]

_NEAR: Final = 4  # numbers above the bound that are tried one by one
_WAYS: Final = 8  # to share the buffers out by their loads
_ROUNDS: Final = 3  # in which every block is laid last once
_QUESTIONS: Final = 100  # without a limit on time or nodes
_QUICK: Final = 10_000  # nodes of a question about a box


class Placed(NamedTuple):
    """All buffers in blocks."""

    block: Column  # of each buffer, shape (n,)
    offset: Column
    # Of each block, in bytes; those that items above the limit fill come first.
    heights: tuple[int, ...]

    @property
    def total(self) -> int:
        """The bytes of all blocks."""
        return sum(self.heights)


class BlockSearch:
    """The search of one problem, with one budget for all questions together."""

    def __init__(self, problem: Problem, limit: int, budget: SharedBudget, **search: Any) -> None:
        self._problem, self._limit = problem.with_capacity(None), limit
        self._budget, self._search = budget, search
        self._caps = Caps(self._problem, limit)
        self._strips = Strips(self._problem, limit, self._caps.highest)
        self._moments = list_moments(self._problem)
        self._questions = _QUESTIONS
        load = self._moments[0].load if self._moments else 0
        # Proved: no plan has fewer blocks.
        self.count_bound = max(
            count_blocks(self._moments, self._caps.highest),
            self._caps.count_least(load),
            self._count_beside(),
            min(1, len(problem)),
        )
        self.total_bound = 0  # proved: no plan in as many blocks as `best` has fewer bytes
        self.best: Placed  # the least blocks so far; set by `find_count`

    def _count_beside(self) -> int:
        """Return a lower bound from moments at which every block that is always filled is full."""
        filled = self._caps.filled
        count, rest = len(filled), []
        for moment in self._moments if filled and self._caps.are_certain else ():
            if moment.sizes[:count].tolist() == filled:
                sizes = moment.sizes[count:]
                rest.append(moment._replace(sizes=sizes, load=int(sizes.sum())))
        rest.sort(key=lambda each: -each.load)
        return count + count_blocks(rest, self._limit)

    def find_count(self) -> None:
        """Find a plan in as few blocks as possible.

        If an item fits into no block there is none; `NoPlanError` says that an item fits only into
        the block of a larger one, and no plan was found.
        """
        alone = None
        if not self._caps.items or self._problem.has_reserved or self._caps.homes:
            alone = self._place_alone()  # what fits into no block is named here
        count, proved = self.count_bound, True
        while count < len(self._caps.items):
            arena = self._join(self._caps.list_caps(count))
            plan = self._solve(arena, "fit", questions=3, nodes=_QUICK)
            if plan.status is Status.UNKNOWN:
                if (found := self._share_out(count)) is not None:
                    self.best = found
                    return
                if count < self.count_bound + _NEAR:
                    plan = self._solve(arena, "fit", questions=3)
                else:  # without a capacity there is a plan at once
                    plan = self._solve(arena.with_capacity(None), "min_peak", questions=3, nodes=1)
            if plan.peak is not None and plan.peak <= (arena.capacity or 0):
                found = self._read(plan)
                if not self._is_allowed(found):
                    found = self._place_chosen(count)
                if found is not None:
                    self.best = found
                    return
            proved = proved and plan.status is Status.INFEASIBLE
            if proved:
                self.count_bound = count + 1
            count = count + 1 if count < self.count_bound + _NEAR else count + count // 4 + 1
        alone = alone or self._place_alone()
        if alone is None:
            raise NoPlanError(
                f"a buffer fits only into the block of a larger one, as the limit of a block is "
                f"{self._limit} bytes, and no such plan was found"
            )
        self.best = alone

    def _join(self, heights: Sequence[int], filling: Sequence[Column] | None = None) -> Problem:
        """Return the arena of blocks of these heights, the first of which are filled by items.

        Each of these is pinned to the beginning of its block; by default, what fills one in every
        plan.
        """
        if filling is None:
            filling = self._caps.large[: len(self._caps.filled)]
        arena, lead = self._strips.join(heights), self._problem.lead
        if not filling:
            return arena
        pins = {rows[lead[rows].argmin()]: at for at, rows in enumerate(filling)}
        step = self._strips.distance
        return arena.with_pins({arena.ids[row]: at * step for row, at in pins.items()})

    def _place_chosen(self, count: int) -> Placed | None:
        """Return a plan in so many blocks, of which chosen items fill the first; or None."""
        large = self._caps.large
        chosen = [home[0] for home in self._caps.homes]
        for filling in (chosen, *(large[:most] for most in range(min(count, len(large)), 0, -1))):
            if len(filling) > count or self._questions < 0:
                continue
            heights = [self._caps.find_most(rows) for rows in filling]
            arena = self._join([*heights, *[self._limit] * (count - len(filling))], filling)
            plan = self._solve(arena, "fit", questions=3, nodes=_QUICK)
            if plan.has_offsets:
                return self._read(plan)
        return None

    def _is_allowed(self, found: Placed) -> bool:
        """Return whether no block is above what the largest item in it allows."""
        return all(
            height <= self._caps.find_most(np.flatnonzero(found.block == number))
            for number, height in enumerate(found.heights)
        )

    @cached_property
    def _shares(self) -> Shares:
        times = np.array([each.time for each in self._moments], np.int64)
        return Shares(self._problem.subset(self._caps.rest), times, self._limit)

    def _list_ways(self, count: int) -> Iterator[tuple[int, Column]]:
        """Yield the bytes and the block of each buffer for some ways to share loads out.

        What is above the limit lies in blocks of its own, which come first.
        """
        homes, rest = self._caps.homes, self._caps.rest
        block, own = np.zeros(len(self._problem), np.int64), 0
        for number, home in enumerate(homes):
            block[np.concatenate(home)] = number
            own += self._caps.find_most(home[0])
        if homes and count == len(homes) + 1:
            block[rest] = len(homes)
            yield own + self._problem.subset(rest).max_load, block
            return
        seed = self._search["seed"]
        for least, others in self._shares.list_ways(count - len(homes), _WAYS, seed):
            block[rest] = len(homes) + others
            yield own + least, block.copy()

    def _share_out(self, count: int, most: int | None = None) -> Placed | None:
        """Return a plan in blocks that share the load, of less than `most` bytes; or None."""
        best = None
        for least, block in self._list_ways(count):
            if self._budget.share(1).seconds == 0.0:
                break
            if most is None or least < most:
                found = self._place_shares(block, count)
                if found is not None and (most is None or found.total < most):
                    best, most = found, found.total
                    if most <= max(self.total_bound, self._moments[0].load):
                        break
        return best

    def _place_shares(self, block: Column, count: int) -> Placed | None:
        """Return a plan with these buffers in each block, if there is one."""
        offset = np.zeros(len(block), np.int64)
        for number in range(count):
            rows = np.flatnonzero(block == number)
            part, most = self._problem.subset(rows), self._caps.find_most(rows)
            if bool((part.pin + part.size > most).any()):
                return None
            part = part.with_capacity(most)
            plan = self._solve(part, "min_peak", questions=6, nodes=_QUICK)
            if plan.offsets is None:
                return None
            offset[rows] = plan.offsets
        return self._drop_empty(block, offset)

    def _place_alone(self) -> Placed | None:
        """Return the plan with a block for each item; None if one fits only beside a larger one.

        An `InfeasibleError` says that an item fits into no block.
        """
        problem, highest = self._problem, self._caps.highest
        block, offset = np.zeros(len(problem), np.int64), np.zeros(len(problem), np.int64)
        for number, rows in enumerate(self._caps.items):
            plan = find_plan(problem.subset(rows))
            if plan.offsets is None or (plan.peak or 0) > self._caps.find_most(rows):
                if plan.has_offsets and plan.lower_bound <= highest:
                    return None
                raise InfeasibleError(
                    f"{problem.label(int(rows[0]))} fits into no block of {highest} bytes "
                    "beside the reserved ranges"
                )
            block[rows], offset[rows] = number, plan.offsets
        return self._drop_empty(block, offset)

    def _solve(
        self, problem: Problem, objective: str, *, questions: int, nodes: int | None = None
    ) -> Plan:
        """Ask a question that is one of so many, with at most so many nodes."""
        share = self._budget.share(questions)
        self._questions -= 1
        if nodes is None and share.seconds is None:
            nodes = NODES
        if nodes is not None:
            share = replace(share, nodes=min(nodes, share.nodes or nodes))
        plan = find_plan(problem, objective=objective, budget=share, **self._search)
        self._budget.spend(plan, share)
        return plan

    def _read(self, plan: Plan) -> Placed:
        assert plan.offsets is not None
        return self._drop_empty(*self._strips.split(plan.offsets))

    def _drop_empty(self, block: Column, offset: Column) -> Placed:
        """Return blocks without those in which nothing is, the filled ones first."""
        filled = [block[home[0][0]] for home in self._caps.homes[: len(self._caps.filled)]]
        if filled:
            rank = np.arange(int(block.max()) + 1)
            rank[filled] = np.arange(len(filled)) - len(filled)
            block = rank[block]
        used, block = np.unique(block, return_inverse=True)
        heights = np.zeros(len(used), np.int64)
        np.maximum.at(heights, block, offset + self._problem.size)
        return Placed(block, offset, tuple(int(each) for each in heights))

    def shrink(self) -> None:
        """Make the blocks smaller, until they are proved to be the least or the budget ends."""
        count = len(self.best.heights)
        self.total_bound = self._bound_total() if count else 0
        if self._is_done():
            return
        self._try_last(self._caps.list_caps(count), count - 1)
        if not self._is_done():
            found = self._share_out(count, self.best.total)
            self._take(found or self.best)
        for falling in (False, True):
            for _ in range(_ROUNDS):
                before = self.best.total
                order = np.argsort(self.best.heights, kind="stable").tolist()
                for number in order[::-1] if falling else order:
                    if self._is_done():
                        return
                    self._try_last(self.best.heights, number)
                if self.best.total == before:
                    break
        self._search_boxes()

    def _search_boxes(self) -> None:
        """Cut the heights into boxes, and refute or settle that with the least bytes first."""
        count = len(self.best.heights)
        boxes, filled = Boxes(self._moments, self._unit), self._caps.filled
        low = (*filled, *(0,) * (count - len(filled)))
        heap = [(0, 0, Box(low, tuple(self._caps.list_caps(count))))]
        made, open_least = 1, self.best.total
        while heap and self._questions > 0 and len(self.best.heights) == count:
            if is_stopped():
                break
            least, _, box = heappop(heap)
            if least >= self.best.total:
                heap.clear()
                break
            tight = boxes.tighten(box, self.best.total - 1)
            if tight is None:
                continue
            if tight.least > least:
                parts = [tight]  # its turn comes later
            else:
                self.total_bound = max(self.total_bound, min(least, open_least))
                if self._is_done():
                    return
                settled = self._settle(tight)
                if settled is None:
                    open_least = min(open_least, tight.least)
                    continue
                parts = settled
            for each in parts:
                heappush(heap, (each.least, made, each))
                made += 1
        rest = min((least for least, *_ in heap), default=self.best.total)
        self.total_bound = max(self.total_bound, min(rest, open_least, self.best.total))

    def _settle(self, box: Box) -> list[Box] | None:
        """Return what is left of a box, in one part or two; None if it cannot be cut and is open.

        The least height of each block beside the others at their greatest is asked, the widest
        first.
        """
        heights, first = box.cap, len(self._caps.filled)
        for k in sorted(range(first, len(box.cap)), key=lambda k: box.low[k] - box.cap[k]):
            others = [*box.cap[:k], *box.cap[k + 1 :]]
            arena = self._join([*others, box.cap[k]])
            plan = self._solve(arena, "min_peak", questions=6, nodes=_QUICK)
            if plan.status is Status.INFEASIBLE:
                return []
            if plan.has_offsets:
                found = self._read(plan)
                self._take(found)
                heights = tuple(sorted(found.heights, reverse=True))
            least = plan.lower_bound - len(others) * self._strips.distance
            if least > box.low[k]:
                return [box._replace(low=(*box.low[:k], least, *box.low[k + 1 :]))]
        k = max(range(len(heights)), key=lambda k: heights[k] - box.low[k])
        if box.low[k] >= box.cap[k]:
            return None
        middle = (box.low[k] + min(heights[k], box.cap[k])) // 2 // self._unit * self._unit
        middle = max(box.low[k], min(middle, box.cap[k] - self._unit))
        return [
            box._replace(cap=(*box.cap[:k], middle, *box.cap[k + 1 :])),
            box._replace(low=(*box.low[:k], middle + self._unit, *box.low[k + 1 :])),
        ]

    @cached_property
    def _unit(self) -> int:
        """A number of which all heights are multiples, if every buffer lies as low as it can."""
        own = self._problem
        fixed = [each for pair in own.reserved for each in (pair.lower, pair.upper)]
        columns = [own.size, own.lead, np.array(fixed, np.int64)]
        columns += [own.alignment] if own.has_alignment else []
        columns += [own.gap_lower, own.gap_upper] if own.has_windows else []
        columns += [own.pin[own.pin != NONE]]
        return gcd(*(int(each) for column in columns for each in np.unique(np.abs(column)))) or 1

    def _is_done(self) -> bool:
        """Return whether the blocks are the least, or Ctrl-C has ended the search for them."""
        return self.best.total <= self.total_bound or is_stopped()

    def _try_last(self, heights: Sequence[int], number: int) -> None:
        """Lay a block last, beside others of these heights, and keep the plan if it is smaller."""
        if number < len(self._caps.filled):
            return
        others = [*heights[:number], *heights[number + 1 :]]
        arena = self._join([*others, self._limit])
        plan = self._solve(arena, "min_peak", questions=6, nodes=_QUICK)
        if plan.has_offsets:
            self._take(self._read(plan))

    def _take(self, found: Placed) -> None:
        """Keep a plan if it is smaller, and its blocks may be as high as they are."""
        smaller = (len(found.heights), found.total) < (len(self.best.heights), self.best.total)
        if smaller and self._is_allowed(found):
            self.best = found

    def _bound_total(self) -> int:
        """Return a lower bound on the bytes of as many blocks as the best plan has."""
        problem, count = self._problem, len(self.best.heights)
        if count == 1:
            plan = self._solve(self._join(self._caps.list_caps(1)), "min_peak", questions=2)
            if plan.has_offsets and (found := self._read(plan)).total < self.best.total:
                self.best = found
            return plan.lower_bound
        free = problem.with_reserved(()).with_pins(dict.fromkeys(problem.ids))
        one = self._solve(free, "min_peak", questions=3).lower_bound
        unit = lcm(*(int(each) for each in np.unique(problem.alignment)))
        # Blocks in a row are one arena, if each begins at a multiple of all alignments.
        lost = 0 if not (problem.size % unit).any() else (count - 1) * (unit - 1)
        profile = sum_profile(self._moments, self._caps.highest)
        below = sum(each.upper for each in problem.reserved if each.lower == 0)
        load = max((each.load for each in self._moments), default=0)
        return max(one - lost, load, profile, sum(self._caps.filled)) + self.count_bound * below
