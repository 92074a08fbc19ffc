"""Figures 9 and 10 of MiniMalloc: the share each solver has solved by a time, and times by size."""

from __future__ import annotations

from collections.abc import Sequence

from memplan_lab.bench import figures
from memplan_lab.bench.summary import by_case, by_suite
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.results import Run

_TEXT = (
    "A run is solved if its plan is within the capacity or, without a capacity, if its peak is the "
    "smallest that any solver in these results reached. Time is CPU time."
)


_FEWEST = 10  # problems; a share of fewer says little


def solved_against_time(runs: Sequence[Run]) -> Section | None:
    """Return the share of problems solved by a time (figure 9), for each group of some size."""
    found = {
        group: measures.solved_within(mine)
        for group, mine in _find_timed(runs).items()
        if len(by_case(mine)) >= _FEWEST
    }
    if not found:
        return None
    return Section(
        (_TEXT, "This is figure 9 of the MiniMalloc paper, on public or generated problems."),
        [
            Chart(
                charts.name("solved", group),
                f"{group}: share of the problems that each solver solves within a given time.",
                charts.draw_shares(curves, "CPU time [s]"),
            )
            for group, curves in found.items()
        ],
    )


def time_against_size(runs: Sequence[Run]) -> Section | None:
    """Return the median time and the success by number of buffers (figure 10), for each group."""
    found = _find_timed(runs)
    if not found:
        return None
    return Section(
        (
            f"{_TEXT} A run that is not solved counts with the longest time of its suite. A few "
            "instances are drawn one by one, hollow if not solved; many sizes are grouped up to "
            "each power of two.",
            "This is figure 10 of the MiniMalloc paper.",
        ),
        [
            Chart(
                charts.name("size", group),
                f"{group}: run time and share solved of each solver, by number of buffers.",
                figures.draw(mine),
            )
            for group, mine in found.items()
        ],
    )


def _find_timed(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the groups that a solver as it is was timed on, with these runs, judged by all."""
    found = {
        group: list(measures.timed_runs(measures.plain_runs(measures.judge(mine))))
        for group, mine in by_suite(runs).items()
    }
    return {group: mine for group, mine in found.items() if mine}
