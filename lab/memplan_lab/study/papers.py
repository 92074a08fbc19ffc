"""Tables 1 and 2 of sources 000 and 001, by our solvers on problems that are public.

The papers' own times, in the columns that say so, are those of their machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memplan.view.units import seconds
from memplan_lab.bench.suites import five_buffers
from memplan_lab.bench.summary import best_bounds, by_case, by_suite
from memplan_lab.bench.tables import DASH
from memplan_lab.study import measures
from memplan_lab.study.blocks import Section, Table
from memplan_lab.study.isomorphic import find_isomorphic
from memplan_lab.study.results import Run

# A run that used so much of its time-out has timed out; an incomplete search may end before that.
_NEARLY = 0.9

_HEURISTICS = ("contention_skyline", "greedy_by_size", "greedy")

# Source 000, table 2: MiniMalloc. The mixed ILP and TelaMalloc solve none of them in an hour.
_SECONDS = (4.910, 3.661, 0.637, 2.674, 3.717, 5.358, 1.181, 1.808, 3.908, 0.883, 0.628)
_CHALLENGING = dict(zip("ABCDEFGHIJK", _SECONDS, strict=True))
# Source 001, table 1: seconds, and seconds a step.
_MICRO = {
    "non-overlapping-1K": (0.012, 1e-5),
    "non-overlapping-10K": (1.260, 1.3e-4),
    "full-overlap-100": (0.142, 1.42e-3),
    "full-overlap-1K": (100.758, 0.10076),
}


def isomorphic_solutions() -> Section:
    """Return table 1 of source 000, which is computed here and needs no results."""
    problem = five_buffers()
    lines = [
        (
            f"S{at}",
            " → ".join(
                f"{problem.ids[row]}({offset})"
                for row, offset in zip(placing.rows, placing.offsets, strict=True)
            ),
            "✓" if placing.offset_monotonic else "",
            "✓" if placing.index_monotonic else "",
        )
        for at, placing in enumerate(find_isomorphic(problem), 1)
    ]
    return Section(
        (
            "The orders of placing the five buffers of the paper's example, each at its lowest "
            "offset, that end in one and the same plan. The one that is monotonic in both ways is "
            "canonical; MiniMalloc tries no other.",
        ),
        (
            Table(
                "All orders with the offsets of the paper's figure 2.",
                ("solution", "order", "offset monotonic", "index monotonic"),
                lines,
                frozenset({0, 1, 2, 3}),
            ),
        ),
    )


def challenging(runs: Sequence[Run]) -> Section | None:
    """Return table 2 of source 000: times on the challenging instances, by solver."""
    tables = []
    for group, mine in _runs_of_suite(runs, "challenging"):
        solvers = list(dict.fromkeys(run.solver for run in mine if ":" not in run.solver))
        lines = [
            (
                case,
                *(_time(of.get(solver)) for solver in solvers),
                seconds(_CHALLENGING[case]) if case in _CHALLENGING else DASH,
            )
            for case, each in sorted(by_case(mine).items())
            for of in [{run.solver: run for run in each}]
        ]
        headings = ("benchmark", *solvers, "MiniMalloc in the paper")
        tables.append(Table(f"{group}: CPU time, or how it ended.", headings, lines))
    if not tables:
        return None
    return Section(
        (
            "In the paper a mixed ILP and TelaMalloc solve none of these within an hour. Not all "
            "of the paper's eleven instances need be here: those that were measured are.",
        ),
        tables,
    )


def microbenchmarks(runs: Sequence[Run]) -> Section | None:
    """Return table 1 of source 001: what a step of telamalloc costs without any search."""
    tables = []
    for group, mine in _runs_of_suite(runs, "microbenchmarks"):
        lines = [
            (
                case,
                _spread(run),
                DASH if run.step_s is None else seconds(run.step_s),
                *(map(seconds, _MICRO[case]) if case in _MICRO else (DASH, DASH)),
            )
            for case, each in by_case(mine).items()
            for run in each
            if run.solver == "telamalloc"
        ]
        if lines:
            headings = ("benchmark", "total", "a step", "total in the paper", "a step in the paper")
            tables.append(Table(f"{group}: CPU time of telamalloc.", headings, lines))
    if not tables:
        return None
    return Section(
        ("The standard deviation is over the repetitions, where there are several.",),
        tables,
    )


def heuristics(runs: Sequence[Run]) -> Section | None:
    """Return table 2 of source 001: peaks of heuristics over the least peak, and their times."""
    tables = []
    for group, mine in _runs_of_suite(
        (run for run in runs if run.objective != measures.FIT), "models"
    ):
        solvers = [name for name in _HEURISTICS if any(run.solver == name for run in mine)]
        if not solvers:
            continue
        least, bounds = measures.best_peaks(mine), best_bounds(mine)
        lines = [
            (
                case,
                "yes" if least[case] <= bounds[case] else "no",
                *(cell for name in solvers for cell in _memory(of.get(name), least[case])),
            )
            for case, each in by_case(mine).items()
            if case in least
            for of in [{run.solver: run for run in each}]
        ]
        headings = [
            *("benchmark", "least peak proved"),
            *(word for name in solvers for word in (name, "CPU")),
        ]
        tables.append(Table(f"{group}: peak over the least, and CPU time.", headings, lines))
    if not tables:
        return None
    return Section(
        (
            "The least peak is the best of all solvers in these results. contention_skyline is the "
            "paper's heuristic; on its eleven models, which are not public, it needs 1.00 to 1.43 "
            "times the least peak in 0.6 to 76 ms.",
        ),
        tables,
    )


def _runs_of_suite(runs: Iterable[Run], suite: str) -> Iterable[tuple[str, list[Run]]]:
    return by_suite(run for run in runs if run.base == suite).items()


def _time(run: Run | None) -> str:
    """Return when a run had its answer, or that it had none."""
    if run is None:
        return DASH
    if run.solved and run.cpu_s is not None:
        return seconds(run.cpu_s)
    if run.status != "unknown" or run.cpu_s is None:
        return run.status
    if run.timeout_s is not None and (run.wall_s or 0.0) < _NEARLY * run.timeout_s:
        return f"gave up: {seconds(run.cpu_s)}"
    return f"> {seconds(run.cpu_s)}"


def _spread(run: Run) -> str:
    if not run.solved or run.cpu_s is None or run.repeats == 1:
        return _time(run)
    return f"{seconds(run.cpu_s)} ± {seconds(run.spread_s)}"


def _memory(run: Run | None, least: int) -> tuple[str, str]:
    if run is None or not run.solved or run.peak is None:
        return DASH, DASH
    return f"{run.peak / least:.2f}×" if least else "1.00×", _time(run)
