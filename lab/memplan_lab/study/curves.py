"""Figures 9 and 10 of source 000: the share each solver has solved by a time, and times by size."""

from __future__ import annotations

from collections.abc import Sequence

from memplan_lab.bench import figures
from memplan_lab.bench.summary import by_case, by_suite
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.results import Run

_TEXT = (
    "Solved is a plan within the capacity; where none was asked for, the least peak that any "
    "solver of these results reached. Time is CPU time."
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
        (_TEXT, "As figure 9 of the MiniMalloc paper, on problems that are public or generated."),
        [
            Chart(
                charts.name("solved", group),
                f"{group}: share of the problems that each solver solves within a time.",
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
            f"{_TEXT} A run that solves nothing counts as long as the longest of its suite. "
            "Few instances are drawn one by one, hollow where they were not solved; of many sizes, "
            "those up to each power of two are taken together.",
            "As figure 10 of the MiniMalloc paper.",
        ),
        [
            Chart(
                charts.name("size", group),
                f"{group}: run time of each solver by number of buffers, and what it solves.",
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
