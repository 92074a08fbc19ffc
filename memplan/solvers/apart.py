"""Plans a problem in which sharing costs, and holds the result against the referee."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from memplan import solvers
from memplan.base.errors import MemplanError, PlanError
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.plan import Plan, Status
from memplan.referee import verify_apart
from memplan.solvers import native
from memplan.solvers.limits import MAX_COUNT, MAX_SEED, check_seconds, check_whole
from memplan.solvers.stopping import stoppable

__all__ = ["Apart", "Pairs", "search"]

_NODES: Final = 20_000_000  # of a search without a limit


class Pairs(NamedTuple):
    """What pairs of rows cost that share addresses; columns of shape (p,), `int64`."""

    first: Column
    second: Column
    cost: Column


@dataclass(frozen=True, repr=False)
class Apart:
    """A plan in which pairs that share addresses cost as little as possible.

    Attributes
    ----------
    problem
        What was planned, with its capacity.
    penalties
        By pair of ids: what it costs if their addresses meet.
    plan
        The plan; its lower bound and its status are about the peak at any cost. It has no offsets
        if the status is `infeasible` or `unknown`.
    status
        `optimal` if the cost is the bound.
    cost
        The penalties of all pairs whose addresses meet in the plan.
    bound
        Proved: no plan within the capacity costs less.
    peak_bound
        Proved: no plan of at most this cost has a smaller peak, in bytes.
    interrupted
        Whether Ctrl-C ended the search.
    nodes
        Work of the search.
    seconds
        Wall time.
    """

    problem: Problem
    penalties: dict[tuple[str, str], int]
    plan: Plan
    status: Status
    cost: int
    bound: int
    peak_bound: int
    interrupted: bool = False
    nodes: int = 0
    seconds: float = 0.0

    @property
    def met(self) -> tuple[tuple[str, str], ...]:
        """The pairs with a penalty above 0 that share addresses."""
        if self.plan.offsets is None:
            return ()
        lower = dict(zip(self.problem.ids, self.plan.offsets.tolist(), strict=True))
        size = dict(zip(self.problem.ids, self.problem.size.tolist(), strict=True))
        return tuple(
            (a, b)
            for (a, b), cost in self.penalties.items()
            if cost and max(lower[a], lower[b]) < min(lower[a] + size[a], lower[b] + size[b])
        )

    def verify(self) -> int:
        """Check the plan with the referee again, and return what it costs.

        Raises
        ------
        PlanError
            As `memplan.referee.verify_apart`.
        """
        return verify_apart(
            self.problem, self.penalties, self.plan, self.cost, self.bound, self.peak_bound
        )

    def __repr__(self) -> str:
        return f"<Apart: {self.status}, cost {self.cost}, bound {self.bound}, {self.plan!r}>"


def search(
    problem: Problem, pairs: Pairs, timeout: float | None, nodes: int | None, seed: int
) -> Apart:
    """Return the cheapest plan that is found for pairs of rows; see `plan_apart`."""
    begun = time.perf_counter()
    seconds = check_seconds(timeout)
    if nodes is not None:
        nodes = check_whole(nodes, "nodes", 1, MAX_COUNT)
    elif seconds is None:
        nodes = _NODES
    seed = check_whole(seed, "seed", 0, MAX_SEED)
    if problem.capacity is None:
        raise MemplanError(
            "penalties need a capacity: without one, all buffers lie apart and nothing is shared"
        )
    with stoppable() as stop:
        answer = native.plan_apart(problem, *pairs, seconds=seconds, nodes=nodes, seed=seed)
        if answer.interrupted:
            stop.set()
    status = Status(answer.status)
    ids = problem.ids
    penalties = {
        (ids[a], ids[b]): cost
        for a, b, cost in zip(*(each.tolist() for each in pairs), strict=True)
    }
    found = Apart(
        problem=problem,
        penalties=penalties,
        plan=_plan(problem, answer.offsets, status, [ids[row] for row in answer.conflict]),
        status=status,
        cost=answer.cost,
        bound=answer.bound,
        peak_bound=answer.peak_bound,
        interrupted=answer.interrupted,
        nodes=answer.nodes,
        seconds=time.perf_counter() - begun,
    )
    if found.plan.has_offsets:
        try:
            with stoppable():
                found.verify()
        except PlanError as error:
            raise RuntimeError(f"memplan made a plan that is wrong: {error}") from error
    return found


def _plan(problem: Problem, offsets: list[int], status: Status, conflict: list[str]) -> Plan:
    """Return the plan, with what is known of its peak at any cost."""
    placed: Column | None = np.array(offsets, np.int64) if status.has_plan else None
    bound = solvers.lower_bound(problem)
    if placed is None:
        return Plan.of(
            problem, None, status=status, lower_bound=bound, solver="apart", conflict=conflict
        )
    peak = int((placed + problem.size).max(initial=0))
    is_least = peak == bound
    return Plan.of(
        problem,
        placed,
        status=Status.OPTIMAL if is_least else Status.FITS,
        lower_bound=bound,
        solver="apart",
    )
