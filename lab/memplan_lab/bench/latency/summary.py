"""What rows add up to: latency through a slab over that of eager, by allocator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, median

from memplan_lab.bench.latency.rows import Case, Outcome, Row, Timing


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio over cases; below 1 the slab is faster.

    Attributes
    ----------
    mean
        Geometric mean.
    worst
        The largest.
    worst_case
        Where that was.
    """

    mean: float
    worst: float
    worst_case: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A slab against eager under one allocator, for a number of request threads.

    Attributes
    ----------
    threads, allocator, cases
        What was measured, and how many cases.
    across
        CPU time through a slab in a process of the first allocator, over that of eager in a
        process of this one: what a user gains who uses a slab instead of this allocator.
    across_wall
        The same by wall clock.
    inside
        CPU time through a slab over that of eager in the same process, in turns: less noise, and
        other memory of the process is served by this allocator as well.
    """

    threads: int
    allocator: str
    cases: int
    across: Ratio
    across_wall: Ratio
    inside: Ratio


Rounds = Mapping[int, Outcome]


def compare(rows: Iterable[Row]) -> list[Comparison]:
    """Compare for every number of threads and every allocator, in the order of the rows."""
    measured = by_case(rows)
    groups: dict[tuple[int, str], list[tuple[Case, Rounds, Rounds]]] = {}
    for case, allocators in measured.items():
        ours = next(iter(allocators.values()))
        for allocator, theirs in allocators.items():
            groups.setdefault((case.threads, allocator), []).append((case, ours, theirs))
    return [
        Comparison(
            threads,
            allocator,
            len(group),
            _ratio({case: ratio(ours, theirs) for case, ours, theirs in group}),
            _ratio({case: ratio(ours, theirs, _wall) for case, ours, theirs in group}),
            _ratio({case: ratio(theirs, theirs) for case, _, theirs in group}),
        )
        for (threads, allocator), group in groups.items()
    ]


def by_case(rows: Iterable[Row]) -> dict[Case, dict[str, dict[int, Outcome]]]:
    """Return the outcomes of what was measured, by case, allocator and round.

    A case that went wrong under any allocator is left out, for a fair comparison.
    """
    found: dict[Case, dict[str, dict[int, Outcome]]] = {}
    failed = set()
    for row in rows:
        found.setdefault(row.case, {}).setdefault(row.allocator, {})[row.round] = row.outcome
        if row.error:
            failed.add(row.case)
    return {case: allocators for case, allocators in found.items() if case not in failed}


def _cpu(timing: Timing) -> float:
    return timing.cpu_s


def _wall(timing: Timing) -> float:
    return timing.wall_s


def ratio(slab: Rounds, eager: Rounds, clock: Callable[[Timing], float] = _cpu) -> float:
    """Return the median over rounds of a slab's latency over that of eager.

    The ratios are taken round by round, because the processes of a round ran one after the other.
    """
    return median(
        clock(slab[number].slab) / clock(eager[number].eager)  # type: ignore[arg-type]
        for number in slab.keys() & eager.keys()
    )


def _ratio(ratios: Mapping[Case, float]) -> Ratio:
    case, worst = max(ratios.items(), key=lambda item: item[1])
    return Ratio(geometric_mean(ratios.values()), worst, case.name)
