"""Latencies as tables for people and as a file for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any

from memplan.view.units import percent, seconds
from memplan_lab.bench.latency.rows import Case, Contention, Outcome, Row
from memplan_lab.bench.latency.summary import Ratio, Rounds, by_case, causes, compare, ratio
from memplan_lab.bench.tables import DASH, Shown

_PAGE = 4096


def overview(rows: Sequence[Row]) -> Shown:
    """Return slab over eager, by request threads and allocator: geometric mean, and worst."""
    lines = [
        (
            str(one.threads),
            one.allocator,
            str(one.cases),
            *_ratio_cells(one.across),
            *_ratio_cells(one.across_wall)[:2],
            *_ratio_cells(one.inside),
        )
        for one in compare(rows)
    ]
    across, inside = ("CPU", "worst", "where"), ("in one process", "worst", "where")
    return Shown(
        "Latency with the slab / eager with an allocator",
        ("threads", "allocator", "cases", *across, "wall", "worst", *inside),
        lines,
        (1, 5, 10),
    )


def spread(rows: Sequence[Row]) -> Shown:
    """Return the whole range of slab over eager by CPU time across processes."""
    lines = [
        (
            *(str(one.threads), one.allocator, str(one.cases)),
            *(f"{one.across.least:.3f}", one.across.least_case, f"{one.across.middle:.3f}"),
            *(f"{one.across.worst:.3f}", one.across.worst_case),
        )
        for one in compare(rows)
    ]
    return Shown(
        "The range of the ratios of CPU time",
        ("threads", "allocator", "cases", "least", "where", "median", "largest", "where"),
        lines,
        (1, 4, 7),
    )


def decided(rows: Sequence[Row]) -> Shown:
    """Return the correlations of the ratio under the first allocator, the strongest first."""
    lines = [
        (cause.name, f"{cause.correlation:+.2f}", f"{cause.least:.3g}", f"{cause.most:.3g}")
        for cause in causes(rows)
    ]
    return Shown(
        "What decides the ratio: rank correlation over the cases (-1: the more, the lower)",
        ("property of a case", "correlation", "least", "most"),
        lines,
        (0,),
    )


def by_network(rows: Sequence[Row]) -> Shown:
    """Return slab over eager by CPU time across processes: geometric mean over inputs."""
    found: dict[tuple[int, str], dict[str, list[float]]] = {}
    for case, allocators in by_case(rows).items():
        ours = next(iter(allocators.values()))
        line = found.setdefault((case.threads, case.network), {})
        for allocator, theirs in allocators.items():
            line.setdefault(allocator, []).append(ratio(ours, theirs))
    names = list(dict.fromkeys(row.allocator for row in rows))
    lines = [
        (str(threads), network, *(_mean_cell(line.get(name)) for name in names))
        for (threads, network), line in found.items()
    ]
    return Shown("By network, CPU time", ("threads", "network", *names), lines, (1,))


def cases(rows: Sequence[Row]) -> Shown:
    """Return times and page faults of every case under the first allocator."""
    return Shown(
        "Cases with the first allocator: CPU time and page faults of an inference",
        (
            "threads",
            "case",
            "eager",
            "slab",
            "ratio",
            "faults eager",
            "faults slab",
            "pages of results",
        ),
        [_time_cells(case, rounds) for case, rounds in _first(rows)],
        (1,),
    )


def plans(rows: Sequence[Row]) -> Shown:
    """Return the plan of every case, and how many allocations the slab served."""
    planned = ("allocations", "planned", "peak / load", "time of greedy_by_size", "time of auto")
    return Shown(
        "Plans, and allocations served by the slab",
        ("threads", "case", *planned, "served", "not served", "outputs"),
        [_plan_cells(case, rounds) for case, rounds in _first(rows)],
        (1, 9),
    )


def _first(rows: Sequence[Row]) -> Iterator[tuple[Case, Rounds]]:
    for case, allocators in by_case(rows).items():
        yield case, next(iter(allocators.values()))


def contention(rows: Sequence[Contention]) -> Shown:
    """Return the shares of CPU time that went into memory, and how long threads waited for it."""
    shares = ("allocator", "page faults", "system calls", "total")
    return Shown(
        "CPU time of request threads: the share spent on memory, and waiting",
        (
            "threads",
            "case",
            "memory from",
            "inferences",
            *shares,
            "waiting per inference",
            "waits per inference",
        ),
        [_contention_cells(row) for row in rows if row.profile],
        (1, 2),
    )


def failures(rows: Sequence[Mapping[str, Any]]) -> Iterator[Shown]:
    """Yield a table of the processes that failed, if there are some."""
    lines = [(row["case"], row["arm"], row["error"]) for row in rows if row["error"]]
    if lines:
        yield Shown("Failures", ("case", "memory from", "error"), lines, (0, 1, 2))


def _ratio_cells(one: Ratio) -> tuple[str, str, str]:
    return f"{one.mean:.3f}", f"{one.worst:.3f}", one.worst_case


def _mean_cell(ratios: list[float] | None) -> str:
    return f"{geometric_mean(ratios):.3f}" if ratios else DASH


def _time_cells(case: Case, rounds: Rounds) -> tuple[str, ...]:
    eager = [outcome.eager for outcome in rounds.values() if outcome.eager]
    slab = [outcome.slab for outcome in rounds.values() if outcome.slab]
    result_bytes = max(outcome.result_bytes for outcome in rounds.values())
    return (
        str(case.threads),
        case.name,
        seconds(median(timing.cpu_s for timing in eager)),
        seconds(median(timing.cpu_s for timing in slab)),
        f"{ratio(rounds, rounds):.3f}",
        f"{median(timing.faults for timing in eager):.0f}",
        f"{median(timing.faults for timing in slab):.0f}",
        f"{-(-result_bytes // _PAGE)}",
    )


def _plan_cells(case: Case, rounds: Rounds) -> tuple[str, ...]:
    one = next(iter(rounds.values()))  # counts are the same in every round
    return (
        str(case.threads),
        case.name,
        str(one.allocations),
        str(one.planned),
        f"{one.peak / one.max_load:.4f}" if one.max_load else DASH,
        seconds(median(outcome.greedy_s for outcome in rounds.values())),
        seconds(median(outcome.auto_s for outcome in rounds.values())),
        f"{one.hits:.0f}",
        f"{one.fallbacks:.0f}",
        _equality(rounds.values()),
    )


def _contention_cells(row: Contention) -> tuple[str, ...]:
    profile, served = row.profile, row.served
    assert profile is not None
    assert served is not None
    parts = (profile.allocator, profile.faults, profile.calls)
    each = max(1, served.inferences)
    return (
        str(row.case.threads),
        row.case.name,
        "slab" if row.slab else row.allocator,
        str(served.inferences),
        *(percent(part, profile.samples) for part in (*parts, sum(parts))),
        seconds(profile.waiting_s / each),
        f"{profile.waits / each:.2f}",
    )


def _equality(outcomes: Iterable[Outcome]) -> str:
    return "equal" if all(outcome.equal for outcome in outcomes) else "DIFFERENT"
