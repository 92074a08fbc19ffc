"""Answers in a terminal: what was minimised, what was done for it, and what lies where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.machine.blocks import Blocks
from memplan.machine.memories import Assigned
from memplan.problem.plan import Status
from memplan.scenarios.envelope import Envelope
from memplan.scenarios.paths import PathPlans
from memplan.scenarios.together import Together
from memplan.solvers.apart import Apart
from memplan.view.units import exact, percent, plural, seconds
from memplan.view.words.apart import describe_apart
from memplan.view.words.assigned import describe_assigned
from memplan.view.words.blocks import describe_blocks
from memplan.view.words.envelope import describe_envelope
from memplan.view.words.parts import (
    Fact,
    list_facts,
    make_name,
    make_table,
    render_notes,
)
from memplan.view.words.paths import describe_paths
from memplan.view.words.together import describe_together

if TYPE_CHECKING:
    from memplan.answer import Answer, Axis, Claim

__all__ = ["describe_answer"]

_SHOWN: Final = 20  # rows of a table


def describe_answer(found: Answer, most: int = 10) -> RenderableType:
    """Return all of an answer, for people; of long lists the first `most`."""
    blocks: list[RenderableType] = []
    details = [words for claim in found.claims for words in _describe_claim(claim, most)]
    if found.steps or len(details) != 1:
        blocks += [list_facts([*_list_facts(found)]), Text()]
    if found.steps:
        blocks += [_list_steps(found), Text()]
    if len(found.parts) > 1 and len(details) != 1:
        blocks += [_list_parts(found), Text()]
    for each in details:
        blocks += [each, Text()]
    blocks += [render_notes(found.notes)] if found.notes else []
    return Group(*(blocks if found.notes else blocks[:-1]))


def _describe_claim(claim: Claim, most: int) -> Iterator[RenderableType]:
    """Yield what one claim adds to the axes: what is kept, what moves, which pairs share."""
    if isinstance(claim, Together):
        yield describe_together(claim)
    elif isinstance(claim, Assigned):
        yield describe_assigned(claim, most)
    elif isinstance(claim, Blocks):
        yield describe_blocks(claim)
    elif isinstance(claim, Apart):
        yield describe_apart(claim)
    elif isinstance(claim, PathPlans):
        yield describe_paths(claim)
    elif isinstance(claim, Envelope):
        yield describe_envelope(claim, with_notes=False)


def _list_facts(found: Answer) -> Iterator[Fact]:
    yield "status", str(found.status)
    for axis in found.axes:
        yield axis.name, _describe_axis(axis)
    if found.capacity is not None:
        peak = found.peak
        share = "" if peak is None else f", {percent(peak, found.capacity)} used"
        yield "capacity", f"{exact(found.capacity)}{share}"
    for part in found.parts:
        if part.plan.status is Status.INFEASIBLE and part.plan.conflict:
            yield "conflict", part.plan.describe_conflict()
    yield "search", f"{seconds(found.seconds)}{', interrupted' * found.interrupted}"


def _describe_axis(axis: Axis) -> str:
    if axis.found is None:
        return f"no plan; at least {_tell(axis, axis.bound)}"
    least = "proved" if axis.found == axis.bound else f"at least {_tell(axis, axis.bound)}"
    return f"{_tell(axis, axis.found)}; {least}{f' {axis.scope}' if axis.scope else ''}"


def _tell(axis: Axis, number: float) -> str:
    """Return a number with its unit."""
    if axis.unit == "bytes":
        return exact(int(number))
    if axis.unit.startswith("share"):
        return f"{number:.2%}"
    return f"{number:,}{f' {axis.unit}' if axis.unit else ''}"


def _list_steps(found: Answer) -> RenderableType:
    table = make_table("lever", "program", "needs", "more work", "")
    for step in found.steps[:_SHOWN]:
        extra = f"{step.extra:.2%}" if step.extra else ""
        table.add_row(step.lever, make_name(step.program), exact(step.arena), extra, step.words)
    return table


def _list_parts(found: Answer) -> RenderableType:
    table = make_table("part", "buffers", "needs", "")
    for part in found.parts[:_SHOWN]:
        peak = "no plan" if part.plan.peak is None else exact(part.plan.peak)
        table.add_row(make_name(part.name), f"{len(part.problem):,}", peak, "")
    more = len(found.parts) - _SHOWN
    return Group(table, Text(f"... and {plural(more, 'part')} more")) if more > 0 else table
