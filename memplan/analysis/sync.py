"""What parallel streams cost in memory, and which synchronisation would save most of it.

Memory may be reused across streams only if one operator is known to wait for another. One more arc
makes more reuse safe, and takes freedom from the program; both effects are measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memplan import solvers
from memplan.problem import Problem
from memplan.programs.graph import Graph, Layout, lay_out
from memplan.programs.graph.sync import Freedom, find_users, measure_freedom, synchronise
from memplan.referee import verify

__all__ = ["CostOfSafety", "Suggestion", "cost_of_safety", "suggest_sync"]

_PLACES = 8  # operators that are made to wait, in one round: those where most is needed at once
_DEPTHS = 4  # operators on each other stream that they are made to wait for
_PLANNED = 8  # arcs of a round that are planned: those after which least is needed at once


@dataclass(frozen=True, slots=True)
class CostOfSafety:
    """Peaks of one program, in bytes.

    Attributes
    ----------
    bound
        No plan for one stream needs less.
    one_stream
        The peak of a plan for operators that run one after the other, in the graph's order.
    streams
        The peak of a plan that is safe for every execution on the streams.
    """

    bound: int
    one_stream: int
    streams: int

    @property
    def bytes(self) -> int:
        """The cost of the streams; below 0 if the solver happens to do better with them."""
        return self.streams - self.one_stream


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An arc between streams: one operator waits for another.

    Attributes
    ----------
    before, after
        Indices of outermost operators: `after` waits for `before`.
    peak
        The peak with this arc and those suggested before it, in bytes.
    saves
        How much lower that is than without this arc; 0 for an arc that only later ones build on.
    unsafe
        How many pairs of buffers become safe.
    freedom
        How many pairs of operators can no longer run at the same time.
    chain
        By how many operators the longest chain of operators that wait for each other grows.
    """

    before: int
    after: int
    peak: int
    saves: int
    unsafe: int
    freedom: int
    chain: int


def cost_of_safety(program: Graph | Layout, solver: str = "greedy") -> CostOfSafety:
    """Return how much memory a program needs on its streams, and how much on a single one.

    Parameters
    ----------
    program
        A graph stands for `lay_out(graph)`.
    solver
        The solver; see `memplan.solve`.

    Raises
    ------
    GraphError
        As `lay_out`.
    UnsupportedError
        If the solver does not support conflicts, or groups and the program has some.
    PlanError
        If pins and groups leave no plan.
    """
    layout = program if isinstance(program, Layout) else lay_out(program)
    alone = layout.problem.without_conflicts()
    return CostOfSafety(
        solvers.lower_bound(alone), _peak(alone, solver), _peak(layout.problem, solver)
    )


def suggest_sync(
    graph: Graph, most: int = 5, solver: str = "greedy", *, in_place: bool = False
) -> list[Suggestion]:
    """Return the arcs between streams that save most, each in addition to those before it.

    This is a greedy search. Where most memory may be needed at once, the operator is made to wait
    for operators on other streams that may lag behind. For every arc that is tried, the unsafe
    pairs are computed again; for the most promising arcs, the program is planned again.

    Parameters
    ----------
    graph
        A program on several streams.
    most
        How many arcs at most, at least 0.
    solver
        As for `cost_of_safety`.
    in_place
        As for `lay_out`.

    Returns
    -------
    list of Suggestion
        Empty if no arc saves anything. The last one saves something.

    Raises
    ------
    GraphError, UnsupportedError
        As `cost_of_safety`.
    """
    now = _State(graph, solver, in_place)
    least = _peak(now.layout.problem.without_conflicts(), solver)
    found: list[Suggestion] = []
    while len(found) < most and now.peak > least:
        tried = [(now.with_arc(arc), arc) for arc in now.arcs()]
        tried = sorted(tried, key=lambda one: (one[0].needed, one[1]))[:_PLANNED]
        best = min(tried, key=lambda one: (one[0].rank, one[1]), default=None)
        if best is None or best[0].rank[:3] >= now.rank[:3]:
            break
        (then, (before, after)) = best
        found.append(
            Suggestion(
                before,
                after,
                then.peak,
                now.peak - then.peak,
                now.unsafe - then.unsafe,
                now.freedom.pairs - then.freedom.pairs,
                then.freedom.chain - now.freedom.chain,
            )
        )
        now = then
    while found and found[-1].saves <= 0:
        found.pop()
    return found


