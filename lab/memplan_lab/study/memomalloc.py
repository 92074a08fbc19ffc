"""Figures 2.1 to 5.2 of MemoMalloc, and its heap maps, on our recordings and measurements.

The sizes, latencies and bytes of jemalloc are those of `memplan-lab bench latency --output`, the
waits those of `memplan-lab bench contention --output`, the planners' times and peaks those of the
suite `memomalloc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from statistics import fmean, stdev

from memplan.solvers import solve
from memplan.view import heap_map
from memplan.view.panel import of_plan
from memplan.view.units import plural
from memplan_lab.bench import suites
from memplan_lab.bench.latency import Case, Contention, Outcome, Row
from memplan_lab.bench.latency.summary import Rounds, by_case, ratio
from memplan_lab.bench.tables import Shown
from memplan_lab.study import charts
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.results import Run

SUITE = "memomalloc"
_WORST = 3  # networks in figure 5.1, as many as the paper shows

_LATENCY = (
    "The ratios are CPU times with an allocator over those with a slab, as in the paper: above 1 "
    "the slab is faster. Inputs are unitised as there: batch size times side. Shaded regions are "
    "standard errors over rounds; one round has none."
)


def section(
    runs: Sequence[Run], latency: Sequence[Row], contention: Sequence[Contention] = ()
) -> Section | None:
    """Return the figures that these results have data for, or nothing."""
    blocks: list[Shown | Chart] = [*_draw_contention(contention), *_draw_planners(runs)]
    text = []
    if blocks:
        text.append("The planners ran on one recorded inference of each of the paper's networks.")
    measured = by_case(row for row in latency if not row.case.training)
    if measured:
        text.append(_LATENCY)
        blocks += [*_draw_sizes(measured), *_draw_ratios(measured), *_draw_active(measured)]
    blocks += _draw_heap_maps(runs)
    return Section(text, blocks) if blocks else None


# Figures 2.1 and 2.2 -----------------------------------------------------------------------------


def _draw_contention(rows: Iterable[Contention]) -> Iterable[Chart]:
    """Yield the share of CPU time spent on memory, and the wait for its locks, by network."""
    shares: dict[str, dict[str, float]] = {}
    waits: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.profile is None or row.served is None:
            continue
        name = "slab" if row.slab else row.allocator
        case = f"{row.case.name}, {plural(row.case.threads, 'thread')}"
        spent = row.profile.allocator + row.profile.faults + row.profile.calls
        shares.setdefault(name, {})[case] = 100.0 * spent / row.profile.samples
        each = max(1, row.served.inferences)
        waits.setdefault(name, {})[case] = 1e3 * row.profile.waiting_s / each
    if shares:
        yield Chart(
            "memomalloc-2-1",
            "Figure 2.1: CPU time of request threads that is spent on memory.",
            charts.draw_points(shares, "CPU time [%]", "linear"),
        )
        yield Chart(
            "memomalloc-2-2",
            "Figure 2.2: waits for locks of the allocator and of the kernel's memory.",
            charts.draw_points(waits, "per inference [ms]", "linear"),
        )


# Figures 3.3 and 3.4 -----------------------------------------------------------------------------


def _draw_planners(runs: Iterable[Run]) -> Iterable[Chart]:
    times: dict[str, dict[str, float]] = {}
    peaks: dict[str, dict[str, float]] = {}
    for run in runs:
        if run.base != SUITE or not run.solved:
            continue
        if run.cpu_s:
            times.setdefault(run.solver, {})[run.case] = run.cpu_s
        if run.peak is not None:
            peaks.setdefault(run.solver, {})[run.case] = run.peak / (1 << 20)
    if times:
        yield Chart(
            "memomalloc-3-3",
            "Figure 3.3: CPU time of each planner, by network.",
            charts.draw_points(times, "CPU time [s]"),
        )
    if peaks:
        yield Chart(
            "memomalloc-3-4",
            "Figure 3.4: peak memory of intermediate tensors with each planner, by network.",
            charts.draw_points(peaks, "peak [MiB]"),
        )


# Figures 2.3 and 5.1 -----------------------------------------------------------------------------

Measured = Mapping[Case, Mapping[str, Rounds]]


def _draw_sizes(measured: Measured) -> Iterable[Chart]:
    """Yield the sizes of all networks, and of those for which a slab gains least.

    Each network is shown at its smallest input.
    """
    smallest: dict[str, Case] = {}
    for case in sorted(measured, key=lambda case: (case.threads, case.batch * case.size)):
        smallest.setdefault(case.network, case)
    found = {
        network: _accumulate(_first(measured[case]))
        for network, case in smallest.items()
        if _first(measured[case]).sizes
    }
    if not found:
        return
    for name, caption, networks in (
        ("2-3", "Figure 2.3: sizes of the allocations of an inference", list(found)),
        (
            "5-1",
            f"Figure 5.1: the same for the {_WORST} networks for which the slab gains least",
            sorted(found, key=lambda each: -_worst_ratio(measured, each))[:_WORST],
        ),
    ):
        curves = {network: found[network] for network in networks}
        figure = charts.draw_shares(curves, "at most this size", "bytes", "allocations")
        yield Chart(f"memomalloc-{name}", f"{caption}, as shares of their number.", figure)


def _first(allocators: Mapping[str, Rounds]) -> Outcome:
    return next(iter(next(iter(allocators.values())).values()))


def _accumulate(outcome: Outcome) -> charts.Curve:
    """Return sizes, and how many per cent of the allocations are below them."""
    total = sum(outcome.sizes)
    ends = [2.0 ** (power + 1) for power in range(len(outcome.sizes))]
    return ends, [100.0 * count / total for count in accumulate(outcome.sizes)]


def _worst_ratio(measured: Measured, network: str) -> float:
    ratios = []
    for case, allocators in measured.items():
        if case.network == network:
            rounds = next(iter(allocators.values()))
            ratios.append(ratio(rounds, rounds))
    return max(ratios)


# Figure 5.2 --------------------------------------------------------------------------------------


def _draw_active(measured: Measured) -> Iterable[Chart]:
    """Yield jemalloc's bytes over an inference, beside the slab that is there for all of it."""
    for case, allocators in measured.items():
        for allocator, rounds in allocators.items():
            outcome = _first({allocator: rounds})
            if not outcome.active:
                continue
            steps = len(outcome.active)
            curves = {
                allocator: list(zip(range(1, steps + 1), outcome.active, strict=True)),
                "slab": [(1, outcome.peak), (steps, outcome.peak)],
            }
            yield Chart(
                charts.name("memomalloc-5-2", f"{case.name}-{case.threads}-{allocator}"),
                f"Figure 5.2: bytes in active extents of {allocator} over an inference of "
                f"{case.name}, and the slab.",
                charts.draw_lines(curves, ("operators that have run", "bytes")),
            )


