"""What a run allocated compared with what was planned, in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.view.units import exact
from memplan.view.words.parts import Fact, escape_sentence, list_facts, make_name, make_table

if TYPE_CHECKING:
    from memplan.runtimes.torch.measure.run import Measured

__all__ = ["describe_run"]

_MOST = 5


def describe_run(found: Measured, planned: int | None) -> RenderableType:
    """Return the real peak, the planned one, and the operators that explain the difference."""
    facts: list[Fact] = [("real peak", Text(exact(found.peak), style="bold"))]
    if found.during:
        more = f", {exact(found.beyond)} beyond what is planned for it" if found.beyond else ""
        facts.append(("", f"during {escape_sentence(found.during)}{more}"))
    if planned is not None:
        facts.append(("planned peak", Text(exact(planned), style="bold")))
    facts.append(("shown by the program", exact(found.load)))
    parts: list[RenderableType] = [Text("Measured in one run of PyTorch", style="bold")]
    parts.append(list_facts(facts))
    if not found.differences:
        return Group(*parts, Text("Every operator allocates what is planned for it."))
    made = make_table("operator", "planned", "real", "difference")
    for each in found.differences[:_MOST]:
        amounts = f"{each.planned:,}", f"{each.real:,}", f"{each.real - each.planned:+,}"
        made.add_row(make_name(each.operator), *amounts)
    rest = len(found.differences) - _MOST
    last = [Text(f"and {rest:,} more operators")] if rest > 0 else []
    return Group(*parts, made, *last)
