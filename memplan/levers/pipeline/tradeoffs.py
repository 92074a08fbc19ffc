"""Finds what less memory costs in more work: `memplan tradeoff`.

All levers of `arrange` are tried for one capacity after the other, and what no other program beats
in both is kept. The extra work of re-runs and of bands is one measure, so that they compare: the
share of what one plain run takes, by the roofline of `rewrite.again.costs` or as measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from memplan.base.drawing import Reported
from memplan.base.errors import MemplanError
from memplan.base.notes import Note
from memplan.levers import Aim, Plain, graph_of
from memplan.levers.pipeline.arranged import Draft
from memplan.levers.pipeline.run import Run
from memplan.levers.rewrite import Recomputed, find_floor, recompute
from memplan.levers.rewrite.again import Again, Costs, Limits, again_of, estimate_cost
from memplan.levers.rewrite.bands import Cut, Frontier
from memplan.levers.rewrite.order import load_program
from memplan.programs.sources import Loaded, lay_out_again
from memplan.solvers import Interrupted
from memplan.solvers.limits import MAX_COUNT, check_whole
from memplan.solvers.stopping import is_stopped, note_interrupt, stoppable

__all__ = ["Tradeoff", "TradeoffPoint", "tradeoff"]

_NODES: Final = 1_000  # of each search without a limit


@dataclass(frozen=True)
class TradeoffPoint:
    """A program that no other one beats in both memory and work.

    Attributes
    ----------
    draft
        The program with its plan.
    extra
        The work that it adds, as a share of that of one plain run.
    bound
        Proved: no order and no re-runs that need as little add less work, as a share. `None` of a
        program in bands or with results written over inputs, which the proof is not about.
    order_bound
        The same for first runs in the given order, or in the best one if that needs less.
    """

    draft: Draft
    extra: float
    bound: float | None
    order_bound: float | None

    @property
    def arena(self) -> int:
        """The peak of its plan, in bytes."""
        return self.draft.arena

    @property
    def again(self) -> Recomputed | None:
        """Which operators run again."""
        return self.draft.variant.again

    @property
    def levers(self) -> tuple[str, ...]:
        """What was done to the program: "in place", "order", "again", "spill", "bands"."""
        variant, found = self.draft.variant, self.draft.variant.again
        is_moved = variant.order is not None
        if found is not None:
            is_moved = found.order != tuple(range(len(found.order)))
        used = {
            "in place": self.draft.planned.in_place,
            "order": is_moved,
            "again": found is not None and found.repeated > 0,
            "spill": found is not None and len(found.moved) > 0,
            "bands": variant.cut is not None,
        }
        return tuple(lever for lever, is_used in used.items() if is_used)

    @property
    def is_proved(self) -> bool:
        """Whether no order and no re-runs add less work."""
        return self.bound is not None and self.extra <= self.bound


@dataclass(frozen=True)
class Tradeoff(Reported):
    """What less memory costs in more work, and what is proved of that.

    Attributes
    ----------
    given
        The program as it is, with its plan.
    points
        From the least work to the least memory; the first one adds no work.
    limits
        By capacity, from the largest one: what re-runs cost at least.
    floor
        Proved: no order and no re-runs need less, in bytes, unless results are written over inputs
        or computed in bands.
    floor_operator
        The operator that needs it; empty if inputs or results are as large.
    least, why
        No program that memplan can make goes below it, and what holds it up.
    plain
        What one run of all operators takes, in picoseconds.
    gains_nothing
        Whether it is proved that re-runs never help: the program needs the floor without any.
    frontier, no_bands
        The programs in bands; or `None`, and why there are none.
    interrupted
        Whether Ctrl-C ended the search.
    seconds
        Wall time.
    """

    _report = "tradeoff"

    given: Draft
    points: tuple[TradeoffPoint, ...]
    limits: tuple[Limits, ...]
    floor: int
    floor_operator: str
    least: int
    why: str
    plain: int
    gains_nothing: bool
    frontier: Frontier | None
    no_bands: str
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def plain_point(self) -> TradeoffPoint:
        """The program that adds no work."""
        return self.points[0]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was assumed when the program was read."""
        return self.given.planned.notes

    def share_of(self, cost: int) -> float:
        """Return a cost as a share of that of running every operator once."""
        return cost / self.plain if self.plain else 0.0


