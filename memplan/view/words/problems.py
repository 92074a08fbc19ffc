"""Problems in a terminal: how much they need, when, and because of which buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from memplan.problem import Problem
from memplan.problem.loads import Loads
from memplan.problem.plan import Status
from memplan.view import relations
from memplan.view.curve import load_curve
from memplan.view.units import exact, human, lifetime, percent, plural
from memplan.view.words.again import describe_less
from memplan.view.words.explanations import explanation
from memplan.view.words.memories import describe_outside
from memplan.view.words.orders import judge_order
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
    make_name,
    make_sentence,
    quote_name,
    unit_of,
)
from memplan.view.words.savings import describe_savings, list_missing
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.analysis.inspection import Inspection, Refusal

__all__ = ["draw_loads", "inspection"]


class Curve:
    """The load over time, as wide as the console and in characters that it has."""

    def __init__(self, loads: Loads, most: int | None = None) -> None:
        self._loads, self._most = loads, most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, 100)
        ascii_only = options.ascii_only
        yield Text(
            load_curve(self._loads, width, ascii_only=ascii_only, most=self._most), no_wrap=True
        )


def draw_loads(problems: Mapping[str, Problem]) -> RenderableType:
    """Return loads over time, each under its name, one above the other and to one scale."""
    most = max((problem.max_load for problem in problems.values()), default=0)
    parts: list[RenderableType] = []
    for name, problem in problems.items():
        heading = Text(f"{name}: {exact(problem.max_load)}", style="bold")
        parts += [heading, Curve(Loads(problem), most)]
    return Group(*parts)


def inspection(found: Inspection, most: int = MOST_ROWS) -> RenderableType:
    """Return what is known of a problem: the answer first, then its reasons."""
    problem, savings = found.loaded.problem, found.savings
    loads = Loads(problem)
    parts: list[RenderableType] = [_answer(found), Text(), _amounts(found)]
    for refusal in found.refusals:
        parts += [Text(), *_describe_refusal(found, refusal, most)]
    if found.shortage is not None:  # the question of the user, so that its answer comes first
        labels, advice = found.loaded.labels, list_missing(found)
        arena = found.loaded.arena
        fit = explanation(problem, found.shortage, most, labels=labels, advice=advice, arena=arena)
        if found.outside is not None:
            fit = Group(fit, Text(), describe_outside(found.outside))
        parts = [fit, Text(), *parts]
    parts += [Text(), list_facts(_constraints(found))]
    if len(problem):
        parts += [Text(), _distribution(problem)]
    section = loads.peak_section
    if section is not None and not (found.shortage and found.shortage.sections):
        held = loads.held(section)
        when = lifetime(savings.start, savings.end)
        heading = f"Live at the greatest load, time {when}: {plural(len(held), 'buffer')}"
        roles = labels_of(problem, held[:most], found.loaded.labels)
        live = HeldTable(held, loads.peak, most, labels=roles)
        parts += [Text(), Text(heading, style="bold"), live]
    if section is not None:
        if found.order is not None:
            parts += [Text(), judge_order(found.order, most)]
        if found.less is not None:
            parts += [Text(), describe_less(found.less)]
        parts += [Text(), describe_savings(found, most)]
        parts += [Text(), Text("Load over time", style="bold"), Curve(loads)]
    return Group(*parts)


def _describe_refusal(found: Inspection, refusal: Refusal, most: int) -> Iterator[RenderableType]:
    """Say what was asked for and refused, what was free, what held the rest, and if it had fit."""
    failure = refusal.failure
    place = f" in {failure.place}" if failure.place else ""
    more = len(found.loaded.failures) - len(found.refusals)
    others = f" ({plural(more, 'smaller request')} failed too)" if more else ""
    yield Text(
        f"Out of memory at time {failure.time}{place}: {exact(failure.asked)} were asked for"
        f"{others}.",
        style="bold",
    )
    unused = failure.reserved - refusal.live
    kept = f", of which {exact(unused)} held no buffer" if unused > 0 else ""
    yield Text(
        f"The device had {exact(failure.free)} free. PyTorch's allocator held "
        f"{exact(failure.reserved)}{kept}."
    )
    yield Text(*_judge_refusal(refusal))
    if refusal.held:
        held = list(refusal.held)
        yield Text(f"Live then: {plural(len(held), 'buffer')}")
        roles = labels_of(found.loaded.problem, held[:most], found.loaded.labels)
        yield HeldTable(held, refusal.live, most, labels=roles)


def _judge_refusal(refusal: Refusal) -> tuple[str, str]:
    """Say whether a plan would have had room, and return the style of this sentence."""
    room, plan = refusal.failure.room, refusal.plan
    if plan is None:
        missing = refusal.live + refusal.failure.asked - room
        return (
            f"No plan would have had room: {exact(refusal.live)} were live, and with the request "
            f"that is {exact(missing)} more than the {exact(room)} that there were.",
            BAD,
        )
    there = f"and there were {exact(room)}."
    least = exact(plan.lower_bound)
    if refusal.fits is False:
        return f"No plan would have had room: it needs at least {least}, {there}", BAD
    peak = "more than was searched" if plan.peak is None else exact(plan.peak)
    if refusal.fits:
        return f"A plan would have had room: it needs {peak}, {there}", GOOD
    return f"Whether a plan would have had room is open: the best found needs {peak}, {there}", OPEN


def _answer(found: Inspection) -> Text:
    """Say in two sentences how much is needed, when, and because of which buffers."""
    first, second, style = _describe_load(found), *_describe_plan(found)
    return Text(first).append(f" {second}", style=style) if len(found.savings) else Text(first)


def _describe_load(found: Inspection) -> str:
    problem, savings = found.loaded.problem, found.savings
    if not len(savings):
        return "No buffer holds anything at any time."
    when = lifetime(savings.start, savings.end)
    largest = quote_name(problem.ids[savings.rows[0]])
    share = percent(int(savings.bytes[0]), savings.peak)
    held = exact(savings.peak)
    if len(savings) == 1:
        return f"At time {when}, {largest} alone holds {held}."
    buffers = plural(len(savings), "buffer")
    return f"At time {when}, {buffers} hold {held}; {largest} is {share} of it."


def _describe_plan(found: Inspection) -> tuple[str, str]:
    """Return a sentence about the plan, and its style."""
    peak = found.plan.peak
    if peak is None:
        if found.plan.status is Status.INFEASIBLE:
            return f"There is no plan: {describe_contradiction(found.loaded.problem)}.", BAD
        return "No plan was found within the budget.", BAD
    if not found.proved:
        return f"The best plan found needs {exact(peak)}; less is not ruled out.", OPEN
    if peak == found.savings.peak:
        return "The plan meets this lower bound, so it is optimal.", GOOD
    return f"The plan needs {exact(peak)}, and it is proved that no plan needs less.", GOOD


def _amounts(found: Inspection) -> FittedTable:
    """Return what different planners need, and what is proved to be needed."""
    problem, bound = found.loaded.problem, found.lower_bound
    columns = [Column("bytes", 4), Column("", 3), Column("of the bound", 2)]
    made = FittedTable([Column("memory"), *columns, Column("", 1, left=True, least=24)])
    rows = [("naive", add_up(problem.size), "each buffer has memory of its own")]
    for figure in found.figures:
        name, how = describe_figure(figure)
        rows.append((name, figure.bytes, how))
    if found.plan.peak is not None:
        known = "proved to be optimal" if found.proved else "the best plan found"
        rows.append(("planned", found.plan.peak, known))
    rows.append(("bound", bound, _rule(found)))
    if found.savings.peak < bound:
        rows.append(("max load", found.savings.peak, _explain_beyond_load(problem)))
    for planner, bytes_needed, how in rows:
        share = percent(bytes_needed, bound)
        cells = f"{bytes_needed:,}", unit_of(bytes_needed), share, make_sentence(how)
        made.add_row(make_name(planner), *cells)
    return made


def _rule(found: Inspection) -> str:
    if found.lower_bound > found.bound.bytes:
        return "proved by search"
    if found.bound.bytes == found.savings.peak:
        return "the max load"
    return f"by the rule {found.bound.rule}"


def _explain_beyond_load(problem: Problem) -> str:
    what = " and ".join(name for name, _ in relations.count_relations(problem))
    return f"{what} force more" if what else "at one time"


def _constraints(found: Inspection) -> list[Fact]:
    """Say which constraints there are in addition to lifetimes and sizes; omit all others."""
    problem = found.loaded.problem
    facts = [*list_origin(found.loaded), ("buffers", f"{len(problem):,}")]
    before = len(facts)
    empty = int((problem.size == 0).sum())
    if empty:
        facts.append(("size 0", plural(empty, "buffer")))
    if problem.has_alignment:
        aligned = int((problem.alignment != 1).sum())
        most = int(problem.alignment.max())
        facts.append(("alignment", f"{plural(aligned, 'buffer')}, up to {most:,}"))
    if problem.has_pins:
        facts.append(("pins", plural(int((problem.pin >= 0).sum()), "buffer")))
    if problem.has_hints:
        facts.append(("hints", plural(int((problem.hint >= 0).sum()), "buffer")))
    if problem.has_gaps:
        gaps, owners = len(problem.gap_buffer), len(np.unique(problem.gap_buffer))
        windows = int((problem.gap_lower < problem.gap_upper).sum())
        text = f"{gaps:,} in {plural(owners, 'buffer')}, {windows:,} with a window"
        facts.append(("gaps", text))
    facts += relations.count_relations(problem)
    if problem.has_reserved:
        text = ", ".join(str(block) for block in problem.reserved[:MOST_ROWS])
        more = len(problem.reserved) - MOST_ROWS
        facts.append(("reserved", text if more <= 0 else f"{text} and {more:,} more"))
    if len(facts) == before:
        facts.append(("constraints", "none beside lifetimes and sizes"))
    return facts


def _distribution(problem: Problem) -> FittedTable:
    shares = (0, 25, 50, 75, 90, 99, 100)
    names = ("smallest", "25 %", "median", "75 %", "90 %", "99 %", "largest")
    ranks = (5, 1, 6, 2, 3, 4, 7)
    made = FittedTable([Column(""), *map(Column, names, ranks)])
    # Quantiles are elements of the sorted column, because a mean of two may be no buffer's size.
    at = np.array(shares) * (len(problem) - 1) // 100
    # A lifetime of 2^63 does not fit in 63 bits; the difference that wraps is right as unsigned.
    lasting = np.sort((problem.end - problem.start).view(np.uint64))[at]
    made.add_row("size", *map(human, np.sort(problem.size)[at].tolist()))
    made.add_row("lifetime", *(f"{length:,}" for length in lasting.tolist()))
    return made
