"""What was done to make a program fit, in a terminal: each lever, what it brought, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.base.notes import Code
from memplan.view.units import exact, percent
from memplan.view.words.assigned import tell_both
from memplan.view.words.bands import choose_points, describe_regions
from memplan.view.words.parts import (
    BAD,
    GOOD,
    MOST_ROWS,
    Fact,
    escape_sentence,
    list_facts,
    make_sentence,
    render_notes,
    unit_of,
)
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.levers.pipeline import Arranged, Step
    from memplan.machine.memories import Memory
    from memplan.runtimes.fitting import FittedMemories

__all__ = ["describe_arranged", "describe_memories"]


def describe_arranged(found: Arranged, *, has_output: bool = False) -> RenderableType:
    """Return the steps, what the runtime needs, and if that fits."""
    parts: list[RenderableType] = [_tabulate(found), Text(), list_facts(_list_facts(found))]
    if found.capacity is None:
        parts += _list_points(found)
    parts += [Text(), _judge(found, has_output=has_output)]
    if found.notes:
        parts.append(render_notes(found.notes))
    return Group(*parts)


def describe_memories(
    found: FittedMemories, memories: Sequence[Memory], *, has_output: bool
) -> RenderableType:
    """Return what was tried for the fastest memory, what is where, and what that costs."""
    name, limit = escape_sentence(memories[0].name), exact(memories[0].capacity or 0)
    parts: list[RenderableType] = [_tabulate(found.alone), Text()]
    if found.housed is None:
        extra = f", with {found.alone.extra:.1%} more work" if found.alone.extra else ""
        used = exact(found.alone.arena)
        enough = f"{name} is enough{_except_unknown(found.alone)}: {used} of {limit}{extra}"
        parts.append(Text(f"{enough}. No other memory is needed.", style=GOOD))
    else:
        least = exact(found.alone.arena)
        changed = ""
        if found.change:
            work = f", {found.extra:.1%} more work" if found.extra else ""
            changed = f" The program that is placed has {found.change}{work}."
        parts += [
            Text(
                f"{name} alone is not enough: the least found needs {least}, and it has {limit}."
                f"{changed}"
            ),
            Text(),
            Text(tell_both(found.housed.found), style=GOOD),
            Text(f"Its runtime gets {escape_sentence(found.housed.how)}."),
        ]
    if not has_output:
        parts.append(Text("Name a folder: -o FOLDER."))
    if found.notes:
        parts.append(render_notes(found.notes))
    return Group(*parts)


def _tabulate(found: Arranged) -> FittedTable:
    columns = [Column("needs", 6), Column("", 6), Column("more work", 5)]
    made = FittedTable([Column("lever"), *columns, Column("", 4, left=True, least=24)])
    for step in found.steps:
        made.add_row(
            step.lever,
            f"{step.arena:,}",
            unit_of(step.arena),
            f"{step.extra:+.1%}" if step.extra else "0",
            make_sentence(escape_sentence(_describe_step(found, step))),
        )
    return made


def _describe_step(found: Arranged, step: Step) -> str:
    if step.lever == "bands" and found.point is not None and found.frontier is not None:
        return describe_regions(found.frontier, found.point.regions)
    return step.words


def _list_facts(found: Arranged) -> list[Fact]:
    written, peak = found.best.written, found.plan.peak or 0
    where = " on this 64-bit machine" if written.how == "measured" else ""
    facts: list[Fact] = []
    if not found.plan.has_offsets:
        facts.append(("load", f"{exact(written.arena)}; its runtime takes no plan"))
    elif written.run:
        facts += [("arena", f"{exact(written.arena)}, {written.how}"), ("run", written.run)]
    elif written.arena != peak:
        facts.append(
            (
                "arena",
                f"{exact(written.arena)}, {written.how}{where}: {peak:,} for "
                f"the plan, {written.arena - peak:,} that the runtime needs beside it",
            )
        )
    else:
        facts.append(("plan", f"{exact(peak)}, {found.plan.status}"))
    given = next((step.arena for step in found.steps if step.lever == "given"), None)
    if given is not None:
        facts.append(("saved", _describe_saving(given, written.arena)))
    if found.point is not None:
        facts.append(("outputs", _describe_comparison(found)))
    floor, why = found.find_floor()
    facts.append(("floor", f"{exact(floor)}: {escape_sentence(why)}"))
    return facts


def _describe_saving(given: int, arena: int) -> str:
    if arena >= given:
        return "nothing: its runtime needs no more for the program as it was"
    return f"{exact(given - arena)}, {percent(given - arena, given)} of the program as it was"


def _describe_comparison(found: Arranged) -> str:
    if not found.has_runtime:
        return "not compared: the kernels are yours"
    if found.comparison is None:
        return "not compared: the runtime does not run the program here"
    if not found.comparison.difference:
        return "the same bits"
    return f"not the same bits, up to {found.comparison.difference:g} apart"


def _list_points(found: Arranged) -> list[RenderableType]:
    """Return what bands need for more and more work."""
    frontier = found.frontier
    if frontier is None or len(frontier.points) < 2:
        return []
    columns = [Column("load", 6), Column("", 6)]
    made = FittedTable([Column("more work"), *columns, Column("bands", 4, left=True, least=24)])
    for _, point in choose_points(frontier.points, MOST_ROWS):
        regions = describe_regions(frontier, point.regions) or "none"
        cell = make_sentence(escape_sentence(regions))
        made.add_row(f"{frontier.extra(point):.1%}", f"{point.arena:,}", unit_of(point.arena), cell)
    return [Text(), made]


def _except_unknown(found: Arranged) -> str:
    unknown = any(note.code is Code.ARENA_UNMEASURED for note in found.notes)
    return ", but for what is not known (see the note)" * unknown


def _judge(found: Arranged, *, has_output: bool) -> Text:
    if found.capacity is None:
        return Text(f"The least that these levers need is {exact(found.arena)}.", style="bold")
    if found.fits:
        where = "" if has_output else "; name an output to write it: -o FILE"
        fits = f"It fits into {exact(found.capacity)}{_except_unknown(found)}"
        return Text(f"{fits}{where}.", style=GOOD)
    missing = found.arena - found.capacity
    return Text(
        f"It does not fit into {exact(found.capacity)}: the least found needs {exact(missing)} "
        f"more{escape_sentence(found.explain())}. Nothing was written.",
        style=BAD,
    )
