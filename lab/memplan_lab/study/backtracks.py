"""Backtracks with and without learning, and what the model does (TelaMalloc, section 7.3)."""

from __future__ import annotations

from collections.abc import Sequence

from memplan_lab.bench.summary import by_suite
from memplan_lab.bench.tables import Shown
from memplan_lab.learn import Row as Instance
from memplan_lab.learn import merit
from memplan_lab.learn.evaluating import Run as Search
from memplan_lab.learn.figures import Figures, draw
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.results import Run

PLAIN = "telamalloc"
LEARNED = "telamalloc:learned=on"
_HARD = 1_000  # backtracks; as in the paper


def section(runs: Sequence[Run]) -> Section | None:
    """Return the effect of learning on every group that was searched both ways."""
    found = {group: pairs(measures.judge(mine)) for group, mine in by_suite(runs).items()}
    rows = [row for each in found.values() for row in each]
    if not rows:
        return None
    return Section(
        (
            f"A problem is hard if telamalloc backtracks more than {_HARD:,} times on it, or does "
            "not solve it. A search without a solution counts with the largest number of "
            "backtracks in its group, so giving up early brings no advantage.",
        ),
        (
            Shown(
                "Learned backtracking: medians over hard problems, and problems lost.",
                merit.HEADINGS,
                [merit.cells(one) for one in merit.judge(rows, _HARD)],
            ),
            Chart(
                "backtracks",
                "Backtracks on each problem with learning (y) and without (x).",
                charts.draw_pairs(
                    {
                        group: [(row.plain.backtracks, row.learned.backtracks) for row in each]
                        for group, each in found.items()
                        if each
                    },
                    ("backtracks without learning", "with learning"),
                ),
            ),
        ),
    )


def figures(learned: Sequence[Figures]) -> Section | None:
    """Return figures 15 to 17, of each file of `memplan-lab learn figures`."""
    captions = {
        15: "backtracks in portions of its time, without and with learning",
        16: "time of the model for a candidate",
        17: "how much the model's error grows where a feature is shuffled",
    }
    blocks = [
        Chart(
            charts.name(f"telamalloc-{number}-{at}", one.problem),
            f"Figure {number}, {one.problem}: {captions[number]}.",
            chart,
        )
        for at, one in enumerate(learned)
        for number, chart in draw(one).items()
    ]
    text = "In the paper, the portions are of SRGAN, and the model takes 2 µs for a candidate."
    return Section((text,), blocks) if blocks else None


def pairs(runs: Sequence[Run]) -> list[Instance]:
    """Return the problems of a group that were searched without and with learning."""
    counted = {
        solver: {run.case: run for run in runs if run.solver == solver and run.cpu_s is not None}
        for solver in (PLAIN, LEARNED)
    }
    both = [(run, counted[LEARNED].get(case)) for case, run in counted[PLAIN].items()]
    most = max((run.backtracks or 0 for pair in both for run in pair if run), default=0)
    return [
        Instance(plain.case, plain.suite, _search(plain, most), _search(learned, most))
        for plain, learned in both
        if learned is not None
    ]


def _search(run: Run, most: int) -> Search:
    backtracks = (run.backtracks or 0) if run.solved else most
    return Search(run.solved, backtracks, run.cpu_s or 0.0, run.nodes or 0)
