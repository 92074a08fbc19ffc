"""Summaries of rows: each solver on a suite, and compared with another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median
from typing import TypeVar

from memplan_lab.bench.rows import Row, divide

R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Summary:
    """One solver on one suite."""

    suite: str
    solver: str
    # cases, solved, optimal: The numbers of cases that were not skipped, that ended with a valid
    # plan, and that ended with a proof that no plan has a smaller peak.
    cases: int
    solved: int
    optimal: int
    # wall_median, wall_worst, wall_sum, cpu_sum: Seconds over all measured runs, solved or not;
    # None if there is none.
    wall_median: float | None
    wall_worst: float | None
    wall_sum: float | None
    cpu_sum: float | None
    # ratio_mean, ratio_worst, worst_case: Peak over the best known bound of the case, over solved
    # cases: mean, worst, and the case with the worst; None if none was solved.
    ratio_mean: float | None
    ratio_worst: float | None
    worst_case: str | None
    at_bound: int  # the number of peaks at that bound
    # CPU time over that of the first solver, on the cases that both solved; None if there is none.
    relative: float | None


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """Return a summary for each suite and solver, in the order in which they first appear."""
    found: list[Summary] = []
    for suite, of_suite in by_suite(rows).items():
        solvers = by_solver(of_suite)
        ratios_of = over_bound(of_suite)
        first = next(iter(solvers.values()))
        for solver, group in solvers.items():
            walls = [row.wall_s for row in group if row.wall_s is not None]
            cpus = [row.cpu_s for row in group if row.cpu_s is not None]
            ratios = ratios_of[solver]
            worst = max(ratios, key=lambda case: ratios[case], default=None)
            found.append(
                Summary(
                    suite=suite,
                    solver=solver,
                    cases=sum(row.status != "skipped" for row in group),
                    solved=sum(row.solved for row in group),
                    optimal=sum(row.status == "optimal" for row in group),
                    wall_median=median(walls) if walls else None,
                    wall_worst=max(walls, default=None),
                    wall_sum=sum(walls) if walls else None,
                    cpu_sum=sum(cpus) if cpus else None,
                    ratio_mean=fmean(ratios.values()) if ratios else None,
                    ratio_worst=None if worst is None else ratios[worst],
                    worst_case=worst,
                    at_bound=sum(ratio == 1.0 for ratio in ratios.values()),
                    relative=_relative(group, first),
                )
            )
    return found


def by_suite(rows: Iterable[R]) -> dict[str, list[R]]:
    """Return the rows of each suite, in the order in which they first appear."""
    return _group(rows, lambda row: row.suite)


def by_solver(rows: Iterable[R]) -> dict[str, list[R]]:
    """Return the rows of each solver, in the order in which they first appear."""
    return _group(rows, lambda row: row.solver)


def by_case(rows: Iterable[R]) -> dict[str, list[R]]:
    """Return the rows of each problem of a suite, in the order in which they first appear."""
    return _group(rows, lambda row: row.case)


def _group(rows: Iterable[R], key: Callable[[R], str]) -> dict[str, list[R]]:
    found: dict[str, list[R]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def best_bounds(rows: Iterable[Row]) -> dict[str, int]:
    """Return the greatest lower bound of each problem of a suite that any solver proved."""
    best: dict[str, int] = {}
    for row in rows:
        if row.status != "invalid":
            best[row.case] = max(best.get(row.case, 0), row.lower_bound or 0)
    return best


def over_bound(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return by solver, for each problem that it planned, its peak over the best bound known."""
    bounds = best_bounds(rows)
    return {
        solver: {
            row.case: divide(row.peak, bounds[row.case])
            for row in group
            if row.solved and row.peak is not None
        }
        for solver, group in by_solver(rows).items()
    }


def _relative(group: Sequence[Row], first: Sequence[Row]) -> float | None:
    base = {row.case: row.cpu_s for row in first if row.solved}
    pairs = [
        (row.cpu_s, base[row.case])
        for row in group
        if row.solved and row.cpu_s is not None and base.get(row.case) is not None
    ]
    mine, theirs = sum(a for a, _ in pairs), sum(b or 0.0 for _, b in pairs)
    return mine / theirs if theirs > 0 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first solver of a suite compared with another."""

    suite: str
    first: str
    other: str
    # both, only_first, only_other: The numbers of cases that both solved, and that each alone
    # solved.
    both: int
    only_first: int
    only_other: int
    # cpu_mean, cpu_worst: CPU time of the first over that of the other, on the cases that both
    # solved: geometric mean, and the case where the first does worst. Below 1 the first is faster.
    # None where there is no such case.
    cpu_mean: float | None
    cpu_worst: float | None
    # peak_mean, peak_worst: The same of the peaks.
    peak_mean: float | None
    peak_worst: float | None
    # CPU time of the other over that of the first, on the cases that the first solved: the median.
    # If the other found no plan, the time that it used counts, so the true ratio can only be
    # higher.
    speed_up: float | None
    # Nodes of the first over those of the other, on the cases that both solved: geometric mean.
    nodes_mean: float | None


def compare(rows: Iterable[Row]) -> list[Comparison]:
    """Compare the first solver of each suite with all others, case by case."""
    found: list[Comparison] = []
    for suite, of_suite in by_suite(rows).items():
        (first, ours), *others = by_solver(of_suite).items()
        mine = {row.case: row for row in ours if row.solved}
        for other, group in others:
            theirs = {row.case: row for row in group if row.solved}
            pairs = [(mine[case], theirs[case]) for case in mine if case in theirs]
            tried = [(mine[row.case].cpu_s, row.cpu_s) for row in group if row.case in mine]
            faster = [b / a for a, b in tried if a and b]
            nodes = [a.nodes / b.nodes for a, b in pairs if a.nodes and b.nodes]
            cpu = [a.cpu_s / b.cpu_s for a, b in pairs if a.cpu_s and b.cpu_s]
            peak = [a.peak / b.peak for a, b in pairs if a.peak and b.peak]
            found.append(
                Comparison(
                    suite=suite,
                    first=first,
                    other=other,
                    both=len(pairs),
                    only_first=len(mine) - len(pairs),
                    only_other=len(theirs) - len(pairs),
                    cpu_mean=_geometric_mean(cpu),
                    cpu_worst=max(cpu, default=None),
                    peak_mean=_geometric_mean(peak),
                    peak_worst=max(peak, default=None),
                    speed_up=median(faster) if faster else None,
                    nodes_mean=_geometric_mean(nodes),
                )
            )
    return found


def _geometric_mean(values: Sequence[float]) -> float | None:
    return exp(sum(map(log, values)) / len(values)) if values else None