def tradeoff(
    model: str | os.PathLike[str] | Any,
    *,
    in_place: bool = False,
    costs: Costs | None = None,
    spill: str | None = None,
    points: int = 8,
    pure: Iterable[str] = (),
    timeout: float | None = None,
    nodes: int | None = None,
) -> Tradeoff:
    """Find what a program costs in more work if it has less memory, and bounds on that.

    Orders of operators, re-runs and bands are tried for several capacities, from what the program
    needs without more work down to the floor. Every program that is returned has a verified plan.

    Parameters
    ----------
    model
        What `memplan.load` takes, or its result.
    in_place
        Whether operators may write over inputs that are not needed any more.
    costs, spill
        See `memplan.levers.rewrite.recompute`. A part of an operator takes its share of the
        operator's time.
    points
        How many capacities are tried, at equal distances.
    pure
        See `memplan.levers.rewrite.reorder`.
    timeout
        In seconds, for all searches together.
    nodes
        For each search, for results that are the same on every machine. By default 1,000, if there
        is no limit in time.

    Raises
    ------
    GraphError, FormatError, MemplanError
        As `memplan.load`, `memplan.levers.rewrite.reorder` and `memplan.levers.rewrite.recompute`.

    Examples
    --------
    >>> import memplan as mp
    >>> found = mp.tradeoff("examples/models/residual.graph.json")
    >>> found.gains_nothing, [point.arena for point in found.points]
    (True, [73728])
    """
    check_whole(points, "points", 1, MAX_COUNT)
    loaded = load_program(model)
    free = replace(loaded, problem=loaded.problem.with_capacity(None))
    if nodes is None and timeout is None:
        nodes = _NODES
    aim = Aim(in_place=in_place, has_order=True, pure=tuple(pure), costs=costs, spill=spill)
    return _Search(free, aim, timeout, nodes).find(points)


