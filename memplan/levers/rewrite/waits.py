"""Streams that wait for each other, so that a program fits into less memory.

Two tensors of parallel streams that are unsafe together may share memory all the same, if the
operator that makes the second one waits until the first is no longer needed. Such a wait takes
freedom from the program: some operators can no longer run at the same time. So each unsafe pair has
a penalty, the pairs of operators that its waits alone would put in order, and the plan that fits at
the least penalty says which waits are worth it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.programs.graph import Layout
from memplan.programs.graph.sync import Freedom, find_users, measure_freedom, synchronise
from memplan.programs.sources import Loaded, lay_out_again, of_graph
from memplan.programs.sources.loaded import explain_bare
from memplan.referee import verify
from memplan.solvers.apart import Apart, Pairs, search
from memplan.solvers.planning import load_model
from memplan.solvers.stopping import stoppable

__all__ = ["Waits", "plan_waits", "with_waits"]

_MOST_PAIRS = 1 << 20


@dataclass(frozen=True, repr=False)
class Waits:
    """A program whose streams wait for each other, and a plan that is safe for it.

    Attributes
    ----------
    apart
        The search: unsafe pairs with their penalties, the cost and its bound.
    loaded
        The program with the waits, tensors of 0 bytes, and its capacity. It is the given one if
        nothing fits.
    plan
        Its plan, which the referee has accepted.
    arcs
        Pairs of indices of outermost operators: the second one waits for the first.
    lost
        How many pairs of operators can no longer run at the same time.
    chain
        By how many operators the longest chain of operators that wait for each other grows.
    """

    apart: Apart
    loaded: Loaded
    plan: Plan
    arcs: tuple[tuple[int, int], ...]
    lost: int
    chain: int

    def __repr__(self) -> str:
        return f"<Waits: {len(self.arcs)} arcs, {self.lost} pairs of operators, {self.apart!r}>"


@stoppable()
def plan_waits(
    model: str | os.PathLike[str] | Loaded,
    *,
    capacity: int | None = None,
    timeout: float | None = None,
    nodes: int | None = None,
    seed: int = 0,
) -> Waits:
    """Plan a program on parallel streams within a capacity, with as little waiting as possible.

    Parameters
    ----------
    model
        A file of a program on streams, or what `memplan.load` returns for it.
    capacity, timeout, nodes, seed
        As for `memplan.machine.apart.plan_apart`.

    Returns
    -------
    Waits
        The penalty of a pair is how many pairs of operators its waits alone would put in order.
        `apart.status` is `infeasible` if the program does not fit whatever waits.

    Raises
    ------
    MemplanError
        One sentence: for a program on one stream or without operators, a capacity that is missing;
        and as `memplan.load`.
    """
    given = load_model(model, capacity)
    layout = given.layout
    if layout is None:
        raise MemplanError(explain_bare(given.source, "so that nothing can wait"))
    if not layout.graph.has_streams:
        raise MemplanError("the program has only one stream, so nothing has to wait")
    given = lay_out_again(given, in_place=False)
    layout = given.layout
    assert layout is not None
    freedom = measure_freedom(layout.graph)
    may_wait = _PairsOfStreams(layout, freedom)
    refused: set[tuple[int, int]] = set()
    while True:
        pairs, problem = may_wait.ask(given.problem, refused)
        found = search(problem, pairs, timeout, nodes, seed)
        if not found.plan.has_offsets:
            return Waits(found, given, Plan.of(given.problem, None, status=found.status), (), 0, 0)
        met = [(problem.index(a), problem.index(b)) for a, b in found.met]
        arcs = may_wait.arcs(met)
        waiting = with_waits(given, arcs)
        still = _unsafe(waiting, problem, met)
        if not still:
            break
        refused |= still  # no wait makes them safe
    after = measure_freedom(waiting.layout.graph)  # type: ignore[union-attr]
    plan = _plan_of(waiting.problem, found)
    return Waits(
        found, waiting, plan, arcs, freedom.pairs - after.pairs, after.chain - freedom.chain
    )


class _PairsOfStreams:
    """The unsafe pairs of a program, what has to wait for each, and what that costs."""

    def __init__(self, layout: Layout, freedom: Freedom) -> None:
        self._freedom = freedom
        self._users = find_users(layout)
        pairs = layout.problem.conflicts.pairs()
        if len(pairs) > _MOST_PAIRS:
            raise MemplanError(
                f"{len(pairs):,} pairs of buffers are unsafe together, which is too many to plan "
                f"waits for; the most are {_MOST_PAIRS:,}"
            )
        self._pairs = [(a, b) for a, b in pairs.tolist()]
        start = layout.problem.start.tolist()
        # By pair that can wait: the maker of the later one; by stream the last user of the other.
        self._waits: dict[tuple[int, int], tuple[int, dict[int, int]]] = {}
        for pair in self._pairs:
            waits = self._find_waits(*sorted(pair, key=lambda row: start[row]))
            if waits is not None:
                self._waits[pair] = waits
        self._cost = self._find_costs()

    def _find_waits(self, a: int, b: int) -> tuple[int, dict[int, int]] | None:
        """Return the maker of `b`, and by stream the last user of `a`; or nothing."""
        if not self._users[a] or not self._users[b]:
            return None
        maker = self._users[b][0]
        last: dict[int, int] = {}
        for user in self._users[a]:
            if user >= maker:
                return None
            last[int(self._freedom.stream[user])] = user
        return maker, last

    def _find_costs(self) -> dict[tuple[int, int], int]:
        """Return by pair how many pairs of operators its waits alone put in order."""
        free = self._freedom
        by_maker: dict[int, list[tuple[int, int]]] = {}
        for pair, (maker, _) in self._waits.items():
            by_maker.setdefault(maker, []).append(pair)
        latest = free.latest.astype(np.int64)
        latest[np.arange(len(latest)), free.stream] = free.place  # each comes after itself
        costs: dict[tuple[int, int], int] = {}
        for maker, pairs in by_maker.items():
            # By stream: the last place that is over when the maker may begin.
            users = [list(self._waits[pair][1].values()) for pair in pairs]
            until = np.array([latest[each].max(axis=0) for each in users])
            later = latest[:, free.stream[maker]] >= free.place[maker]  # and the maker itself
            total = np.zeros(len(pairs), np.int64)
            for stream in range(latest.shape[1]):
                others = np.sort(latest[later & (free.stream != stream), stream])
                sums = np.concatenate([[0], np.cumsum(others)])
                below = np.searchsorted(others, until[:, stream])
                total += below * until[:, stream] - sums[below]
            costs.update(zip(pairs, (max(1, cost) for cost in total.tolist()), strict=True))
        return costs

    def ask(self, given: Problem, refused: Collection[tuple[int, int]]) -> tuple[Pairs, Problem]:
        """Return the pairs that may share at a price, and the problem in which others may not."""
        priced = [pair for pair in self._pairs if pair in self._cost and pair not in refused]
        table = [(*pair, self._cost[pair]) for pair in priced]
        first, second, cost = np.ascontiguousarray(np.array(table, np.int64).reshape(-1, 3).T)
        barred = [pair for pair in self._pairs if pair not in self._cost or pair in refused]
        return Pairs(first, second, cost), given.with_conflicts(barred)

    def arcs(self, met: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return what has to wait for what: for each maker, one operator of each other stream."""
        last: dict[tuple[int, int], int] = {}
        for pair in met:
            maker, users = self._waits[pair]
            for stream, user in users.items():
                if self._freedom.latest[maker, stream] < self._freedom.place[user]:
                    last[maker, stream] = max(user, last.get((maker, stream), -1))
        return tuple(
            sorted(
                (user, maker)
                for (maker, stream), user in last.items()
                if stream != self._freedom.stream[maker]
            )
        )