class _State:
    """A graph with some arcs added."""

    def __init__(self, graph: Graph, solver: str, in_place: bool) -> None:
        self.graph = graph
        self.layout = lay_out(graph, in_place=in_place)
        self._solver = solver
        self._in_place = in_place

    def with_arc(self, arc: tuple[int, int]) -> _State:
        return _State(synchronise(self.graph, [arc]), self._solver, self._in_place)

    @cached_property
    def peak(self) -> int:
        return _peak(self.layout.problem, self._solver)

    @cached_property
    def freedom(self) -> Freedom:
        return measure_freedom(self.graph)

    @property
    def unsafe(self) -> int:
        return len(self.layout.problem.conflicts)

    @property
    def rank(self) -> tuple[float, ...]:
        """Less is better: the peak, then the bytes needed at once, then the freedom lost."""
        return self.peak, *self.needed, self.freedom.chain, -self.freedom.pairs

    @cached_property
    def needed(self) -> tuple[float, float]:
        """The most bytes that may be needed at once, and the sum of what exceeds one stream's."""
        pressure = self._pressure
        excess = np.maximum(pressure - self.layout.problem.max_load, 0)
        return float(pressure.max(initial=0)), float(excess.sum())

    @cached_property
    def _over_but_needed(self) -> list[npt.NDArray[np.int32]]:
        """By row: the rows over before it in the graph's order, but maybe still needed with it."""
        problem = self.layout.problem
        rows = map(problem.conflicts.of, range(len(problem)))
        starts = problem.start.tolist()
        return [some[problem.end[some] <= at] for some, at in zip(rows, starts, strict=True)]

    @cached_property
    def _pressure(self) -> npt.NDArray[np.float64]:
        """By row: the bytes that may be needed when it begins, live or over in the graph's order.

        These are floats, because the sum of what is over is not bounded by 2^62 bytes.
        """
        size = self.layout.problem.size.astype(np.float64)
        lagging = [float(size[some].sum()) for some in self._over_but_needed]
        live = _load_at_start(self.layout.problem).astype(np.float64)
        return live + np.array(lagging, dtype=np.float64)

    def arcs(self) -> Iterator[tuple[int, int]]:
        """Yield arcs to try, each once: to operators where the pressure is greatest."""
        users = find_users(self.layout)
        order = np.argsort(-self._pressure, kind="stable").tolist()
        after: list[int] = []
        seen: set[tuple[int, int]] = set()
        for row in order:
            if not len(self._over_but_needed[row]) or not users[row]:
                break
            if users[row][0] in after:
                continue
            after.append(users[row][0])
            for before in self._find_waits(row, users):
                if (before, after[-1]) not in seen:
                    seen.add((before, after[-1]))
                    yield before, after[-1]
            if len(after) == _PLACES:
                break

    def _find_waits(self, row: int, users: list[list[int]]) -> Iterator[int]:
        """Yield operators that the maker of a row could wait for, a few on each stream."""
        maker = users[row][0]
        free = self.freedom
        size = self.layout.problem.size
        weight: dict[int, dict[int, int]] = {}  # by stream and operator: bytes that are free then
        for other in self._over_but_needed[row].tolist():
            for stream in {int(free.stream[user]) for user in users[other]}:
                last = max(user for user in users[other] if free.stream[user] == stream)
                if free.place[last] > free.latest[maker, stream] and last < maker:
                    freed = weight.setdefault(stream, {})
                    freed[last] = freed.get(last, 0) + int(size[other])
        for freed in weight.values():
            total, sofar, depth = sum(freed.values()), 0, 1
            for operator in sorted(freed):
                sofar += freed[operator]
                if sofar * _DEPTHS >= total * depth:
                    depth = sofar * _DEPTHS // max(total, 1) + 1
                    yield operator


def _peak(problem: Problem, solver: str) -> int:
    plan = solvers.solve(problem, solver=solver, objective="min_peak")
    verify(problem, plan)
    assert plan.peak is not None  # the referee rejects a plan without offsets
    return plan.peak


def _load_at_start(problem: Problem) -> npt.NDArray[np.int64]:
    """Return by row how many bytes are live at the time when it begins."""
    begun = np.argsort(problem.start, kind="stable")
    ended = np.argsort(problem.end, kind="stable")
    began = np.concatenate([[0], np.cumsum(problem.size[begun])])
    over = np.concatenate([[0], np.cumsum(problem.size[ended])])
    at = problem.start
    until = np.searchsorted(problem.start[begun], at, side="right")
    gone = np.searchsorted(problem.end[ended], at, side="right")
    load: npt.NDArray[np.int64] = began[until] - over[gone]
    return load
