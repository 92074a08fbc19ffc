"""Plans in a terminal: what was asked, what was answered, and which buffers make the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from memplan.problem import Problem
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan, Status, gap_text
from memplan.programs.sources.loaded import Figure, Label, Loaded
from memplan.view import relations
from memplan.view.units import buffers_hold, exact, lifetime, plural, seconds
from memplan.view.words.bars import Bars
from memplan.view.words.parts import (
    BAD,
    GOOD,
    MOST_ROWS,
    OPEN,
    Fact,
    HeldTable,
    add_up,
    describe_contradiction,
    describe_figure,
    labels_of,
    list_facts,
    list_origin,
)

if TYPE_CHECKING:
    from memplan.levers.rewrite import Recomputed, Reordered

__all__ = ["peak_buffers", "plan_summary", "status_text", "verified"]

_STATUS_STYLE = {
    Status.OPTIMAL: GOOD,
    Status.FITS: GOOD,
    Status.FEASIBLE: OPEN,
    Status.INFEASIBLE: BAD,
    Status.UNKNOWN: BAD,
}


def plan_summary(
    problem: Problem,
    plan: Plan,
    *,
    elapsed: float,
    interrupted: bool = False,
    loaded: Loaded | None = None,
    figures: Sequence[Figure] = (),
    order: Reordered | Recomputed | None = None,
) -> RenderableType:
    """Return what was asked and what was answered, one fact a line; on terminals, bars first.

    Figures are what other planners need for the problem. `loaded` is the model that it comes from,
    and `order` says how its operators were reordered before, or run again.
    """
    facts = list_origin(loaded)
    lever = None
    if order is not None:
        from memplan.view.words.again import list_lever  # needs the searches of orders

        lever = list_lever(order)
        facts.append(lever[0])
    facts += [
        ("buffers", f"{len(problem):,}"),
        ("sum of sizes", exact(add_up(problem.size))),
    ]
    facts += relations.count_relations(problem)
    facts += _figures(figures)
    if problem.capacity is not None:
        arena = None if loaded is None else loaded.arena
        text = exact(problem.capacity)
        if arena is not None and arena.beside is not None:
            text += f" for the plan, of an arena of {exact(arena.capacity)}: {exact(arena.beside)} "
            text += f"beside it, {arena.how}"
        facts.append(("capacity", text))
    if lever is None:
        facts.append(("lower bound", exact(plan.lower_bound)))
    else:
        facts.append(("bound, this order", exact(plan.lower_bound)))
        facts.append(lever[1])
    if plan.peak is not None:
        facts.append(("peak", Text(exact(plan.peak), style="bold")))
    facts.append(("status", status_text(plan, interrupted, order)))
    if (gap := gap_text(plan)) is not None:
        facts.append(("gap", gap))
    if plan.conflict:
        facts.append(("conflict", plan.describe_conflict()))
    facts.append(("solver", plan.solver or "-"))
    facts.append(("time", seconds(elapsed)))
    return Group(_bars(problem, plan, figures), list_facts(facts))


def _bars(problem: Problem, plan: Plan, figures: Sequence[Figure]) -> Bars:
    """Return what the plan is worth: the memory that it needs, beside that of others."""
    amounts = [("naive", add_up(problem.size), "")]
    amounts += [(describe_figure(figure)[0], figure.bytes, "") for figure in figures]
    if plan.peak is not None:
        amounts.append(("planned", plan.peak, _STATUS_STYLE[plan.status]))
    amounts.append(("bound", plan.lower_bound, ""))
    return Bars(amounts)


def _figures(figures: Sequence[Figure]) -> list[Fact]:
    facts: list[Fact] = []
    for figure in figures:
        name, how = describe_figure(figure)
        facts.append((name, f"{exact(figure.bytes)}, {how}"))
    return facts


def status_text(plan: Plan, interrupted: bool, order: Reordered | Recomputed | None = None) -> Text:
    """Return the status, and what it means for this plan."""
    meaning = _meaning(plan)
    if order is not None and plan.status is Status.OPTIMAL:
        from memplan.view.words.again import find_least

        meaning = "no plan of this order has a smaller peak"
        if plan.peak == find_least(order):
            meaning = "no order and no plan has a smaller peak"
    if interrupted:
        meaning = f"not proved; {meaning}" if plan.has_offsets else meaning
        return Text(f"interrupted: {plan.status}, {meaning}", style=OPEN)
    return Text(f"{plan.status}: {meaning}", style=_STATUS_STYLE[plan.status])


def _meaning(plan: Plan) -> str:
    match plan.status:
        case Status.OPTIMAL:
            return "no plan has a smaller peak"
        case Status.FITS:
            return "it is within the capacity; a smaller peak was not asked for (--minimize)"
        case Status.FEASIBLE:
            return "the best plan so far; a smaller peak is not ruled out"
        case Status.INFEASIBLE:
            return _describe_infeasible(plan.problem)
        case Status.UNKNOWN:
            return "the budget ended without a plan and without a proof"


def _describe_infeasible(problem: Problem | None) -> str:
    """Return what is proved of a problem without a plan; also where no capacity was given."""
    if problem is None or problem.capacity is not None:
        return "it is proved that no plan fits the capacity"
    return describe_contradiction(problem)


def verified(problem: Problem, plan: Plan) -> Text:
    """Return what the check of a valid plan says, on one line."""
    limit = "" if problem.capacity is None else f" within {exact(problem.capacity)}"
    return Text.assemble(
        ("OK", GOOD),
        f": {plural(len(problem), 'buffer')}, peak ",
        (exact(plan.peak or 0), "bold"),
        limit,
    )


def peak_buffers(
    problem: Problem, plan: Plan, most: int = MOST_ROWS, labels: Sequence[Label] = ()
) -> RenderableType:
    """Return the buffers that are live at the peak: what a smaller model would have to shrink.

    The peak is taken in the section with the greatest load, of all in which a buffer touches it.
    `labels`, by row, say which operators make and use a buffer.
    """
    if plan.offsets is None:
        return Text("")
    loads = Loads(problem)
    section = loads.highest_of(np.flatnonzero(plan.offsets + problem.size == plan.peak))
    if section is None or plan.peak is None:
        return Text("No buffer holds anything at any time.")
    held = loads.held(section)
    load = int(loads.load[section])
    when = lifetime(int(loads.start[section]), int(loads.end[section]))
    unused = f"; {exact(plan.peak - load)} unused below it" if load < plan.peak else ""
    offsets = {each.id: plan.offset(each.id) for each in held[:most]}
    return Group(
        Text(f"Live at the peak, time {when}", style="bold"),
        Text(f"{buffers_hold(len(held))} {exact(load)}{unused}"),
        HeldTable(held, load, most, offsets, labels_of(problem, held[:most], labels)),
    )