class _Search:
    """One call of `tradeoff`."""

    def __init__(self, loaded: Loaded, aim: Aim, timeout: float | None, nodes: int | None) -> None:
        self._begun, self._aim = time.perf_counter(), aim
        self._run = Run(Plain(loaded), None, aim, timeout, nodes)

    @stoppable()
    def find(self, points: int) -> Tradeoff:
        """Try levers for one capacity after the other, from the largest one."""
        run = self._run
        with run.aim(None, 4):
            run.plan(first_fit=False, parts=2)
            run.reorder()
        given, plain = run.drafts[0], run.best
        whole = self._find_whole()
        run.limits.append(whole.limits)
        frontier, no_bands = self._find_frontier(plain)
        tries: list[tuple[int, bool]] = []  # capacities, and whether bands are tried
        if not whole.gains_nothing:
            tries += [(each, False) for each in _list_sizes(whole.floor, plain.arena, points)]
        if frontier is not None:
            low = frontier.points[-1].arena
            tries += [(each, True) for each in _list_sizes(low, plain.arena, points)]
        for at, (size, in_bands) in enumerate(tries):
            if is_stopped():
                break
            with run.aim(size, len(tries) - at):
                self._try(size, plain if in_bands else None)
        limits = _merge(run.limits)
        least, why = find_floor(graph_of(plain.variant))
        return Tradeoff(
            given=given,
            points=self._choose(plain, limits),
            limits=limits,
            floor=whole.floor,
            floor_operator=whole.floor_operator,
            least=least,
            why=why,
            plain=whole.plain,
            gains_nothing=whole.gains_nothing,
            frontier=frontier,
            no_bands=no_bands,
            interrupted=is_stopped(),
            seconds=time.perf_counter() - self._begun,
        )

    def _find_whole(self) -> Recomputed:
        """Return the program with no re-runs, for which nothing is searched but the floor."""
        order, aim = self._run.find_order(), self._aim
        load = lay_out_again(order.given, in_place=False).problem.max_load
        least = max(1, load)  # a program may have no bytes
        return recompute(order, least, costs=aim.costs, spill=aim.spill, pure=aim.pure)

    def _find_frontier(self, plain: Draft) -> tuple[Frontier | None, str]:
        """Return the programs in bands, or why there are none."""
        try:
            frontier = self._run.find_frontier(plain)
        except MemplanError as error:
            return None, f"not tried, as {error}"
        if len(frontier.points) > 1:
            return frontier, ""
        return None, frontier.explain(frontier.points[0])

    def _try(self, size: int, uncut: Draft | None) -> None:
        """Look for a program that fits: in bands, or with re-runs.

        Nothing is searched for where re-runs are known to fit that cost least even with more
        memory.
        """
        run = self._run
        try:
            if uncut is not None:
                run.cut(uncut)
            elif not any(_is_best(each, size) for each in run.drafts):
                run.run_again()
        except Interrupted:
            note_interrupt()

    def _choose(self, plain: Draft, limits: Sequence[Limits]) -> tuple[TradeoffPoint, ...]:
        """Return the programs that no other one beats, from the least work on."""
        layout = lay_out_again(plain.variant.loaded, in_place=False).layout
        assert layout is not None
        question = again_of(layout, self._aim.costs)
        measured = []
        for draft in self._run.drafts:
            cut = draft.variant.cut
            extra = draft.extra if cut is None else find_extra(cut, question)
            measured.append((extra, draft.arena, draft))
        points: list[TradeoffPoint] = []
        for extra, arena, draft in sorted(measured, key=lambda each: each[:2]):
            if points and points[-1].arena <= arena:
                continue
            bound = order_bound = None
            if draft.variant.cut is None and not draft.planned.in_place:
                known = [limit for limit in limits if limit.capacity >= arena][-1:]
                for limit in known:
                    bound = limit.bound / limit.plain if limit.plain else 0.0
                    order_bound = limit.order_bound / limit.plain if limit.plain else 0.0
            points.append(TradeoffPoint(draft, extra, bound, order_bound))
        return tuple(points)


def _is_best(draft: Draft, size: int) -> bool:
    """Return whether a program has re-runs that fit, and that are proved to cost least."""
    found = draft.variant.again
    return found is not None and draft.arena <= size and found.extra == found.bound


def _list_sizes(low: int, high: int, count: int) -> list[int]:
    """Return so many sizes below the highest, the lowest among them, from large to small."""
    sizes = {low + (high - low) * at // count for at in range(count)}
    return sorted((size for size in sizes if size < high), reverse=True)


def _merge(found: Iterable[Limits]) -> tuple[Limits, ...]:
    """Return what is proved of each capacity, from the largest on: less memory costs no less."""
    merged: list[Limits] = []
    bound = order_bound = 0
    for limit in sorted(found, key=lambda each: -each.capacity):
        if limit.is_impossible:
            merged.append(limit)
            break
        bound, order_bound = max(bound, limit.bound), max(order_bound, limit.order_bound)
        if merged and merged[-1].capacity == limit.capacity:
            merged.pop()
        merged.append(replace(limit, bound=bound, order_bound=order_bound))
    return tuple(merged)


def find_extra(cut: Cut, question: Again) -> float:
    """Return the work that bands add, as a share of the time of the program.

    A part takes the share of its operator's time that its roofline has. Copies of bands are as fast
    in relation to theirs as the whole program.
    """
    whole, graph = question.graph, cut.graph()
    cost, plain = question.problem.cost.tolist(), question.problem.plain
    roof = [estimate_cost(whole, operator) for operator in whole.operators]
    total = sum(each for at, each in enumerate(roof) if at not in question.views)
    spent = 0.0
    for action, operator in zip(cut.actions, graph.operators, strict=True):
        time, base = (cost[action.step], roof[action.step]) if action.step >= 0 else (plain, total)
        if base:
            spent += estimate_cost(graph, operator) * time / base
    return spent / plain - 1 if plain else 0.0
