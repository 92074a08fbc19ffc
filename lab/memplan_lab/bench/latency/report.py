"""Latencies as tables for people and as a file for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from memplan.base.errors import FormatError
from memplan.base.files import read_text, write_bytes
from memplan.view.units import percent, seconds
from memplan_lab.bench import tables
from memplan_lab.bench.latency.contention import Contention
from memplan_lab.bench.latency.profile import Profile
from memplan_lab.bench.latency.rows import Case, Outcome, Row
from memplan_lab.bench.latency.server import Served
from memplan_lab.bench.latency.summary import Ratio, Rounds, by_case, causes, compare, ratio
from memplan_lab.bench.tables import DASH

if TYPE_CHECKING:
    from rich.console import RenderableType

_PAGE = 4096


class Table(NamedTuple):
    """A table, before it is known where it will be shown."""

    title: str
    headings: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    left: tuple[int, ...]


def terminal(shown: Iterable[Table]) -> RenderableType:
    """Return tables for a terminal."""
    from rich.console import Group

    return Group(*(tables.terminal(*table) for table in shown))


def markdown(shown: Iterable[Table]) -> str:
    """Return tables in Markdown, their titles in bold."""
    parts = [f"**{t.title}**\n\n{tables.markdown(t.headings, t.lines, t.left)}" for t in shown]
    return "\n".join(parts)


def overview(rows: Sequence[Row]) -> Table:
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
    return Table(
        "Latency with the slab / eager with an allocator",
        ("threads", "allocator", "cases", *across, "wall", "worst", *inside),
        lines,
        (1, 5, 10),
    )


def spread(rows: Sequence[Row]) -> Table:
    """Return the whole range of slab over eager by CPU time across processes."""
    lines = [
        (
            *(str(one.threads), one.allocator, str(one.cases)),
            *(f"{one.across.least:.3f}", one.across.least_case, f"{one.across.middle:.3f}"),
            *(f"{one.across.worst:.3f}", one.across.worst_case),
        )
        for one in compare(rows)
    ]
    return Table(
        "The range of the ratios of CPU time",
        ("threads", "allocator", "cases", "least", "where", "median", "largest", "where"),
        lines,
        (1, 4, 7),
    )


def decided(rows: Sequence[Row]) -> Table:
    """Return the correlations of the ratio under the first allocator, the strongest first."""
    lines = [
        (cause.name, f"{cause.correlation:+.2f}", f"{cause.least:.3g}", f"{cause.most:.3g}")
        for cause in causes(rows)
    ]
    return Table(
        "What decides the ratio: rank correlation over the cases (-1: the more, the lower)",
        ("property of a case", "correlation", "least", "most"),
        lines,
        (0,),
    )


def by_network(rows: Sequence[Row]) -> Table:
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
    return Table("By network, CPU time", ("threads", "network", *names), lines, (1,))


def cases(rows: Sequence[Row]) -> Table:
    """Return times and page faults of every case under the first allocator."""
    return Table(
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


def plans(rows: Sequence[Row]) -> Table:
    """Return the plan of every case, and how many allocations the slab served."""
    planned = ("allocations", "planned", "peak / load", "time of greedy_by_size", "time of auto")
    return Table(
        "Plans, and allocations served by the slab",
        ("threads", "case", *planned, "served", "not served", "outputs"),
        [_plan_cells(case, rounds) for case, rounds in _first(rows)],
        (1, 9),
    )


def _first(rows: Sequence[Row]) -> Iterator[tuple[Case, Rounds]]:
    for case, allocators in by_case(rows).items():
        yield case, next(iter(allocators.values()))


def contention(rows: Sequence[Contention]) -> Table:
    """Return the shares of CPU time that went into memory, and how long threads waited for it."""
    shares = ("allocator", "page faults", "system calls", "total")
    return Table(
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


def failure(row: Row | Contention) -> str:
    """Return one sentence for a process that failed."""
    return f"{row.case.name} ({row.allocator}): {row.error}"


def write(rows: Iterable[Row | Contention], path: str) -> None:
    """Write all measurements as JSON, completely or not at all."""
    cores = str(os.cpu_count())
    about = {"machine": platform.machine(), "system": platform.platform(), "cores": cores}
    data = {"about": about, "rows": [asdict(row) for row in rows]}
    write_bytes(path, f"{json.dumps(data, indent=1)}\n".encode())


def read(path: str | os.PathLike[str]) -> list[Row | Contention]:
    """Read what `memplan-lab bench-latency --output` or `bench-contention --output` wrote."""
    name = os.fspath(path)
    try:
        rows = json.loads(read_text(name))["rows"]
        return [_read_row(row) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise FormatError(
            name,
            "holds no measurements of latencies or contention; write them with bench-latency "
            "--output or bench-contention --output",
        ) from None


def _read_row(row: dict[str, Any]) -> Row | Contention:
    case = Case(**row["case"])
    if "outcome" in row:
        return Row(case, row["allocator"], row["round"], Outcome.from_json(row["outcome"]))
    served = row["served"] and Served(tuple(row["served"]["threads"]), row["served"]["inferences"])
    profile = row["profile"] and Profile(**row["profile"])
    return Contention(case, row["allocator"], row["slab"], served, profile, row["error"])


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