def with_waits(given: Loaded, arcs: Iterable[tuple[int, int]]) -> Loaded:
    """Return a program with waits, with its limits and pins; raises as `synchronise`."""
    assert given.layout is not None
    made = of_graph(synchronise(given.layout.graph, arcs))
    asked = given.problem
    row_of = set(made.problem.ids)
    pins = {
        id: int(pin)
        for id, pin in zip(asked.ids, asked.pin.tolist(), strict=True)
        if pin >= 0 and id in row_of
    }
    problem = made.problem.with_reserved(asked.reserved).with_pins(pins)
    return replace(
        given,
        problem=problem.with_capacity(asked.capacity),
        labels=made.labels,
        graph=made.graph,
        layout=made.layout,
        tensors=made.tensors,
    )


def _unsafe(
    waiting: Loaded, problem: Problem, met: Iterable[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Return the pairs that share memory, but are unsafe all the same."""
    after = waiting.problem
    found = set()
    for a, b in met:
        one, other = (after.index(problem.ids[row]) for row in (a, b))
        if other in after.conflicts.of(one):
            found.add((a, b))
    return found


def _plan_of(problem: Problem, found: Apart) -> Plan:
    """Return the plan for the program with waits, whose own tensors need no memory."""
    known = set(found.problem.ids)
    offsets = [found.plan.offset(id) if id in known else 0 for id in problem.ids]
    plan = Plan.of(
        problem,
        offsets,
        status=Status.FITS,
        lower_bound=found.plan.lower_bound,
        solver=found.plan.solver,
    )
    verify(problem, plan)
    return plan
