"""The effect of each technique of a search: solvers with and without their switches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memplan.view.units import seconds
from memplan_lab.bench.summary import by_solver, by_suite, compare, summarise
from memplan_lab.bench.tables import DASH, Shown
from memplan_lab.study import measures
from memplan_lab.study.blocks import Section
from memplan_lab.study.results import Run

LEARNED = "learned=on"  # this switch has a section of its own
_HEADINGS = ("with", "solved", "optimal", "nodes", "backtracks", "CPU", "nodes ×", "CPU ×")


def section(runs: Sequence[Run]) -> Section | None:
    """Return a table for each solver of each group that was measured with switches too."""
    tables = [
        _make_table(f"{group}: {solver} without each of its techniques.", variants)
        for group, mine in by_suite(runs).items()
        for solver, variants in families(measures.judge(mine))
    ]
    if not tables:
        return None
    return Section(
        (
            "Solved has the same meaning as in the figures above. Nodes, backtracks and CPU are "
            "sums over all problems, solved or not. Nodes × and CPU × are geometric means of the "
            "ratio to the default solver, over the problems that both solved. Nodes repeat "
            "exactly unless a time limit ended the search.",
        ),
        tables,
    )


def _make_table(caption: str, variants: Sequence[Run]) -> Shown:
    """Return the table of a family; for the objective `fit` it has no column for optimality."""
    cells = lines(variants)
    headings: tuple[str, ...] = _HEADINGS
    if all(run.objective == measures.FIT for run in variants):
        at = headings.index("optimal")
        headings = (*headings[:at], *headings[at + 1 :])
        cells = [(*line[:at], *line[at + 1 :]) for line in cells]
    return Shown(caption, headings, cells)


def families(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """Yield the solvers of a group that were measured with switches too, and all their runs.

    Those of the solver as it is come first.
    """
    for solver in by_solver(runs):
        switched = [
            run
            for run in runs
            if run.solver.startswith(f"{solver}:") and LEARNED not in run.solver.split(":")[1]
        ]
        if switched:
            yield solver, [*(run for run in runs if run.solver == solver), *switched]


def lines(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """Return the cells of a family, a line for each choice of switches; the first is the base."""
    against = {one.other: one for one in compare(runs)}
    found: list[tuple[str, ...]] = []
    for summary in summarise(runs):
        mine = [run for run in runs if run.solver == summary.solver]
        other = against.get(summary.solver)
        found.append(
            (
                summary.solver.partition(":")[2] or "(default)",
                f"{summary.solved:,} of {summary.cases:,}",
                f"{summary.optimal:,}",
                total(run.nodes for run in mine),
                total(run.backtracks for run in mine),
                DASH if summary.cpu_sum is None else seconds(summary.cpu_sum),
                _inverse(other.nodes_mean if other else None),
                _inverse(other.cpu_mean if other else None),
            )
        )
    return found


def total(counts: Iterable[int | None]) -> str:
    """Return the sum of the counts as text; a dash if there is none."""
    known = [count for count in counts if count is not None]
    return f"{sum(known):,}" if known else DASH


def _inverse(ratio: float | None) -> str:
    """Return other over first as text, of first over other."""
    return f"{1 / ratio:.2f}" if ratio else DASH