# Appendix 8.1 ------------------------------------------------------------------------------------


def _draw_heap_maps(runs: Iterable[Run]) -> Iterable[Chart]:
    """Yield the plans of all strategies for the network with the fewest buffers, made again."""
    mine = [run for run in runs if run.base == SUITE and run.solved]
    if not mine:
        return
    least = min(mine, key=lambda run: (run.n, run.case))
    case = next((each for each in suites.cases(SUITE) if each.name == least.case), None)
    if case is None:
        return
    problem = case.make()
    made = [
        (run.solver, solve(problem, run.solver, "min_peak", timeout=run.timeout_s))
        for run in mine
        if run.case == least.case and run.fingerprint == problem.fingerprint
    ]
    if made:
        panels = [of_plan(solver, problem, plan) for solver, plan in made if plan.has_offsets]
        yield Chart(
            "memomalloc-8-1",
            f"Appendix 8.1: heap maps of {least.case}, by strategy.",
            heap_map.draw(panels),
        )


# Figure 4.1 --------------------------------------------------------------------------------------


def _draw_ratios(measured: Measured) -> Iterable[Shown | Chart]:
    """Yield the ratios by unit size: a chart for each allocator and number of threads."""
    bands: dict[tuple[str, int], dict[str, dict[int, list[float]]]] = {}
    for case, allocators in measured.items():
        ours = next(iter(allocators.values()))
        for allocator, theirs in allocators.items():
            group = bands.setdefault((allocator, case.threads), {})
            units = group.setdefault(case.network, {}).setdefault(case.batch * case.size, [])
            units += [1 / ratio({at: ours[at]}, {at: theirs[at]}) for at in ours.keys() & theirs]
    lines = []
    for (allocator, threads), group in bands.items():
        curves = {
            network: [(unit, fmean(each), _error(each)) for unit, each in sorted(units.items())]
            for network, units in group.items()
        }
        word = "thread" if threads == 1 else "threads"
        caption = f"Figure 4.1: {allocator} relative to the slab, {threads} {word}."
        yield Chart(
            charts.name("memomalloc-4-1", f"{allocator}-{threads}"),
            caption,
            charts.draw_bands(curves, ("batch size x side", "CPU time / CPU time of the slab")),
        )
        means = {network: fmean(point[1] for point in points) for network, points in curves.items()}
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        lines.append(
            (
                *(allocator, str(threads), str(len(means))),
                *(f"{means[least]:.2f}", least, f"{means[most]:.2f}", most),
            )
        )
    headings = ("allocator", "threads", "networks", "least", "of", "largest", "of")
    yield Shown("Ratios by network, means over inputs.", headings, lines, frozenset({0, 4, 6}))


def _error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
