"""How much memory a set of problems needs: the share of them that fits, by bytes of memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from memplan.view.units import human, percent
from memplan_lab.bench.summary import best_bounds, by_case, by_suite
from memplan_lab.bench.tables import Shown
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.results import Run

BOUND, BEST, NAIVE = "lower bound", "best plan", "no reuse"
_NAIVE_SOLVER = "bump"  # its peak is the sum of all sizes
_TEXT = (
    "A problem fits if its peak is at most the memory. The best plan is the least peak of any "
    "solver in these results, so this share fits for certain. The lower bound is the best one that "
    "any solver proved: no planner fits a larger share. Where the two differ, a better plan may "
    "exist.",
    f"No reuse gives each buffer memory of its own, as the solver {_NAIVE_SOLVER} does; its share "
    "is shown if that solver was run.",
)


def section(runs: Sequence[Run]) -> Section | None:
    """Return the share that fits wherever the least peak was asked for."""
    blocks: list[Shown | Chart] = []
    # A file that could not be read is a problem without buffers; it is among the failures.
    known = (run for run in runs if run.objective != measures.FIT and run.n)
    for group, mine in by_suite(known).items():
        if not measures.best_peaks(mine):
            continue
        count = len(by_case(mine))
        needs = find_needs(mine)
        blocks.append(
            Shown(
                f"{group}: share of the {count:,} problems that fit, by memory.",
                ("memory", *needs),
                lines(needs, count),
            )
        )
        curves = {
            name: measures.shares((max(1, need) for need in each), count)
            for name, each in needs.items()
        }
        figure = charts.draw_shares(curves, "memory", "bytes")
        # The bound is drawn as dashes on top, so that both curves show where they agree.
        figure.axes[0].lines[0].set(linestyle="--", zorder=3)
        caption = f"{group}: share of the problems that fit, by memory."
        blocks.append(Chart(charts.name("fits", group), caption, figure))
    return Section(_TEXT, blocks) if blocks else None


def find_needs(runs: Sequence[Run]) -> dict[str, list[int]]:
    """Return for each curve the bytes that the problems of a group need, ascending.

    A problem without a plan has a lower bound only. There is no curve for `NAIVE` without runs of
    its solver.
    """
    needs = {BOUND: best_bounds(runs), BEST: measures.best_peaks(runs)}
    naive = measures.best_peaks(run for run in runs if run.solver == _NAIVE_SOLVER)
    if naive:
        needs[NAIVE] = naive
    return {name: sorted(each.values()) for name, each in needs.items()}


def lines(needs: Mapping[str, Sequence[int]], count: int) -> list[tuple[str, ...]]:
    """Return the cells of a group: powers of two, from where one problem fits to where all do."""
    present = [each for each in needs.values() if each]
    least, most = min(each[0] for each in present), max(each[-1] for each in present)
    first, last = ((max(1, need) - 1).bit_length() for need in (least, most))
    return [
        (human(1 << at), *(percent(bisect_right(each, 1 << at), count) for each in needs.values()))
        for at in range(first, last + 1)
    ]
