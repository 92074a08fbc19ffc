"""Shrinks an infeasible problem to an irreducible infeasible subset of its buffers.

This is a deletion filter: it leaves some buffers out, and if the rest is proved infeasible again,
it goes on with the rest, or with the conflict that the new proof gives. It leaves out half of the
buffers first, then a quarter, and so on down to single ones. If the rest fits without a buffer,
it also fits when more are left out later, so one pass over single buffers is enough: each is
either deleted, or proved to be necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memplan.problem import Problem
from memplan.problem.plan import Plan, Status

Prove = Callable[[Problem, int], Plan | None]  # a problem and its budget in nodes; None: time is up

_TRIAL_SHARE = 10  # a trial gets one part in ten, so that a hard one leaves nodes for the others


class Subset(NamedTuple):
    """Ids of buffers that cannot be placed together, the largest first."""

    ids: tuple[str, ...]
    irreducible: bool  # it was shown that the rest fits without any one of them


def shrink(problem: Problem, conflict: Sequence[str], prove: Prove, nodes: int) -> Subset:
    """Return a smaller infeasible subset, which is irreducible unless the budget ends before.

    The problem is proved infeasible at its capacity; the conflict has the ids of an infeasible
    subset from that proof, and is empty for all buffers. `prove` asks a solver whether a problem
    fits. The nodes are for all trials together: they alone limit the result, unless `prove` uses a
    clock.
    """
    subset = _sort_by_area(problem, conflict or problem.ids)
    needed: set[str] = set()  # the rest was shown to fit without each of these
    left, each = nodes, max(1, nodes // _TRIAL_SHARE)
    chunk = max(1, len(subset) // 2)
    while True:
        at = 0
        while at < len(subset):
            if left <= 0:
                return Subset(_sort_largest_first(problem, subset), False)
            rest = subset[:at] + subset[at + chunk :]
            trial = prove(problem.subset([problem.index(id) for id in rest]), min(each, left))
            if trial is None:
                return Subset(_sort_largest_first(problem, subset), False)
            left -= max(1, _count_nodes(trial))
            if trial.status is Status.INFEASIBLE:
                kept = set(trial.conflict or rest)
                at = sum(id in kept for id in subset[:at])
                subset = [id for id in subset if id in kept]
                continue
            if trial.has_offsets and chunk == 1:
                needed.add(subset[at])
            at += chunk
        if chunk == 1:
            return Subset(_sort_largest_first(problem, subset), needed.issuperset(subset))
        chunk //= 2


def _sort_by_area(problem: Problem, ids: Sequence[str]) -> list[str]:
    """Sort ids by size x time, the least first, so that few large buffers are left at the end."""
    rows = {id: problem.index(id) for id in ids}

    def area(id: str) -> tuple[int, str]:
        row = rows[id]
        return int(problem.size[row]) * (int(problem.end[row]) - int(problem.start[row])), id

    return sorted(rows, key=area)


def _sort_largest_first(problem: Problem, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda id: (-int(problem.size[problem.index(id)]), id)))


def _count_nodes(plan: Plan) -> int:
    nodes = plan.stats.get("nodes", 0)
    return nodes if isinstance(nodes, int) else 0
