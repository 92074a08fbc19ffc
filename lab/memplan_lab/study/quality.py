"""How far peaks are above the best bound, by solver."""

from __future__ import annotations

from collections.abc import Sequence

from memplan.view.units import percent, seconds
from memplan_lab.bench.tables import DASH
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section, Table
from memplan_lab.study.results import Run

_HEADINGS = (
    *("solver", "planned", "optimal", "at the bound", "mean", "worst", "worst problem", "CPU"),
)


def section(runs: Sequence[Run]) -> Section | None:
    """Return peaks over bounds wherever the least peak was asked for."""
    found = measures.groups(run for run in runs if run.objective != measures.FIT)
    planned = {
        group: mine
        for group, mine in found.items()
        if any(run.solved for run in measures.plain(mine))
    }
    if not planned:
        return None
    blocks: list[Table | Chart] = []
    for group, mine in planned.items():
        left = frozenset({0, 6})
        caption = f"{group}: peak over the best bound known."
        blocks.append(Table(caption, _HEADINGS, lines(mine), left))
        blocks.append(
            Chart(
                charts.name("peak-over-bound", group),
                f"{group}: share of the problems whose peak is at most so many times the bound.",
                charts.draw_shares(_curves(mine), "peak over bound", "linear"),
            )
        )
    text = (
        "The bound of a problem is the best that any solver proved in these results. A peak at the "
        "bound is the least there is; one above it may be.",
    )
    return Section(text, blocks)


def _curves(runs: Sequence[Run]) -> dict[str, tuple[list[float], list[float]]]:
    """Return by solver the ratios of a group, and per cent of its problems at or below each."""
    ratios_of = measures.over_bound(runs)
    return {
        solver: measures.shares(ratios_of[solver].values(), len(mine))
        for solver, mine in measures.by_solver(measures.plain(runs)).items()
    }


def lines(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """Return the cells of a group, a line for each solver."""
    ratios_of = measures.over_bound(runs)
    return [
        _cells(solver, mine, ratios_of[solver])
        for solver, mine in measures.by_solver(measures.plain(runs)).items()
    ]


def _cells(solver: str, runs: Sequence[Run], ratios: dict[str, float]) -> tuple[str, ...]:
    worst = max(ratios, key=lambda case: ratios[case], default=None)
    cpu = [run.cpu_s for run in measures.measured(runs) if run.cpu_s is not None]
    return (
        solver,
        f"{len(ratios):,} of {len(runs):,}",
        percent(sum(run.status == "optimal" for run in runs), len(runs)),
        percent(sum(ratio == 1.0 for ratio in ratios.values()), len(runs)),
        f"{sum(ratios.values()) / len(ratios):.4f}" if ratios else DASH,
        DASH if worst is None else f"{ratios[worst]:.4f}",
        DASH if worst is None or ratios[worst] == 1.0 else worst,
        seconds(sum(cpu)) if cpu else DASH,
    )
