"""Summaries of rows: latency through a slab over that of eager, by allocator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

import numpy as np

from memplan_lab.bench.latency.rows import Case, Outcome, Row, Timing


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio over cases; below 1 the slab is faster."""

    mean: float  # geometric mean
    # least, middle, worst: The smallest, the median and the largest.
    least: float
    # least_case, worst_case: Where the smallest and the largest were.
    least_case: str
    middle: float
    worst: float
    worst_case: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A slab against eager under one allocator, for a number of request threads."""

    # threads, allocator, cases: What was measured, and how many cases.
    threads: int
    allocator: str
    cases: int
    # CPU time through a slab in a process of the first allocator, over that of eager in a process
    # of this one: the gain of a user who replaces this allocator by a slab.
    across: Ratio
    across_wall: Ratio  # the same by wall clock
    # CPU time through a slab over that of eager in the same process, in turns. It has less noise,
    # but this allocator serves the other memory of both.
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
        if row.outcome.error:
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
    in_order = sorted(ratios.items(), key=lambda item: item[1])
    (best, least), (case, worst) = in_order[0], in_order[-1]
    return Ratio(
        geometric_mean(ratios.values()),
        *(least, best.name, median(ratios.values()), worst, case.name),
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """A property on which the gain of a slab may depend."""

    name: str  # what it is, for a table
    # Spearman's rank correlation with the ratio of the slab's CPU time to that of eager, over
    # cases: -1 if the ratio always falls as this grows.
    correlation: float
    # least, most: Its smallest and largest value.
    least: float
    most: float


def causes(rows: Iterable[Row]) -> list[Cause]:
    """Return what may decide the ratio under the first allocator, the strongest first.

    Needs at least three cases; there is nothing to say of fewer.
    """
    measured = [next(iter(allocators.values())) for allocators in by_case(rows).values()]
    if len(measured) < _FEWEST:
        return []
    ratios = [ratio(rounds, rounds) for rounds in measured]
    found = []
    for name, value in _CAUSES.items():
        values = [median(value(outcome) for outcome in rounds.values()) for rounds in measured]
        found.append(Cause(name, _rank_correlation(values, ratios), min(values), max(values)))
    return sorted(found, key=lambda cause: -abs(cause.correlation))


_FEWEST = 3


def _eager_ms(outcome: Outcome) -> float:
    assert outcome.eager is not None
    return max(outcome.eager.cpu_s * 1e3, 1e-9)


def _fault_rate(outcome: Outcome) -> float:
    assert outcome.eager is not None
    return outcome.eager.faults / _eager_ms(outcome)


_CAUSES: Mapping[str, Callable[[Outcome], float]] = {
    "page faults per ms, eager": _fault_rate,
    "MiB allocated per ms": lambda one: one.bytes / _eager_ms(one) / (1 << 20),
    "allocations per ms": lambda one: one.planned / _eager_ms(one),
    "share of bytes in allocations of 128 KiB or more": lambda one: (
        one.large_bytes / max(1, one.bytes)
    ),
    "CPU time of an inference, ms": _eager_ms,
}


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation, 0 if all values of one are equal."""
    one, other = (np.array(_rank(values)) for values in (first, second))
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _rank(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones share the mean of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]
