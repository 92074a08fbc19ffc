"""What the solver by default promises on the corpus, and where it does not keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memplan.view.units import percent, seconds
from memplan_lab.bench.tables import DASH
from memplan_lab.study import measures
from memplan_lab.study.blocks import Section, Table
from memplan_lab.study.results import Run

SUITE = "corpus"
SOLVER = "auto"
SOON = 1e-3  # seconds
LATE = 1.0
TIE = 1.1

_WANTED = {"soon": 85, "proved": 97, "fastest": 99}  # per cent
_SAID = {
    "soon": f"has its plan, and is done, within {seconds(SOON)}",
    "proved": f"proves its plan optimal within {seconds(LATE)}",
    "fastest": f"is the fastest, or within {100 * (TIE - 1):.0f} %, of all that reach its peak",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A promise about a group of runs.

    Attributes
    ----------
    name
        A key of what is promised: `soon`, `proved` or `fastest`.
    count
        Problems that it is about.
    missed
        By name those that miss it, with what happened there.
    """

    name: str
    count: int
    missed: dict[str, str]

    @property
    def kept(self) -> bool:
        """Whether as many problems as promised reach it."""
        return 100 * (self.count - len(self.missed)) >= _WANTED[self.name] * self.count


def targets(runs: Sequence[Run]) -> list[Target]:
    """Return the promises about a group of runs; none where `auto` was not measured."""
    own = {run.case: run for run in runs if run.solver == SOLVER}
    if not own:
        return []
    slow = measures.slower(measures.plain(runs), SOLVER, TIE)
    return [
        Target(
            "soon",
            len(own),
            {case: _end(run) for case, run in own.items() if not _within(run, SOON)},
        ),
        Target(
            "proved",
            len(own),
            {
                case: _end(run)
                for case, run in own.items()
                if run.status != "optimal" or not _within(run, LATE)
            },
        ),
        Target(
            "fastest",
            len(own),
            {
                case: f"{seconds(fastest.cpu_s or 0)} by {fastest.solver}; "
                + ("no plan" if run is None else _end(run))
                for case, (fastest, run) in slow.items()
                if case in own
            },
        ),
    ]


def section(runs: Sequence[Run]) -> Section | None:
    """Return the promises about the corpus, and by name what misses them."""
    found = {
        group: targets(mine)
        for group, mine in measures.groups(run for run in runs if run.base == SUITE).items()
    }
    lines = [
        (
            group,
            _SAID[one.name],
            f"{_WANTED[one.name]} %",
            f"{one.count - len(one.missed):,} of {one.count:,}",
            percent(one.count - len(one.missed), one.count),
            "yes" if one.kept else "no",
        )
        for group, each in found.items()
        for one in each
    ]
    if not lines:
        return None
    headings = ("problems", SOLVER, "wanted", "reached", "share", "kept")
    return Section(
        ("Time is CPU time of solving alone, of all threads together.",),
        (
            Table("What is promised, and how often it holds.", headings, lines, frozenset({0, 1})),
            *(
                Table(
                    f"{group}: where {SOLVER} misses that it {_SAID[one.name]}.",
                    ("problem", "what happened"),
                    sorted(one.missed.items()),
                    frozenset({0, 1}),
                )
                for group, each in found.items()
                for one in each
                if one.missed
            ),
        ),
    )


def _within(run: Run, limit: float) -> bool:
    return run.solved and run.cpu_s is not None and run.cpu_s <= limit


def _end(run: Run) -> str:
    """Return what became of a run in a few words."""
    return f"{run.status}, {DASH if run.cpu_s is None else seconds(run.cpu_s)}"
