"""Shrinking an infeasible problem to an irreducible infeasible subset of its buffers.

By deletion: leave some buffers out, and where the rest is proved infeasible again, go on with the
rest, or with the conflict that the new proof names. First half of all, then a quarter, and so on
down to single ones. What fits without a buffer still fits without more, so one pass over single
buffers is enough: each either goes, or is known to be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memplan.plan import Plan, Status
from memplan.problem import Problem

Prove = Callable[[Problem, int], Plan | None]  # a problem and its budget in nodes; None: time is up

_TRIAL_SHARE = 10  # one trial gets this part of all nodes: one hard trial must not cost the rest


class Subset(NamedTuple):
    """Ids of buffers that cannot be placed together, the largest first."""

    ids: tuple[str, ...]
    irreducible: bool  # without any one of them the rest was shown to fit


def shrink(problem: Problem, conflict: Sequence[str], prove: Prove, nodes: int) -> Subset:
    """Return a smaller infeasible subset, irreducible unless the budget ends before.

    Parameters
    ----------
    problem
        Proved infeasible at its capacity.
    conflict
        Ids of an infeasible subset, from that proof; empty for all buffers.
    prove
        Asks a solver whether a problem fits.
    nodes
        For all trials together. The result depends on nothing else, if `prove` does not.
    """
    core = _by_area(problem, conflict or problem.ids)
    needed: set[str] = set()  # shown: what is left without it fits
    left, each = nodes, max(1, nodes // _TRIAL_SHARE)
    chunk = max(1, len(core) // 2)
    while True:
        at = 0
        while at < len(core):
            if left <= 0:
                return Subset(_largest_first(problem, core), False)
            rest = core[:at] + core[at + chunk :]
            trial = prove(problem.subset([problem.index(id) for id in rest]), min(each, left))
            if trial is None:
                return Subset(_largest_first(problem, core), False)
            left -= max(1, _nodes(trial))
            if trial.status is Status.INFEASIBLE:
                kept = set(trial.conflict or rest)
                at = sum(id in kept for id in core[:at])
                core = [id for id in core if id in kept]
                continue
            if trial.has_offsets and chunk == 1:
                needed.add(core[at])
            at += chunk
        if chunk == 1:
            return Subset(_largest_first(problem, core), needed.issuperset(core))
        chunk //= 2


def _by_area(problem: Problem, ids: Sequence[str]) -> list[str]:
    """Least size x time first: what is left should be few large buffers, not many small ones."""
    rows = {id: problem.index(id) for id in ids}

    def area(id: str) -> tuple[int, str]:
        row = rows[id]
        return int(problem.size[row]) * (int(problem.end[row]) - int(problem.start[row])), id

    return sorted(rows, key=area)


def _largest_first(problem: Problem, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda id: (-int(problem.size[problem.index(id)]), id)))


def _nodes(plan: Plan) -> int:
    nodes = plan.stats.get("nodes", 0)
    return nodes if isinstance(nodes, int) else 0
