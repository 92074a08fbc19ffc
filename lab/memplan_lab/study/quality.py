"""How far peaks are above the best bound, by solver."""

from __future__ import annotations

from collections.abc import Sequence

from memplan.view.units import percent, seconds
from memplan_lab.bench.summary import Summary, by_solver, by_suite, over_bound, summarise
from memplan_lab.bench.tables import DASH, Shown
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.results import Run

_HEADINGS = (
    *("solver", "planned", "optimal", "at the bound", "mean", "worst", "worst problem", "CPU"),
)


def section(runs: Sequence[Run]) -> Section | None:
    """Return peaks over bounds wherever the least peak was asked for."""
    found = by_suite(run for run in runs if run.objective != measures.FIT)
    planned = {
        group: mine
        for group, mine in found.items()
        if any(run.solved for run in measures.plain_runs(mine))
    }
    if not planned:
        return None
    blocks: list[Shown | Chart] = []
    for group, mine in planned.items():
        left = frozenset({0, 6})
        caption = f"{group}: peak over the best known bound."
        blocks.append(Shown(caption, _HEADINGS, lines(mine), left))
        blocks.append(
            Chart(
                charts.name("peak-over-bound", group),
                f"{group}: share of the problems whose peak is at most this multiple of the bound.",
                charts.draw_shares(_curves(mine), "peak over bound", "linear"),
            )
        )
    text = (
        "The bound of a problem is the best one that any solver in these results proved. A peak at "
        "the bound is optimal; a peak above it may be optimal.",
    )
    return Section(text, blocks)


def _curves(runs: Sequence[Run]) -> dict[str, tuple[list[float], list[float]]]:
    """Return by solver the ratios of a group, and per cent of its problems at or below each."""
    ratios_of = over_bound(runs)
    return {
        solver: measures.shares(ratios_of[solver].values(), len(mine))
        for solver, mine in by_solver(measures.plain_runs(runs)).items()
    }


def lines(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """Return the cells of a group, a line for each solver."""
    return [_cells(one) for one in summarise(runs) if ":" not in one.solver]


def _cells(one: Summary) -> tuple[str, ...]:
    mean, worst = one.ratio_mean, one.ratio_worst
    return (
        one.solver,
        f"{one.solved:,} of {one.cases:,}",
        percent(one.optimal, one.cases),
        percent(one.at_bound, one.cases),
        DASH if mean is None else f"{mean:.4f}",
        DASH if worst is None else f"{worst:.4f}",
        DASH if worst in (None, 1.0) else one.worst_case or DASH,
        DASH if one.cpu_sum is None else seconds(one.cpu_sum),
    )
