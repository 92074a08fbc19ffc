"""The two sides of a comparison, each of which is a problem, a model or a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from memplan import solvers
from memplan.analysis.matching import Names
from memplan.base.errors import MemplanError, PlanError, ProblemError, shown
from memplan.base.notes import Code, Note
from memplan.problem import Asked, Problem
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan

if TYPE_CHECKING:
    from memplan.programs.sources.loaded import Label

__all__ = ["Side", "Subject", "make_subject", "reorder"]


@dataclass(frozen=True, slots=True)
class Side:
    """The amounts of one side, in bytes.

    Attributes
    ----------
    buffers
        How many there are.
    naive
        The sum of their sizes.
    load
        The most that is held at one time; `None` if lifetimes are not known.
    bound
        Proved: no plan has a smaller peak. 0 if nothing is known.
    peak
        The peak of the plan; `None` if there is none.
    proved
        Whether it is proved that no plan has a smaller peak.
    start, end
        The section `[start, end)` in which the plan attains its peak, or in which the load is
        greatest if there is no plan; `None` if lifetimes are not known.
    notes
        What was assumed or left out when the file was read, and what is not known.
    """

    buffers: int
    naive: int
    load: int | None
    bound: int
    peak: int | None
    proved: bool
    start: int | None
    end: int | None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Subject:
    """One side: a problem, a plan, or both, and what is known of its buffers."""

    problem: Problem | None
    plan: Plan | None
    labels: tuple[Label, ...] = ()
    given_notes: tuple[Note, ...] = ()  # of the file

    @property
    def asked(self) -> Problem:
        """The problem."""
        assert self.problem is not None  # only a subject with a plan can lack it
        return self.problem

    @property
    def answered(self) -> Plan:
        """The plan."""
        assert self.plan is not None  # the caller has planned it
        return self.plan

    def with_plan(self, plan: Plan) -> Subject:
        """Return this subject with a plan."""
        return replace(self, plan=plan)

    @cached_property
    def lifetimes(self) -> Problem | None:
        """The problem, or one made from a plan's file; `None` if the file lacks lifetimes."""
        plan = self.answered
        if self.problem is not None:
            return self.problem
        if plan.start is None or plan.end is None:
            return None
        try:
            found = Problem.from_arrays(plan.start, plan.end, plan.size, ids=plan.ids)
        except ProblemError:
            return None
        # A plan in CSV may lack the gaps of its buffers: it does if the load is above its peak.
        return found if plan.peak is None or found.max_load <= plan.peak else None

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of the file, and what is not known of this side."""
        if self.lifetimes is not None:
            return self.given_notes
        what = "its load, and what is live at its peak, are unknown"
        text = f"the plan does not have all lifetimes: {what}"
        return (*self.given_notes, Note(Code.LIFETIMES_UNKNOWN, text))

    @property
    def names(self) -> Names:
        """The properties by which its buffers are matched."""
        ids, problem = self.answered.ids, self.lifetimes
        tensors = [label.tensors for label in self.labels] or [(id,) for id in ids]
        if problem is None:
            return Names(ids, tensors, None)
        makers = [(label.kind, label.operator) for label in self.labels] or [("", "")] * len(ids)
        columns = (problem.size, problem.start, problem.end)
        return Names(ids, tensors, list(zip(*(c.tolist() for c in columns), makers, strict=True)))

    @cached_property
    def loads(self) -> Loads | None:
        """The load over time; `None` if lifetimes are not known."""
        return None if self.lifetimes is None else Loads(self.lifetimes)

    @cached_property
    def section(self) -> int | None:
        """The section of the greatest load in which the plan touches its peak."""
        plan, loads = self.answered, self.loads
        if loads is None:
            return None
        if plan.offsets is None:
            return loads.peak_section
        return loads.highest_of(np.flatnonzero(plan.offsets + plan.size == plan.peak))

    @cached_property
    def live(self) -> frozenset[int]:
        """The rows that are held in that section."""
        if self.loads is None or self.section is None or self.lifetimes is None:
            return frozenset()
        held = self.loads.held(self.section)
        return frozenset(self.lifetimes.index(each.id) for each in held)

    def side(self) -> Side:
        """Return the amounts of this side."""
        plan, loads, at = self.answered, self.loads, self.section
        bound = plan.lower_bound
        if self.problem is not None:
            bound = max(bound, solvers.lower_bound(self.problem))
        return Side(
            buffers=len(plan),
            naive=sum(plan.size.tolist()),
            load=None if loads is None else loads.peak,
            bound=bound,
            peak=plan.peak,
            proved=plan.peak == bound,
            start=None if loads is None or at is None else int(loads.start[at]),
            end=None if loads is None or at is None else int(loads.end[at]),
            notes=self.notes,
        )


def make_subject(what: Asked | Plan) -> Subject:
    """Make one side of a comparison from what a caller passed.

    A plan whose offsets do not have the peak that it claims is refused.
    """
    if isinstance(what, Problem):
        return Subject(what, None)
    if not isinstance(what, Plan):
        problem, plan = getattr(what, "problem", None), getattr(what, "plan", None)
        if not isinstance(problem, Problem):
            raise MemplanError(f"{shown(what)} is neither a problem nor a plan; load it first")
        loaded = getattr(what, "loaded", what)  # `what` may be a `Planned`
        known: tuple[Label, ...] = getattr(loaded, "labels", ())
        given_notes: tuple[Note, ...] = getattr(loaded, "notes", ())
        return Subject(problem, plan if isinstance(plan, Plan) else None, known, given_notes)
    if what.offsets is not None:
        reached = int((what.offsets + what.size).max(initial=0))
        if what.peak != reached:
            claim = f"the plan claims a peak of {what.peak}"
            raise PlanError(f"{claim}, but its offsets reach {reached}")
    return Subject(what.problem, what)


def reorder(plan: Plan, problem: Problem) -> Plan:
    """Return a plan with its buffers in the order of a problem that has the same buffers."""
    offsets = None if plan.offsets is None else [plan.offset(id) for id in problem.ids]
    return Plan.of(problem, offsets, status=plan.status, lower_bound=plan.lower_bound)
