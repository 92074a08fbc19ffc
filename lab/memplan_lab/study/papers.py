"""Tables and figures of MiniMalloc and TelaMalloc, by our solvers on problems that are public.

The papers' own times, in the columns that say so, are those of their machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from memplan.view.units import seconds
from memplan_lab.bench.suites import five_buffers
from memplan_lab.bench.summary import best_bounds, by_case, by_suite
from memplan_lab.bench.tables import DASH, Shown
from memplan_lab.study import charts, measures
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.isomorphic import find_isomorphic
from memplan_lab.study.results import Run

# A run that used this share of its limit has timed out; an incomplete search may end earlier.
_NEARLY = 0.9

# The solvers of figures 12 and 13 of TelaMalloc; mip and cp_sat with any options.
_TELAMALLOC = "telamalloc"
_TIMED = (_TELAMALLOC, f"{_TELAMALLOC}:learned=on", f"{_TELAMALLOC}:published=on")
_SOLVERS_OF_OTHERS = ("mip", "cp_sat")
# The solvers of figure 8 of MiniMalloc beside the integer linear program, and ours.
_MINIMALLOC = "minimalloc"
_FIGURE_8 = ("csp", "meta_csp", _TELAMALLOC, _MINIMALLOC, "auto")
# Solvers, the package that has them, and where in its folder the machine code is.
_LIBRARIES = (
    ("those of memplan", "memplan._core", "_core*"),
    ("minimalloc, telamalloc, ...", "memplan._published", "_published*"),
    ("mip", "highspy", "**/*"),
    ("cp_sat", "ortools", "**/*"),
)
_MACHINE_CODE = {".so", ".dylib", ".pyd", ".dll"}

_HEURISTICS = ("contention_skyline", "greedy_by_size", "greedy")

# MiniMalloc, table 2: its own times. The mixed ILP and TelaMalloc solve none of them in an hour.
_SECONDS = (4.910, 3.661, 0.637, 2.674, 3.717, 5.358, 1.181, 1.808, 3.908, 0.883, 0.628)
_CHALLENGING = dict(zip("ABCDEFGHIJK", _SECONDS, strict=True))
# TelaMalloc, table 1: seconds, and seconds a step.
_MICRO = {
    "non-overlapping-1K": (0.012, 1e-5),
    "non-overlapping-10K": (1.260, 1.3e-4),
    "full-overlap-100": (0.142, 1.42e-3),
    "full-overlap-1K": (100.758, 0.10076),
}


def isomorphic_solutions() -> Section:
    """Return table 1 of MiniMalloc, which is computed here and needs no results."""
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
            "These are the orders of placing the five buffers of the paper's example, each at its "
            "lowest offset, that give the same plan. The order that is monotonic in both offset "
            "and index is canonical; MiniMalloc tries only this one.",
        ),
        (
            Shown(
                "All orders that give the offsets of the paper's figure 2.",
                ("solution", "order", "offset monotonic", "index monotonic"),
                lines,
                frozenset({0, 1, 2, 3}),
            ),
        ),
    )


def challenging(runs: Sequence[Run]) -> Section | None:
    """Return table 2 of MiniMalloc: times on the challenging instances, by solver."""
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
        tables.append(Shown(f"{group}: CPU time, or how the run ended.", headings, lines))
    if not tables:
        return None
    return Section(
        (
            "In the paper, mixed integer programming and TelaMalloc solve none of the eleven "
            "instances within an hour. The table has the instances that were measured.",
        ),
        tables,
    )


def microbenchmarks(runs: Sequence[Run]) -> Section | None:
    """Return table 1 of TelaMalloc: what a step of telamalloc costs without any search."""
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
            headings = (
                "benchmark",
                "total",
                "per step",
                "total in the paper",
                "per step in the paper",
            )
            tables.append(Shown(f"{group}: CPU time of telamalloc.", headings, lines))
    if not tables:
        return None
    return Section(
        ("Values after ± are standard deviations over the repetitions.",),
        tables,
    )


def heuristics(runs: Sequence[Run]) -> Section | None:
    """Return table 2 of TelaMalloc: peaks of heuristics over the least peak, and their times."""
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
            *("benchmark", "smallest peak proved"),
            *(word for name in solvers for word in (name, "CPU")),
        ]
        tables.append(
            Shown(f"{group}: peak over the smallest peak, and CPU time.", headings, lines)
        )
    if not tables:
        return None
    return Section(
        (
            "The smallest peak is the best of all solvers in these results. contention_skyline is "
            "the paper's heuristic. On the paper's eleven models, which are not public, it needs "
            "1.00 to 1.43 times the smallest peak and takes 0.6 to 76 ms.",
        ),
        tables,
    )


def times_on_models(runs: Sequence[Run]) -> Section | None:
    """Return figures 12 and 13 of TelaMalloc: times on the models, and their ratio to its own."""
    blocks = _compare_times(runs, _TELAMALLOC, _is_timed, "times")
    if not blocks:
        return None
    return Section(
        (
            "Figure 12 of the paper is of a phone, figure 13 of a workstation. A hatched bar is a "
            "run without a plan: it is as high as the time until it ended. mip is the integer "
            "linear program, cp_sat the paper's encoding for the constraint solver, and "
            "telamalloc:learned=on has the learned backtracking. In the paper, on eleven models "
            "that are not public, telamalloc takes a median of 1/4.7 of the time of the integer "
            "linear program.",
        ),
        blocks,
    )


def original_suite(runs: Sequence[Run]) -> Section | None:
    """Return figure 8 of MiniMalloc: times of its five solvers on the models."""
    blocks = _compare_times(runs, _MINIMALLOC, _is_of_figure_8, "original")
    if not blocks:
        return None
    return Section(
        (
            "A hatched bar is a run without a plan. In the paper, on eleven models that are not "
            "public, minimalloc solves each in under 100 ms, eight of them without backtracking; "
            "the medians over its time are 30 for telamalloc and 328 for the integer linear "
            "program, csp solves none in a minute, and meta_csp all but three.",
        ),
        blocks,
    )


def _compare_times(
    runs: Sequence[Run], base: str, is_shown: Callable[[str], bool], name: str
) -> list[Shown | Chart]:
    """Return, for the suite of models, times of solvers and their ratio to the time of one."""
    blocks: list[Shown | Chart] = []
    fits = (run for run in runs if run.objective == measures.FIT and run.cpu_s)
    for group, mine in _runs_of_suite(fits, "models"):
        of = {
            case: {run.solver: run for run in each if is_shown(run.solver)}
            for case, each in sorted(by_case(mine).items())
        }
        of = {case: each for case, each in of.items() if base in each}
        solvers = list(dict.fromkeys(run.solver for run in mine if is_shown(run.solver)))
        if not of or len(solvers) < 2:
            continue
        relative = {
            solver: [_relative(each.get(solver), each[base]) for each in of.values()]
            for solver in solvers
        }
        absolute = {solver: [_bar(each.get(solver)) for each in of.values()] for solver in solvers}
        names = list(of)
        lines = [
            (case, *(_time(each.get(solver)) for solver in solvers)) for case, each in of.items()
        ]
        ratios = [DASH if solver == base else _middle(relative[solver]) for solver in solvers]
        blocks += [
            Chart(
                charts.name(f"{name}-over-{base}", group),
                f"{group}: CPU time over that of {base}.",
                charts.draw_bars(names, relative, f"CPU time over {base}'s"),
            ),
            Chart(
                charts.name(name, group),
                f"{group}: CPU time of each solver.",
                charts.draw_bars(names, absolute, "CPU time [s]"),
            ),
            Shown(
                f"{group}: CPU time, or how the run ended.",
                ("benchmark", *solvers),
                [*lines, (f"median over {base}", *ratios)],
            ),
        ]
    return blocks


def library_sizes() -> Section:
    """Return table 3 of MiniMalloc: bytes of the libraries that are installed here."""
    lines = []
    for solvers, package, pattern in _LIBRARIES:
        found = find_spec(package)
        if found is not None and found.origin:
            files = Path(found.origin).parent.glob(pattern)
            code = [file for file in files if not _MACHINE_CODE.isdisjoint(file.suffixes)]
            size = sum(file.stat().st_size for file in code)
            lines.append((solvers, package, f"{size / 1000:,.0f} kB"))
    return Section(
        (
            "In the paper: 2,021 kB for the integer linear program, 206 kB for telamalloc and "
            "25 kB for minimalloc. These are whole libraries, with all of their solvers; a "
            "planner for devices that has the search alone is built with the preset `small`, and "
            "`make check-embed` holds what it adds to a program to 120 kB.",
        ),
        (Shown("Shared libraries.", ("solvers", "package", "size"), lines, frozenset({0, 1})),),
    )


def _is_timed(solver: str) -> bool:
    return solver in _TIMED or solver.partition(":")[0] in _SOLVERS_OF_OTHERS


def _is_of_figure_8(solver: str) -> bool:
    return solver in _FIGURE_8 or solver.partition(":")[0] == "mip"


def _bar(run: Run | None) -> tuple[float, bool] | None:
    return None if run is None or run.cpu_s is None else (run.cpu_s, not run.solved)


def _relative(run: Run | None, base: Run) -> tuple[float, bool] | None:
    """Return the ratio of times, and whether it is only a lower limit.

    Where the base has no plan, its time says nothing about a ratio.
    """
    bar = _bar(run)
    if bar is None or not base.solved or not base.cpu_s:
        return None
    return bar[0] / base.cpu_s, bar[1]


def _middle(ratios: Iterable[tuple[float, bool] | None]) -> str:
    """Return the median of ratios, of which some may be lower limits."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return DASH
    middle = median(value for value, _ in known)
    return f"{'≥ ' if any(is_limit for _, is_limit in known) else ''}{middle:,.2f}×"


def _runs_of_suite(runs: Iterable[Run], suite: str) -> Iterable[tuple[str, list[Run]]]:
    return by_suite(run for run in runs if run.base == suite).items()


def _time(run: Run | None) -> str:
    """Return the time at which a run had its answer, or a word if it had none."""
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
