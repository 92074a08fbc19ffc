"""Shares buffers out among blocks by their loads alone, so that the blocks peak at one moment.

The bytes of all blocks are the sum of the peaks of their loads, if each block is planned at its
load, as most are. That sum is the load of all buffers, which no plan is below, if all blocks have
their peak where all buffers have it. So first what is live at that moment is shared out evenly over
its whole lifetime, then each other buffer goes where it raises the peak the least; then single
buffers move, or two are exchanged, as long as that makes the sum smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from memplan.machine.blocks.bounds import list_owners
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.spans import spans

__all__ = ["Shares"]

_MOST_CELLS: Final = 1 << 24  # of items and moments
_MOST_BLOCKS: Final = 16  # pairs of them are looked at for each move
_MOST_MOVES: Final = 300
_MOST_EXCHANGES: Final = 20
_MOST_PAIRS: Final = 1 << 22  # cells that are looked at to exchange two items

Loads = npt.NDArray[np.int64]


class Shares:
    """Ways to share the buffers of a problem out among blocks of at most `limit` bytes."""

    def __init__(self, problem: Problem, times: Column, limit: int) -> None:
        self._limit = limit
        self._owner = list_owners(problem)
        items = int(self._owner.max(initial=-1)) + 1
        self._held: Loads = np.zeros((0, 0), np.int64)
        if items * len(times) > _MOST_CELLS:
            return
        held, times = spans(problem), np.sort(times)
        self._held = np.zeros((items, len(times) + 1), np.int64)
        owner, size = self._owner[held.buffer], held.upper - held.lower
        np.add.at(self._held, (owner, np.searchsorted(times, held.start)), size)
        np.subtract.at(self._held, (owner, np.searchsorted(times, held.end)), size)
        self._held = np.cumsum(self._held, axis=1)[:, :-1]

    def list_ways(self, count: int, ways: int, seed: int) -> Iterator[tuple[int, Column]]:
        """Yield the sum of the peaks and the block of each buffer, for some ways."""
        if not self._held.size or not 2 <= count <= _MOST_BLOCKS:
            return
        rng = np.random.default_rng(seed)
        for way in range(ways):
            block, loads = self._share_out(count, rng, 0.3 * way)
            self._improve(block, loads)
            peaks = loads.max(axis=1)
            if peaks.max() <= self._limit:
                yield int(peaks.sum()), block[self._owner]

    def _share_out(
        self, count: int, rng: np.random.Generator, noise: float
    ) -> tuple[Column, Loads]:
        held = self._held
        block = np.zeros(len(held), np.int64)
        loads = np.zeros((count, held.shape[1]), np.int64)
        top = int(held.sum(axis=0).argmax())
        weight = held.max(axis=1) * np.exp(noise * rng.standard_normal(len(held)))
        for item in np.lexsort((-weight, held[:, top] == 0)):
            after = loads + held[item]
            there = np.flatnonzero(held[item])
            fullest = after[:, there].max(axis=1, initial=0)
            raised = np.maximum(0, fullest - loads.max(axis=1))
            beyond = np.maximum(0, fullest - self._limit)
            best = int(np.lexsort((fullest, raised if not held[item, top] else beyond, beyond))[0])
            block[item], loads[best] = best, after[best]
        return block, loads

    def _cost(self, peaks: Loads) -> Loads:
        """Return what peaks cost: their bytes, and what is beyond the limit many times."""
        cost: Loads = peaks + 64 * np.maximum(0, peaks - self._limit)
        return cost

    def _improve(self, block: Column, loads: Loads) -> None:
        """Move items, or exchange two, while that makes the sum of the peaks smaller."""
        held = self._held
        least, exchanges = int(held.sum(axis=0).max()), _MOST_EXCHANGES
        for _ in range(_MOST_MOVES):
            peaks = loads.max(axis=1)
            if peaks.sum() <= least and peaks.max() <= self._limit:
                return
            if not self._move(block, loads, peaks):
                exchanges -= 1
                if exchanges < 0 or not self._exchange(block, loads, peaks):
                    return

    def _move(self, block: Column, loads: Loads, peaks: Loads) -> bool:
        """Make the best move of one item, if one makes the sum smaller."""
        held, best = self._held, (0, 0, 0)
        for source in range(len(loads)):
            items = np.flatnonzero((block == source) & (held[:, loads[source].argmax()] > 0))
            if not len(items):
                continue
            left = self._cost((loads[source] - held[items]).max(axis=1))
            left -= self._cost(peaks[source])
            for target in range(len(loads)):
                if target != source:
                    more = self._cost((loads[target] + held[items]).max(axis=1))
                    gain = left + more - self._cost(peaks[target])
                    at = int(gain.argmin())
                    best = min(best, (int(gain[at]), int(items[at]), target))
        if best[0] >= 0:
            return False
        _, item, target = best
        loads[block[item]] -= held[item]
        loads[target] += held[item]
        block[item] = target
        return True

    def _exchange(self, block: Column, loads: Loads, peaks: Loads) -> bool:
        """Make the best exchange of two items, if one makes the sum smaller."""
        held, best = self._held, (0, 0, 0)
        most = _MOST_PAIRS // len(loads) ** 2 // held.shape[1]
        for source in range(len(loads)):
            items = np.flatnonzero((block == source) & (held[:, loads[source].argmax()] > 0))
            for target in range(len(loads)):
                others = np.flatnonzero(block == target)
                if target == source or not len(items) or not len(others):
                    continue
                others = others[: most // len(items)]
                if not len(others):
                    continue
                apart = held[items][:, None] - held[others][None]
                gain = self._cost((loads[source] - apart).max(axis=2))
                gain += self._cost((loads[target] + apart).max(axis=2))
                gain -= self._cost(peaks[source]) + self._cost(peaks[target])
                at = int(gain.argmin())
                one, other = divmod(at, len(others))
                best = min(best, (int(gain.flat[at]), int(items[one]), int(others[other])))
        if best[0] >= 0:
            return False
        _, one, other = best
        apart = held[one] - held[other]
        loads[block[one]] -= apart
        loads[block[other]] += apart
        block[[one, other]] = block[[other, one]]
        return True
