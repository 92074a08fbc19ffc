"""What parallel streams cost in memory, and which synchronisation would save most of it.

Memory may be reused across streams only where one operator is known to wait for another. An arc
more makes more reuse safe, and takes freedom from the program: both prices are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memplan import solvers
from memplan.graph import Graph, Layout, lay_out
from memplan.graph.sync import Freedom, find_users, measure_freedom, synchronise
from memplan.problem import Problem
from memplan.referee import verify

__all__ = ["CostOfSafety", "Suggestion", "cost_of_safety", "suggest_sync"]

_PLACES = 8  # where a wait is tried in a round: where most is needed at once
_DEPTHS = 4  # how far back on each other stream it may reach
_PLANNED = 8  # of these, how many are planned: those after which least is needed at once


@dataclass(frozen=True, slots=True)
class CostOfSafety:
    """Peaks of one program, in bytes.

    Attributes
    ----------
    bound
        No plan for one stream needs less.
    one_stream
        Planned as if all operators ran one after the other, in the graph's order.
    streams
        Planned so that every execution on its streams is safe.
    """

    bound: int
    one_stream: int
    streams: int

    @property
    def bytes(self) -> int:
        """What the streams cost; below 0 where the heuristic was luckier with them."""
        return self.streams - self.one_stream


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An arc between streams: one operator waits for another.

    Attributes
    ----------
    before, after
        Indices of outermost operators: `after` waits for `before`.
    peak
        With this arc and those suggested before it, in bytes.
    saves
        How much less that is than without this one; 0 for a step that later ones need.
    unsafe
        How many pairs of buffers become safe.
    freedom
        How many pairs of operators can no longer run at the same time.
    chain
        By how many operators the longest chain of those that wait for each other grows.
    """

    before: int
    after: int
    peak: int
    saves: int
    unsafe: int
    freedom: int
    chain: int


def cost_of_safety(program: Graph | Layout, solver: str = "greedy") -> CostOfSafety:
    """Return what a program needs on its streams, and what it would need on one.

    Parameters
    ----------
    program
        A graph stands for `lay_out(graph)`.
    solver
        Who plans; as `memplan.solve` has it.

    Raises
    ------
    GraphError
        As `lay_out`.
    UnsupportedError
        If the solver does not keep conflicts, or groups where there are some.
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
    """Return the arcs between streams that save most, one on top of the other.

    A greedy search: where most memory may be needed at once, the operator there is made to wait for
    others on other streams that may lag behind. For every arc that is tried, what is unsafe is
    found anew; the most promising ones are planned anew.

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
        Empty where nothing is to be gained. The last one saves something.

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
        """Less is better: bytes, then how many may be needed at once, then what freedom is lost."""
        return self.peak, *self.needed, self.freedom.chain, -self.freedom.pairs

    @cached_property
    def needed(self) -> tuple[float, float]:
        """How many bytes may be needed at once, at most and how often more than on one stream."""
        pressure = self._pressure
        excess = np.maximum(pressure - self.layout.problem.max_load, 0)
        return float(pressure.max(initial=0)), float(excess.sum())

    @cached_property
    def _lagging(self) -> list[npt.NDArray[np.int32]]:
        """Return by row who is over before it in the graph's order, and yet may be needed then."""
        problem = self.layout.problem
        rows = map(problem.conflicts.of, range(len(problem)))
        starts = problem.start.tolist()
        return [some[problem.end[some] <= at] for some, at in zip(rows, starts, strict=True)]

    @cached_property
    def _pressure(self) -> npt.NDArray[np.float64]:
        """Return by row what may be needed when it begins: what is live, and what lags behind.

        Floats, as what lags is not bounded by 2^62 bytes.
        """
        size = self.layout.problem.size.astype(np.float64)
        lagging = [float(size[some].sum()) for some in self._lagging]
        live = _load_at_start(self.layout.problem).astype(np.float64)
        return live + np.array(lagging, dtype=np.float64)

    def arcs(self) -> Iterator[tuple[int, int]]:
        """Yield arcs to try, each once: to where the pressure is greatest, from what lags there."""
        who = find_users(self.layout)
        order = np.argsort(-self._pressure, kind="stable").tolist()
        after: list[int] = []
        seen: set[tuple[int, int]] = set()
        for row in order:
            if not len(self._lagging[row]) or not who[row]:
                break
            if who[row][0] in after:
                continue
            after.append(who[row][0])
            for before in self._laggards(row, who):
                if (before, after[-1]) not in seen:
                    seen.add((before, after[-1]))
                    yield before, after[-1]
            if len(after) == _PLACES:
                break

    def _laggards(self, row: int, who: list[list[int]]) -> Iterator[int]:
        """Yield operators that the maker of a row could wait for: on each stream, a few."""
        maker = who[row][0]
        free = self.freedom
        size = self.layout.problem.size
        weight: dict[int, dict[int, int]] = {}  # by stream and operator: bytes that are free then
        for other in self._lagging[row].tolist():
            for stream in {int(free.stream[user]) for user in who[other]}:
                last = max(user for user in who[other] if free.stream[user] == stream)
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
    assert plan.peak is not None  # a plan without offsets does not pass
    return plan.peak


def _load_at_start(problem: Problem) -> npt.NDArray[np.int64]:
    """Return by row how much is live at the time when it begins."""
    begun = np.argsort(problem.start, kind="stable")
    ended = np.argsort(problem.end, kind="stable")
    began = np.concatenate([[0], np.cumsum(problem.size[begun])])
    over = np.concatenate([[0], np.cumsum(problem.size[ended])])
    at = problem.start
    until = np.searchsorted(problem.start[begun], at, side="right")
    gone = np.searchsorted(problem.end[ended], at, side="right")
    load: npt.NDArray[np.int64] = began[until] - over[gone]
    return load
