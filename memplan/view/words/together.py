"""Programs that share an arena, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.problem.plan import Status
from memplan.view.units import exact, percent, plural, seconds
from memplan.view.words.parts import list_facts, make_name, make_table

if TYPE_CHECKING:
    from memplan.scenarios.together import Together

__all__ = ["describe_together"]


def describe_together(found: Together) -> RenderableType:
    """Return what the arena needs, beside what the same programs need otherwise."""
    plan = found.plan
    proved = plan.status is Status.OPTIMAL
    bound = "proved: no arena is smaller" if proved else f"at least {exact(plan.lower_bound)}"
    facts = [
        ("programs", f"{len(found.names)}, in any order{_describe_overlap(found)}"),
        ("arena", f"{exact(found.peak)}; {bound}"),
        ("by hand", f"{exact(found.by_hand)}: the largest arena, with copies of what is kept"),
        ("separate", f"{exact(found.separate)}: an arena for each program"),
        ("saved", f"{percent(found.by_hand - found.peak, found.by_hand)} of by hand"),
        ("search", seconds(found.seconds)),
    ]
    table = make_table("program", "buffers", "needs here", "keeps")
    columns = (found.names, found.programs, found.problems, found.kept)
    for name, each, problem, kept in zip(*columns, strict=True):
        size = sum(int(problem.size[problem.index(id)]) for id in kept)
        keeps = f"{plural(len(kept), 'buffer')}, {exact(size)}" if kept else "nothing"
        table.add_row(make_name(name), f"{len(problem):,}", exact(each.plan.peak or 0), keeps)
    return Group(list_facts(facts), Text(), table)


def _describe_overlap(found: Together) -> str:
    pairs = [f"{found.names[first]} with {found.names[second]}" for first, second in found.overlap]
    return f"; at the same time {', '.join(pairs)}" if pairs else ""
