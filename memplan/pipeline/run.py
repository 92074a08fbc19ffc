"""What `arrange` does in turn: it drafts a program after each lever, and shares out the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, Final

from memplan.answer import Step
from memplan.base.errors import InfeasibleError, MemplanError, NoPlanError, PlanError
from memplan.base.sizes import require_unit
from memplan.levers.again import describe_again
from memplan.levers.writers import Comparison, Variant, Writer
from memplan.pipeline.arranged import Arranged, Draft
from memplan.planning import Planned, layouts, plan_model
from memplan.problem.plan import Plan, Status
from memplan.rewrite import Recomputed, Reordered, recompute, reorder, reorder_to_plan
from memplan.rewrite.again import Costs, Limits, NoRunsError
from memplan.rewrite.bands import WORK, Frontier, Point, find_frontier
from memplan.solvers.limits import check_seconds
from memplan.solvers.stopping import is_stopped
from memplan.sources import Loaded, lay_out_again

__all__ = ["Run"]

_WORK: Final = 300_000  # for the search for bands: planning and measuring take longer
_MANY: Final = 4_000_000  # nodes of a longer search for a plan, half a minute
_SPARE: Final = 8  # more bands to try where outputs differ
_TIGHTER: Final = 3  # loads to try where the plan of re-runs needs more than its load


class Run:
    """One call of `arrange`: the best draft so far, and what is left of the budget."""

    def __init__(
        self,
        writer: Writer,
        capacity: int | None,
        timeout: float | None,
        nodes: int | None,
        options: Mapping[str, Any],
        *,
        exact: bool = False,
    ) -> None:
        self._writer = writer
        self._exact = exact
        self._compared: list[tuple[Draft, Comparison | None]] = []
        self._different: float | None = None
        self._capacity = capacity
        self._begun, self._timeout = time.perf_counter(), check_seconds(timeout)
        self._until = None if self._timeout is None else self._begun + self._timeout
        self._nodes, self._options = nodes, options
        self._given = writer.open()
        require_unit(capacity, int(self._given.loaded.problem.size.max(initial=0)))
        self._found: Reordered | None = None
        self._frontier: Frontier | None = None
        self._steps: list[Step] = []
        self.drafts: list[Draft] = []
        self.limits: list[Limits] = []  # what re-runs cost at least

    @property
    def has_operators(self) -> bool:
        """Whether there is a program, and not only a problem."""
        return self._given.loaded.graph is not None

    @property
    def best(self) -> Draft:
        """The draft with the smallest arena; of equal ones the first."""
        return min(self.drafts, key=lambda draft: draft.arena)

    @property
    def fits(self) -> bool:
        """Whether the best draft is within the capacity."""
        return self._capacity is not None and self.best.arena <= self._capacity

    def _left(self, parts: int) -> float | None:
        """Return the seconds of one of so many parts of what is left."""
        if is_stopped():
            return 0.0
        return None if self._until is None else max(self._until - time.perf_counter(), 0.0) / parts

    @property
    def _is_over(self) -> bool:
        """Whether no time is left: what each lever found first is then all that is written."""
        left = self._left(1)
        return left is not None and left <= 0

    @contextmanager
    def aim(self, capacity: int | None, parts: int) -> Iterator[None]:
        """Look for what fits, in one of so many parts of what is left of the time."""
        whole, left = self._until, self._left(parts)
        self._capacity, self._until = capacity, None if left is None else time.perf_counter() + left
        try:
            yield
        finally:
            self._until = whole

    def _plan(
        self, loaded: Loaded, *, in_place: bool, parts: int, nodes: int | None = None
    ) -> Planned:
        """Plan a program with its part of the budget."""
        left, most = self._left(parts), nodes or self._nodes
        return plan_model(loaded, in_place=in_place, timeout=left, nodes=most, **self._options)

    def _draft(
        self,
        variant: Variant,
        *,
        in_place: bool,
        parts: int,
        point: Point | None = None,
        nodes: int | None = None,
        extra: float = 0.0,
    ) -> Draft:
        """Plan a program and write it."""
        if self._writer.takes_offsets:
            planned = self._plan(variant.loaded, in_place=in_place, parts=parts, nodes=nodes)
            if not planned.plan.has_offsets:
                is_proved = planned.plan.status is Status.INFEASIBLE
                raise (InfeasibleError if is_proved else NoPlanError)(
                    f"{self._writer.name}: no plan was found ({planned.plan.status}); nothing was "
                    "written"
                )
        else:
            planned = _take_load(variant.loaded, in_place=in_place)
        draft = Draft(variant, planned, self._writer.write(variant, planned), point, extra)
        self.drafts.append(draft)
        return draft

    def _draft_anyway(self, variant: Variant, *, in_place: bool, extra: float = 0.0) -> Draft:
        """Plan a program and write it, also without offsets."""
        planned = self._plan(variant.loaded, in_place=in_place, parts=1)
        draft = Draft(variant, planned, self._writer.write(variant, planned), extra=extra)
        self.drafts.append(draft)
        return draft

    def note(self, lever: str, words: str, extra: float = 0.0) -> None:
        """Say what a lever brought."""
        self._steps.append(Step(lever, self.best.arena, extra, words))

    def plan(self, *, in_place: bool, first_fit: bool, parts: int) -> None:
        """Plan the program as it is."""
        if first_fit or not in_place:
            made = self._draft(self._given, in_place=False, parts=parts)
            if made.written.before is not None:
                self._steps.append(
                    Step("given", made.written.before, 0.0, "as its runtime plans it")
                )
            self.note("offsets", _describe_proof(made.planned.plan))
        if in_place and not (first_fit and self.fits):
            made = self._draft(self._given, in_place=True, parts=parts)
            self.note("in place" if first_fit else "offsets", _describe_proof(made.planned.plan))

    def find_order(self, *, in_place: bool, pure: tuple[str, ...]) -> Reordered:
        """Return the order with the least load."""
        if self._found is None:
            takes_offsets = self._writer.takes_offsets
            self._found = (reorder_to_plan if takes_offsets else reorder)(
                self._writer.bare(self._given),
                in_place=in_place,
                timeout=self._left(2 if takes_offsets else 1),
                states=self._nodes,
                pure=pure,
            )
        return self._found

    def reorder(self, *, in_place: bool, pure: tuple[str, ...]) -> None:
        """Plan the program in the order with the least load."""
        found = self.find_order(in_place=in_place, pure=pure)
        if found.moved or _moves_inside(found) or self._writer.keeps_order:
            self._draft(self._writer.put(self._given, found), in_place=in_place, parts=2)
        proved = " (proved: no order needs less)" if found.peak == found.bound else ""
        self.note("order", f"load {found.peak}, at least {found.bound}{proved}")

    def plan_in_order(self, *, in_place: bool, pure: tuple[str, ...]) -> None:
        """Plan the program in the order with the least load, which may be its own."""
        found = self.find_order(in_place=in_place, pure=pure)
        self._draft_anyway(self._writer.put(self._given, found), in_place=in_place)

    def run_again(
        self,
        *,
        in_place: bool,
        order: bool,
        pure: tuple[str, ...],
        costs: Costs | None = None,
        spill: str | None = None,
        max_extra: float = inf,
    ) -> None:
        """Plan the program with re-runs that cost least."""
        try:
            draft = self._find_again(
                lambda variant, found: self._draft(
                    variant, in_place=in_place, parts=2, extra=found.share
                ),
                in_place=in_place,
                order=order,
                pure=pure,
                costs=costs,
                spill=spill,
                max_extra=max_extra,
            )
        except PlanError as error:
            self.note("again", f"none: {error}")
            return
        if draft is None:
            self.note("again", f"none with at most {max_extra:.0%} more work")
            return
        found = draft.variant.again
        assert found is not None
        self.note("again", describe_again(found), found.share)

    def plan_again(
        self, *, in_place: bool, costs: Costs | None, spill: str | None, pure: tuple[str, ...]
    ) -> None:
        """Plan the program with re-runs that cost least, whether or not a plan is found."""
        if spill is not None and not self._writer.moves:
            raise MemplanError(
                f"{self._writer.name}: this format cannot move tensors to another memory and back; "
                "leave out spill"
            )
        self._find_again(
            lambda variant, found: self._draft_anyway(
                variant, in_place=in_place, extra=found.share
            ),
            in_place=in_place,
            order=True,
            costs=costs,
            spill=spill,
            pure=pure,
        )

    def _find_again(
        self,
        draft: Callable[[Variant, Recomputed], Draft],
        *,
        in_place: bool,
        order: bool,
        pure: tuple[str, ...],
        costs: Costs | None = None,
        spill: str | None = None,
        max_extra: float = inf,
    ) -> Draft | None:
        """Return the first draft with re-runs that fits, or else the last; `None` if work is short.

        A plan may need more than the load, because of gaps: the load is then to be smaller by that.
        """
        assert self._capacity is not None
        load, made = self._capacity, None
        bare = self._writer.bare(self._given)
        program: Loaded | Reordered = bare
        if order and self.has_operators and _find_load(bare) > load:
            program = self.find_order(in_place=in_place, pure=pure)
        for _ in range(_TIGHTER):
            try:
                found = recompute(
                    program,
                    load,
                    costs=costs,
                    spill=spill,
                    order=order,
                    timeout=self._left(2),
                    states=self._nodes,
                    pure=pure,
                )
            except NoRunsError as error:
                self.limits.append(error.limits)
                if made is None:
                    raise
                break
            self.limits.append(found.limits)
            if found.share > max_extra + 1e-12:
                break
            made = draft(self._writer.put(self._given, found), found)
            over = made.arena - self._capacity
            if (
                over <= 0
                or self._is_over
                or (not made.planned.plan.has_offsets and self._writer.takes_offsets)
            ):
                break
            load -= over
            if load < 1:
                break
        return made

    def find_frontier(self, plain: Draft) -> Frontier:
        """Return the programs in bands of which none beats another, measured once."""
        if self._frontier is None:
            uncut = self._writer.uncut(plain.variant)
            work = _WORK if self._writer.takes_offsets else WORK
            self._frontier = find_frontier(uncut, work=work)
        return self._frontier

    def cut(self, plain: Draft, *, in_place: bool, max_extra: float) -> None:
        """Plan the programs in bands that promise most."""
        frontier = self.find_frontier(plain)
        beside = 0  # what the runtime keeps beside the plan, if its figure has both
        if self._writer.trials > 1:
            beside = plain.arena - (plain.planned.plan.peak or 0)
        first, spare = self._list_points(max_extra, beside, plain.arena)
        for at, point in enumerate((*first, *spare)):
            if at and self._is_over:  # the next ones too would be written, and measured
                break
            if at >= len(first) and not (self._drop_different() or self._must_go_on()):
                break
            made = self._draft_bands(plain, point, in_place, None)
            inside = self._capacity is not None and made.arena <= self._capacity
            if inside and not self._drop_different():
                break
        best = self.best
        peak, tried = best.planned.plan.peak or 0, best.point
        if tried and peak > tried.load and self._timeout is None and self._nodes is None:
            # The plan of so many small tensors needs a longer search; the best bands are worth one.
            self._draft_bands(plain, tried, in_place, _MANY)
        self._drop_different()
        chosen = self._choose().point
        words = "" if chosen else f"none: {self._explain_none()}"
        self.note("bands", words, frontier.extra(chosen) if chosen else 0.0)

    def _explain_none(self) -> str:
        assert self._frontier is not None
        if self._different is not None:
            return "outputs differ"
        return self._frontier.explain(self._frontier.points[0])

    def _draft_bands(self, plain: Draft, point: Point, in_place: bool, nodes: int | None) -> Draft:
        for known in self.drafts if nodes is None else ():
            if known.point == point:
                return known
        assert self._frontier is not None
        variant = self._writer.put(plain.variant, self._frontier.cut(point))
        extra, parts = self._frontier.extra(point), self._writer.trials
        return self._draft(
            variant, in_place=in_place, parts=parts, point=point, nodes=nodes, extra=extra
        )

    def _list_points(
        self, max_extra: float, beside: int, arena: int
    ) -> tuple[list[Point], list[Point]]:
        """Return the bands to try, the most promising first, and those to try if outputs differ."""
        frontier, trials = self._frontier, self._writer.trials
        assert frontier is not None
        fit = [p for p in frontier.points[1:] if frontier.extra(p) <= max_extra + 1e-12]
        fit = [p for p in fit if p.arena + beside < arena or trials > 1]
        by_arena = sorted(fit, key=lambda point: (point.arena, point.work))
        if self._capacity is None:
            return by_arena[:trials], by_arena[trials:][:_SPARE]
        inside = [p for p in fit if p.arena + beside <= self._capacity]
        by_work = sorted(inside, key=lambda point: (point.work, point.arena))
        if trials == 1:
            first = [*by_work[:3], *by_arena[:1]]
        else:
            near = [p for p in by_arena if p not in inside]
            first = [*by_work[: trials - 1], *by_arena[:2], *near[:1]]
        spare = (*by_work[: len(first) + _SPARE], *by_arena[: 1 + _SPARE])
        return first, [p for p in dict.fromkeys(spare) if p not in first]

    def _compare(self, draft: Draft) -> Comparison | None:
        """Compare the outputs of a draft in bands with those of the program, once."""
        for each, known in self._compared:
            if each is draft:
                return known
        made = self._writer.compare(self._given, draft.written)
        self._compared.append((draft, made))
        return made

    def _must_go_on(self) -> bool:
        """Whether nothing fits, and bands that might have were left out."""
        return self._capacity is not None and self._different is not None and not self.fits

    def _drop_different(self) -> bool:
        """Leave out the drafts that would be chosen while their outputs differ, if they may not.

        Return whether there was one.
        """
        found = False
        while self._exact and (best := self._choose()).repeats_work:
            comparison = self._compare(best)
            if comparison is None or not comparison.difference:
                break
            self.drafts = [each for each in self.drafts if each is not best]
            self._different = max(self._different or 0.0, comparison.difference)
            found = True
        return found

    def finish(self, plain: Draft) -> Arranged:
        """Compare the outputs, and return all that was found."""
        best = self._choose()
        comparison = self._compare(best) if best.repeats_work else None
        return Arranged(
            name=self._writer.name,
            given=self._given,
            plain=plain,
            best=best,
            steps=tuple(self._steps),
            order=self._found,
            frontier=self._frontier,
            comparison=comparison,
            has_runtime=self._writer.has_runtime,
            capacity=self._capacity,
            seconds=time.perf_counter() - self._begun,
            drafts=tuple(self.drafts),
            interrupted=is_stopped(),
            different=self._different,
        )

    def _choose(self) -> Draft:
        """Return the draft with the least work that fits, or else the one with the least arena."""
        if not self.fits:
            return self.best
        assert self._capacity is not None
        fit = [draft for draft in self.drafts if draft.arena <= self._capacity]
        return min(fit, key=lambda draft: (draft.extra, draft.arena))


def _take_load(loaded: Loaded, *, in_place: bool) -> Planned:
    """Return the layout with the smallest load, with the bound that it is instead of a plan."""
    best = min(layouts(loaded, in_place=in_place), key=lambda each: each.problem.max_load)
    load = best.problem.max_load
    return Planned(best, Plan.of(best.problem, None, status=Status.UNKNOWN, lower_bound=load))


def _find_load(loaded: Loaded) -> int:
    """Return the load of a program whose operators write over no input."""
    return lay_out_again(loaded, in_place=False).problem.max_load


def _moves_inside(found: Reordered) -> bool:
    given = found.given.graph
    return given is not None and found.graph.operators != given.operators


def _describe_proof(plan: Plan) -> str:
    if plan.peak is None:
        return "its load: the runtime takes no plan"
    if plan.peak == plan.lower_bound:
        return "proved: no plan of this order needs less"
    return f"at least {plan.lower_bound}"
