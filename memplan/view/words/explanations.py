"""Explanations in a terminal: why a problem does not fit, like an out-of-memory report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.problem import Problem
from memplan.problem.loads import Held, Loads
from memplan.programs.sources import Label
from memplan.programs.sources.loaded import Arena, Beside
from memplan.view import relations
from memplan.view.units import buffers_hold, exact, lifetime, plural
from memplan.view.words.parts import (
    BAD,
    GOOD,
    MOST_ROWS,
    OPEN,
    Fact,
    HeldTable,
    describe_contradiction,
    labels_of,
    list_beside,
    list_facts,
    make_name,
)
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.analysis.explain import Explanation, SectionAtFault

__all__ = ["explanation"]

_FULL_SECTIONS = 3  # with their buffers; the others get a line


def explanation(
    problem: Problem,
    found: Explanation,
    most: int = MOST_ROWS,
    *,
    labels: Sequence[Label] = (),
    advice: Sequence[str] = (),
    arena: Arena | None = None,
) -> RenderableType:
    """Return whether a problem fits and why not, in the manner of an out-of-memory report.

    At most `most` buffers are named, with their roles, by row, if these are known. The sentences of
    advice stand after the verdict. The arena is that of the runtime, if the capacity is that of all
    of it.
    """
    amounts = _amounts(found) if arena is None else _amounts_of_arena(found, arena)
    parts: list[RenderableType] = [_verdict(problem, found, arena), amounts, *map(Text, advice)]
    for section in found.sections[:_FULL_SECTIONS]:
        parts += [Text(), _fault(problem, section, most, labels)]
    others = found.sections[_FULL_SECTIONS:]
    if others:
        parts += [Text(), _other_faults(others, found.section_count - len(found.sections))]
    if found.subset:
        parts += [Text(), _subset(problem, found, most, labels)]
    return Group(*parts)


def _verdict(problem: Problem, found: Explanation, arena: Arena | None) -> Text:
    capacity = exact(found.capacity)
    if arena is not None:
        capacity = f"{exact(arena.capacity)} of arena"
        if found.fits and arena.beside is None:
            text = f"The planned part fits into {capacity}; what the runtime needs beside it is "
            return Text(f"{text}unknown.", style=OPEN)
    if found.fits is None:
        text = f"Unknown: neither a plan nor a proof was found for {capacity} within the budget."
        return Text(text, style=OPEN)
    if found.fits and arena is not None and arena.unknown:
        return Text(
            f"It fits into {capacity}, but for what is not known (see the note).", style=OPEN
        )
    if found.fits:
        return Text(f"It fits into {capacity}.", style=GOOD)
    if found.required is None:
        text = f"It does not fit, whatever the capacity: {describe_contradiction(problem)}."
        return Text(text, style=BAD)
    return Text(f"It does not fit into {capacity}.", style=BAD)


def _amounts(found: Explanation) -> RenderableType:
    """Return what is required, what is available and what is missing, one fact a line."""
    known = found.required == found.sufficient
    facts: list[Fact] = []
    if found.required is None:
        facts.append(("required", "it is proved that no capacity is enough"))
    elif known:
        facts.append(("required", f"{exact(found.required)}, proved to be the minimum"))
    else:
        facts.append(("required", f"at least {exact(found.required)}, proved"))
        if found.sufficient is not None:
            facts.append(("sufficient", f"{exact(found.sufficient)}: a plan was found"))
    reserved = found.capacity - found.available
    note = f", and {exact(reserved)} reserved" if reserved else ""
    facts.append(("available", f"{exact(found.available)}{note}"))
    if found.excess:
        facts.append(("excess", ("" if known else "at least ") + exact(found.excess)))
    elif found.fits and found.sufficient is not None:
        facts.append(("spare", exact(found.capacity - found.sufficient)))
    facts.append(("max load", exact(found.max_load)))
    return list_facts(facts)


def _amounts_of_arena(found: Explanation, arena: Arena) -> RenderableType:
    """Return the parts of an arena: the plan, what the runtime needs beside it, and both."""
    known = found.required is not None and found.required == found.sufficient
    least, beside = found.required or 0, arena.beside
    planned = exact(least) + (", proved to be the minimum" if known else " at least, proved")
    facts: list[Fact] = [("planned", planned)]
    if found.required is None:
        facts = [("planned", "it is proved that no capacity is enough")]
    elif not known and found.sufficient is not None:
        facts.append(("sufficient", f"{exact(found.sufficient)}: a plan was found"))
    facts += list_beside(Beside(beside, arena.how, unknown=arena.unknown), "beside it")
    if beside is not None:
        if arena.least > least + beside:
            facts.append(("to prepare", f"{exact(arena.least)} of arena, whatever the plan"))
        total = max(least + beside, arena.least)
        facts.append(("arena", exact(total) + ("" if known else " at least")))
        if not arena.on_board:
            other = "between a half and all of what is beside the plan; kernels for one chip"
            more = "(CMSIS-NN, esp-nn) may ask for more scratch: give it as --board"
            facts.append(("32-bit target", f"{other} {more}"))
    facts.append(("available", exact(arena.capacity)))
    over = max(least + (beside or 0), arena.least) - arena.capacity
    if over > 0:
        facts.append(
            ("excess", ("" if known and beside is not None else "at least ") + exact(over))
        )
    elif found.fits and beside is not None and found.sufficient is not None:
        used = max(beside + found.sufficient, arena.least)
        facts.append(("spare", exact(arena.capacity - used)))
    facts.append(("max load", exact(found.max_load)))
    return list_facts(facts)


def _fault(
    problem: Problem, section: SectionAtFault, most: int, labels: Sequence[Label]
) -> RenderableType:
    when = lifetime(section.start, section.end)
    worst = lifetime(section.peak_start, section.peak_end)
    held = buffers_hold(len(section.buffers))
    roles = labels_of(problem, section.buffers[:most], labels)
    return Group(
        Text(f"Time {when}" + ("" if when == worst else f", worst in {worst}"), style="bold"),
        Text(f"{held} {exact(section.load)}: {exact(section.excess)} too many"),
        HeldTable(section.buffers, section.load, most, labels=roles),
    )


def _other_faults(sections: Sequence[SectionAtFault], uncounted: int) -> RenderableType:
    """Return the milder faults, a line each with its largest buffer."""
    columns = [Column("bytes", 4), Column("too many", 5), Column("buffers", 1)]
    largest_of = [Column("largest", 3, left=True), Column("bytes", 2)]
    made = FittedTable([Column("time"), *columns, *largest_of])
    for section in sections:
        largest = section.buffers[0]
        made.add_row(
            lifetime(section.start, section.end),
            f"{section.load:,}",
            f"{section.excess:,}",
            f"{len(section.buffers):,}",
            make_name(largest.id),
            f"{largest.bytes:,}",
        )
    more = f", and {uncounted:,} more" if uncounted else ""
    return Group(
        Text(f"The load is also too high at {plural(len(sections), 'other time')}{more}"), made
    )


def _subset(
    problem: Problem, found: Explanation, most: int, labels: Sequence[Label]
) -> RenderableType:
    rows = [problem.index(id) for id in found.subset]
    buffers = [
        Held(id, size, size, start, end)
        for id, size, start, end in zip(
            found.subset,
            problem.size[rows].tolist(),
            problem.start[rows].tolist(),
            problem.end[rows].tolist(),
            strict=True,
        )
    ]
    part = problem.subset(rows)
    load = Loads(part).peak
    if len(rows) == 1:
        heading = "This buffer alone cannot be placed"
    else:
        heading = (
            f"These {len(rows):,} buffers cannot be placed together, "
            f"although at most {exact(load)} of them are live at one time"
        )
    closing = "Leave out any one of them and the rest fits: the subset is irreducible."
    if not found.irreducible:
        closing = (
            "The budget ended before the subset was reduced: a smaller one may also be infeasible "
            "(raise --nodes)."
        )
    total = sum(each.size for each in buffers)
    sentences = [*relations.list_reasons(part), *([closing] if len(rows) > 1 else [])]
    held = HeldTable(buffers, total, most, labels=labels_of(problem, buffers[:most], labels))
    return Group(Text(heading, style="bold"), held, *map(Text, sentences))
