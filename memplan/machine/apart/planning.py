"""Plans a problem in which sharing costs, and holds the result against the referee."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from memplan import solvers
from memplan.base.errors import MemplanError, PlanError
from memplan.machine.apart.penalties import Pairs, Penalties, take_penalties
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Loaded
from memplan.referee import verify_apart
from memplan.solvers import native
from memplan.solvers.limits import MAX_COUNT, MAX_SEED, check_seconds, check_whole
from memplan.solvers.planning import load_model
from memplan.solvers.stopping import stoppable

__all__ = ["Apart", "plan_apart", "search"]

_NODES: Final = 20_000_000  # of a search without a limit


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


def plan_apart(
    model: str | os.PathLike[str] | Loaded | Problem,
    penalties: Penalties,
    *,
    capacity: int | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    seed: int = 0,
) -> Apart:
    """Plan buffers of which some pairs should not share addresses, at the least cost.

    Two buffers that share addresses tie the operators that use them to an order. Where these could
    run side by side, that costs time, which only the caller knows.

    Parameters
    ----------
    model
        A file that `memplan.load` reads, its result, or a problem.
    penalties
        By pair of ids: what it costs if the two share an address, a whole number from 0 on; or a
        file in CSV with the columns `first,second,cost`. Other pairs may share for nothing.
    capacity
        In bytes; by default that of the file or the problem. One of them is needed, as without a
        limit nothing has to be shared.
    timeout
        Seconds. A clock makes the answer depend on the machine.
    nodes
        Work of all searches, about a microsecond each; without a timeout, by default 20 million.
    seed
        Seed of the search's random choices.

    Returns
    -------
    Apart
        The cheapest plan that is found, with a proved bound; of the cheapest ones, the one with the
        smallest peak.

    Raises
    ------
    MemplanError
        One sentence: for penalties that make no sense, a capacity that is missing; and as
        `memplan.load`.

    Examples
    --------
    >>> import memplan as mp
    >>> buffers = [mp.Buffer("a", 0, 1, 8), mp.Buffer("b", 1, 2, 8), mp.Buffer("c", 2, 3, 8)]
    >>> prices = {("a", "b"): 5, ("b", "c"): 5, ("a", "c"): 2}
    >>> found = mp.plan_apart(mp.Problem(buffers), prices, capacity=16)
    >>> found.cost, found.met, str(found.status)
    (2, (('a', 'c'),), 'optimal')
    """
    problem = load_model(model, capacity).problem
    return search(problem, take_penalties(problem, penalties), timeout, nodes, seed)


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
