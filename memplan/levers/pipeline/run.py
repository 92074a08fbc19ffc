"""What `arrange` does in turn: it plans and writes what each lever makes, within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from memplan.answer import Step
from memplan.base.errors import InfeasibleError, NoPlanError, PlanError
from memplan.base.sizes import require_unit
from memplan.levers.again import Again
from memplan.levers.bands import Bands
from memplan.levers.lever import Aim
from memplan.levers.order import Order
from memplan.levers.pipeline.arranged import Arranged, Draft
from memplan.levers.rewrite import Reordered
from memplan.levers.rewrite.again import Limits, NoRunsError
from memplan.levers.rewrite.bands import WORK, Frontier, Point, find_frontier
from memplan.levers.writers import Comparison, Variant, Writer
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Loaded, lay_out_again
from memplan.solvers.planning import Planned, SharedBudget, layouts, plan_model
from memplan.solvers.stopping import is_stopped

__all__ = ["Run"]

_ORDER: Final = Order()
_AGAIN: Final = Again()
_BANDS: Final = Bands()
_WORK: Final = 300_000  # for the search for bands: planning and measuring take longer
_MANY: Final = 4_000_000  # nodes of a longer search for a plan, half a minute
_SPARE: Final = 8  # more bands to try where outputs differ
_TIGHTER: Final = 3  # loads to try where the plan of re-runs needs more than its load


class Run:
    """One call of `arrange`: what the levers made so far, and the best of it.

    `aim` says what the levers may do; `timeout` is for all searches together; `nodes` and `options`
    are of each plan; `exact` says whether bands are left out whose outputs differ.
    """

    def __init__(
        self,
        writer: Writer,
        capacity: int | None,
        aim: Aim,
        timeout: float | None = None,
        nodes: int | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self._writer, self._capacity, self._exact = writer, capacity, exact
        self._whole = self._budget = SharedBudget(timeout, None)
        self._nodes, self._options = nodes, options or {}
        self._compared: list[tuple[Draft, Comparison | None]] = []
        self._different: float | None = None
        self._given = writer.open()
        self._aim = replace(aim, states=nodes, in_place=aim.in_place and self.has_operators)
        require_unit(capacity, int(self._given.loaded.problem.size.max(initial=0)))
        self._order: Step | None = None
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

    @property
    def _is_over(self) -> bool:
        """Whether no time is left: what each lever found first is then all that is written."""
        return self._budget.share(1).seconds == 0

    def _aim_at(self, parts: int, **changes: Any) -> Aim:
        """Return what a lever is asked for, in one of so many parts of what is left of the time."""
        return replace(self._aim, seconds=lambda: self._budget.share(parts).seconds, **changes)

    @contextmanager
    def aim(self, capacity: int | None, parts: int) -> Iterator[None]:
        """Look for what fits, in one of so many parts of what is left of the time."""
        whole = self._budget
        self._capacity, self._budget = capacity, SharedBudget(whole.share(parts).seconds, None)
        try:
            yield
        finally:
            self._budget = whole

    def _draft(
        self,
        variant: Variant,
        *,
        parts: int,
        in_place: bool | None = None,
        point: Point | None = None,
        nodes: int | None = None,
        steps: tuple[Step, ...] = (),
    ) -> Draft:
        """Plan a program and write it; results may be written over inputs if they may at all."""
        in_place = self._aim.in_place if in_place is None else in_place
        if self._writer.takes_offsets:
            planned = plan_model(
                variant.loaded,
                in_place=in_place,
                timeout=self._budget.share(parts).seconds,
                nodes=nodes or self._nodes,
                **self._options,
            )
            if not planned.plan.has_offsets:
                is_proved = planned.plan.status is Status.INFEASIBLE
                raise (InfeasibleError if is_proved else NoPlanError)(
                    f"{self._writer.name}: no plan was found ({planned.plan.status}); nothing was "
                    "written"
                )
        else:
            planned = _take_load(variant.loaded, in_place=in_place)
        written, extra = self._writer.write(variant, planned), sum((s.extra for s in steps), 0.0)
        draft = Draft(variant, planned, written, point, steps, extra)
        self.drafts.append(draft)
        return draft

    def note(self, lever: str, words: str, extra: float = 0.0) -> None:
        """Say what a lever brought."""
        self._steps.append(Step(lever, self.best.arena, extra, words))

    def plan(self, *, first_fit: bool, parts: int) -> None:
        """Plan the program as it is."""
        in_place = self._aim.in_place
        if first_fit or not in_place:
            made = self._draft(self._given, in_place=False, parts=parts)
            if made.written.before is not None:
                self._steps.append(
                    Step("given", made.written.before, 0.0, "as its runtime plans it")
                )
            self.note("offsets", _describe_proof(made.planned.plan))
        if in_place and not (first_fit and self.fits):
            made = self._draft(self._given, parts=parts)
            self.note("in place" if first_fit else "offsets", _describe_proof(made.planned.plan))

    def find_order(self) -> Reordered:
        """Return the order with the least load, which is looked for once."""
        if self._order is None:
            aim = self._aim_at(2 if self._writer.takes_offsets else 1)
            self._order = _ORDER.find_step(self._given, self._writer, aim)
        found: Reordered = self._order.change
        return found

    def reorder(self) -> None:
        """Plan the program in the order with the least load."""
        found, step = self.find_order(), self._order
        assert step is not None
        if found.moved or _moves_inside(found) or self._writer.keeps_order:
            self._draft(self._writer.put(self._given, found), parts=2, steps=(step,))
        self.note("order", step.words)

    def run_again(self) -> None:
        """Plan the program with re-runs that cost least."""
        try:
            step = self._find_again()
        except PlanError as error:
            self.note("again", f"none: {error}")
            return
        if step is None:
            self.note("again", f"none with at most {self._aim.max_extra:.0%} more work")
        else:
            self.note("again", step.words, step.extra)

    def _find_again(self) -> Step | None:
        """Return the first re-runs whose plan fits, or else the last; `None` if work is short."""
        assert self._capacity is not None
        order, made = self._aim.has_order, None
        bare = self._writer.bare(self._given)
        least = _find_load(bare) if order and self.has_operators else 0
        aim = self._aim_at(2, goals=self._list_loads())
        program = self.find_order() if least > self._capacity else bare
        try:
            for step in _AGAIN.list_steps(program, aim, order=order):
                self.limits.append(step.change.limits)
                if step.extra > aim.max_extra + 1e-12:
                    break
                again = self._writer.put(self._given, step.change)
                self._draft(again, parts=2, steps=(step,))
                made = step
        except NoRunsError as error:
            self.limits.append(error.limits)
            if made is None:
                raise
        return made

    def _list_loads(self) -> Iterator[int]:
        """Yield the capacity, then less by what the last plan needs more than that.

        A plan may need more than the load, because of gaps.
        """
        load = self._capacity
        assert load is not None
        for _ in range(_TIGHTER):
            yield load
            over = self.drafts[-1].arena - (self._capacity or 0)
            load -= over
            if over <= 0 or load < 1 or self._is_over:
                return

    def find_frontier(self, plain: Draft) -> Frontier:
        """Return the programs in bands of which none beats another, measured once."""
        if self._frontier is None:
            uncut = self._writer.uncut(plain.variant)
            work = _WORK if self._writer.takes_offsets else WORK
            self._frontier = find_frontier(uncut, work=work)
        return self._frontier

    def cut(self, plain: Draft) -> None:
        """Plan the programs in bands that promise most."""
        frontier = self.find_frontier(plain)
        beside = 0  # what the runtime keeps beside the plan, if its figure has both
        if self._writer.trials > 1:
            beside = plain.arena - (plain.planned.plan.peak or 0)
        first, spare = self._list_points(beside, plain.arena)
        for at, point in enumerate((*first, *spare)):
            if at and self._is_over:  # the next ones too would be written, and measured
                break
            if at >= len(first) and not (self._drop_different() or self._must_go_on()):
                break
            made = self._draft_bands(plain, point, None)
            inside = self._capacity is not None and made.arena <= self._capacity
            if inside and not self._drop_different():
                break
        best = self.best
        peak, tried = best.planned.plan.peak or 0, best.point
        is_free = self._nodes is None and self._budget.share(1).seconds is None
        if tried and peak > tried.load and is_free:
            # The plan of so many small tensors needs a longer search; the best bands are worth one.
            self._draft_bands(plain, tried, _MANY)
        self._drop_different()
        chosen = self._choose().point
        words = "" if chosen else f"none: {self._explain_none()}"
        self.note("bands", words, frontier.extra(chosen) if chosen else 0.0)

    def _explain_none(self) -> str:
        assert self._frontier is not None
        if self._different is not None:
            return "outputs differ"
        return self._frontier.explain(self._frontier.points[0])

    def _draft_bands(self, plain: Draft, point: Point, nodes: int | None) -> Draft:
        for known in self.drafts if nodes is None else ():
            if known.point == point:
                return known
        assert self._frontier is not None
        step = _BANDS.make_step(self._frontier, point)
        variant, parts = self._writer.put(plain.variant, step.change), self._writer.trials
        steps = (*plain.steps, step)
        return self._draft(variant, parts=parts, point=point, nodes=nodes, steps=steps)

    def _list_points(self, beside: int, arena: int) -> tuple[list[Point], list[Point]]:
        """Return the bands to try, the most promising first, and those to try if outputs differ."""
        frontier, trials = self._frontier, self._writer.trials
        assert frontier is not None
        most = self._aim.max_extra + 1e-12
        fit = [p for p in frontier.points[1:] if frontier.extra(p) <= most]
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
            order=None if self._order is None else self._order.change,
            frontier=self._frontier,
            comparison=comparison,
            has_runtime=self._writer.has_runtime,
            capacity=self._capacity,
            seconds=self._whole.elapsed,
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
