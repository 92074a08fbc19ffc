"""Measures of runs in a study: which runs reached the best peak, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from memplan_lab.bench.summary import by_solver
from memplan_lab.study.results import Run

FIT = "fit"


def plain_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs of solvers as they are; those with switches have sections of their own."""
    return [run for run in runs if ":" not in run.solver]


def timed_runs(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the runs with a time: without a missing problem or library, or a crash."""
    return (run for run in runs if run.cpu_s is not None)


def best_peaks(runs: Iterable[Run]) -> dict[str, int]:
    """Return the least peak of each problem of a group that any solver reached, in bytes."""
    best: dict[str, int] = {}
    for run in runs:
        if run.solved and run.peak is not None:
            best[run.case] = min(best.get(run.case, run.peak), run.peak)
    return best


def judge(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of a group; runs with a worse answer than another run count as unsolved.

    For the objective `fit`, all fits are equally good (MiniMalloc, footnote 1). For the least peak,
    every solver has some plan, and only a plan with the least peak of all counts.
    """
    best = best_peaks(runs)
    return [
        run
        if run.objective == FIT or not run.solved or run.peak == best[run.case]
        else replace(run, status="unknown")
        for run in runs
    ]


def shares(values: Iterable[float], count: int) -> tuple[list[float], list[float]]:
    """Return for each of sorted values the per cent of `count` things that are at most as large."""
    ordered = sorted(values)
    return ordered, [100 * at / count for at in range(1, len(ordered) + 1)]


def solved_within(runs: Sequence[Run]) -> dict[str, tuple[list[float], list[float]]]:
    """Return for each solver the times at which it had solved one more, and per cent by then.

    The shares are of the problems that it was measured on. Times are those of `Run.cpu_s`.
    """
    return {
        solver: shares((_seconds(run) for run in mine if run.solved), len(mine))
        for solver, mine in by_solver(timed_runs(runs)).items()
    }


def _seconds(run: Run) -> float:
    assert run.cpu_s is not None  # `timed_runs` has left the others out
    return run.cpu_s
