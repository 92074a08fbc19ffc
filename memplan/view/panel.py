"""What the panels of a heap map show: plans, and what an allocator did in a recorded run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import Column
from memplan.problem.plan import Plan
from memplan.problem.trace import Scope, Trace
from memplan.view import picture
from memplan.view.addresses import compress
from memplan.view.units import human, plural
from memplan.view.verdict import Grade, verdict_of

__all__ = ["Panel", "of_plan", "of_recording", "operators_of"]


@dataclass(frozen=True, eq=False)
class Panel:
    """What one panel shows; made by `of_plan` and `of_recording`."""

    name: str  # of the planner or the allocator
    problem: Problem  # what was to be placed
    offset: Column  # where each buffer of the problem is drawn, shape (n,), in bytes
    height: int  # bytes of addresses that it took
    facts: str  # the height in words, and what else there is to say of it
    # Offsets at which addresses that no allocation used are left out.
    cuts: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    # Of each buffer: the type of the operator that made it, say.
    classes: tuple[str, ...] | None = None


def of_plan(name: str, problem: Asked, plan: Plan, classes: tuple[str, ...] | None = None) -> Panel:
    """Return the panel of a plan, whose buffers may be in any order, coloured by the classes."""
    problem = problem_of(problem)
    offset = picture.offsets(problem, plan)
    peak = int((offset + problem.size).max(initial=0))
    verdict = verdict_of(problem, plan, peak)
    facts = f"peak {human(peak)}"
    if verdict.grade is Grade.OPEN:
        facts += f" {_compare_to_load(problem.max_load, peak)}"
    else:
        facts += f", {verdict.text}"
    return Panel(name, problem, offset, peak, facts, classes=classes)


def of_recording(name: str, trace: Trace) -> Panel:
    """Return the panel of what the allocator of a recorded run did.

    It shows the allocations that a plan would place, so that it compares. Pages that none of them
    ever touched are cut out. A trace without addresses is refused.
    """
    if trace.address is None:
        raise MemplanError(f"{name} has no addresses of a recorded run; record it, or leave it out")
    problem, rows = trace.problem(), trace.planned
    where = compress(trace.address[rows], trace.size[rows])
    facts = (
        f"touched {human(where.touched)} {_compare_to_load(problem.max_load, where.touched)}, "
        f"spread over {human(where.span)}"
    )
    if len(where.cuts):
        facts += f", {plural(len(where.cuts), 'cut')}"
    return Panel(name, problem, where.offset, where.touched, facts, where.cuts, operators_of(trace))


def operators_of(trace: Trace) -> tuple[str, ...]:
    """Return the operator which requested each allocation of `trace.planned`.

    It is the outermost one, or the innermost module where no operator was running.
    """
    return tuple(_find_requester(trace.scopes[row]) for row in trace.planned.tolist())


def _find_requester(scope: Scope) -> str:
    operators = [name for name, _ in scope if not name.startswith(".")]
    if operators:
        return operators[0]
    return f"module {scope[-1][0]}" if scope else "no operator"


def _compare_to_load(load: int, height: int) -> str:
    if height == load:
        return "= load"
    return f"({height / load:.3f} × load)" if load else ""
