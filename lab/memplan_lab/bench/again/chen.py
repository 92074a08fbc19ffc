"""Keeping the result of every k-th operator, as in "Training Deep Nets with Sublinear Memory Cost".

Chen et al. (2016) cut the forward pass into segments. Only what leaves a segment is kept; the
backward pass runs each segment but the last one again before it needs its results, and keeps them
then. The paper balances segments by a budget of bytes; here each has k operators, and every k is
tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memplan.levers.rewrite.again.native import core_recompute_problem
from memplan.problem import RecomputeProblem
from memplan_lab.bench.orders.program import OrderLists, program_of

__all__ = ["iterate_sequences", "keep_every_kth"]

_EACH = 64  # up to this length, segments of every length are tried


def keep_every_kth(problem: RecomputeProblem, capacity: int) -> list[int] | None:
    """Return the cheapest sequence that fits, over all lengths of segments; `None` if none does."""
    core = core_recompute_problem(problem)
    best: tuple[int, list[int]] | None = None
    for runs in iterate_sequences(problem):
        peak, extra = core.load_of(runs)
        if peak <= capacity and (best is None or extra < best[0]):
            best = extra, runs
    return best[1] if best else None


def iterate_sequences(problem: RecomputeProblem) -> Iterator[list[int]]:
    """Yield a sequence for each length of segments, from 1 to the whole forward pass.

    The forward pass ends where the program needs most. Above `_EACH` operators, lengths grow by an
    eighth.
    """
    lists = program_of(problem.program)
    turn = _find_turn(lists)
    length = 1
    while length <= max(turn, 1):
        yield _run_segments(problem, lists, turn, length)
        length += length // 8 if length >= _EACH else 1


def _find_turn(lists: OrderLists) -> int:
    """Return the operator at which most is live without re-runs."""
    change = np.zeros(len(lists.problem) + 1, dtype=np.int64)
    for storage, users in enumerate(lists.users):
        if users:
            change[users[0]] += lists.size(storage)
            change[users[-1] + 1] -= lists.size(storage)
    return int(np.cumsum(change).argmax())


def _run_segments(
    problem: RecomputeProblem, lists: OrderLists, turn: int, length: int
) -> list[int]:
    """Return the operators as they run if the forward pass has segments of this length."""
    maker = problem.maker.tolist()
    absent = {
        storage
        for storage, users in enumerate(lists.users)
        if 0 <= maker[storage] < turn <= users[-1]
        and problem.again[maker[storage]]
        and _stays(maker[storage], users, turn, length)
    }
    runs = list(range(turn))
    for op in range(turn, len(problem)):
        waiting = [op]
        while waiting:
            needed = [maker[read] for read in lists.reads[waiting[-1]] if read in absent]
            if needed:
                waiting.append(max(needed))
            else:
                runs.append(waiting.pop())
                absent.difference_update(lists.makes[runs[-1]])
    return runs


def _stays(maker: int, users: list[int], turn: int, length: int) -> bool:
    """Return whether no later segment of the forward pass reads a storage, and there is one."""
    end = (maker // length + 1) * length
    return end < turn and not any(end <= user < turn for user in users)
