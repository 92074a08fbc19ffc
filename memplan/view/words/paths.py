"""The plans of the paths of a program, in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.programs.graph.paths import BEFORE_RUN, Choice
from memplan.scenarios.paths import MOST_PATHS, PathPlan, PathPlans
from memplan.view.units import exact, human, percent, plural
from memplan.view.words.parts import make_name, quote_name, unit_of
from memplan.view.words.tables import Column, FittedTable

__all__ = ["describe_choices", "describe_paths"]

_NAMES = 3  # of choices; the others are counted


def describe_choices(choices: Sequence[Choice]) -> Text:
    """Return which operators choose between branches, and how their paths are planned."""
    names = [f"{quote_name(each.name)} ({', '.join(each.branches)})" for each in choices[:_NAMES]]
    if len(choices) > _NAMES:
        names.append(plural(len(choices) - _NAMES, "other"))
    return Text(
        f"The plan has room for all branches of {', '.join(names)}. A run takes one of them: "
        "--path all plans each path by itself."
    )


def describe_paths(found: PathPlans) -> RenderableType:
    """Return the peak of each path, and what it saves over the conservative plan."""
    most = found.conservative.plan.peak or 0
    table = FittedTable(
        [
            Column("Path of control flow", least=24),
            Column("peak", 4),
            Column("", 3),
            Column("less than for all", 2),
            Column("chosen", 1, left=True),
        ]
    )
    table.add_row("all branches", f"{most:,}", unit_of(most), "-", "without a choice")
    for path in found.paths:
        less = f"{human(most - path.peak)} ({percent(most - path.peak, most)})"
        when = "before the run" if path.step == BEFORE_RUN else _describe_step(found, path)
        saved = less if path.peak < most else "nothing"
        table.add_row(make_name(path.name), f"{path.peak:,}", unit_of(path.peak), saved, when)
    return Group(table, Text(), *map(Text, _conclude(found, most)))


def _describe_step(found: PathPlans, path: PathPlan) -> str:
    last = next(each for each in found.choices if each.step == path.step)
    return f"at step {path.step}, entering {quote_name(last.name)}"


def _conclude(found: PathPlans, most: int) -> list[str]:
    sentences = []
    if found.single:
        sentences.append(
            f"There are more than {MOST_PATHS} paths. Only those with a single choice and the "
            "smallest load are planned; name others with --path."
        )
    if found.complete:
        less = f", {exact(most - found.peak)} less than the plan of all branches"
        sentences.append(
            f"Every run takes one of these paths, so {exact(found.peak)} are enough for all "
            f"of them{less if found.peak < most else ''}."
        )
    else:
        sentences.append(
            "A run on another path uses the plan of all branches, which then needs "
            f"{exact(found.fallback.plan.peak or 0)}."
        )
    if any(path.step != BEFORE_RUN for path in found.paths):
        sentences.append(
            "Buffers that are in memory before the path is known have the same offset in all "
            "plans, so nothing moves."
        )
    return sentences
