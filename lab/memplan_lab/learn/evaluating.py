"""Searches with and without a model, side by side (source 001, section 7.3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memplan.problem import Problem
from memplan.solvers import solve
from memplan.solvers.backtracking import Model
from memplan_lab.learn.instances import Instance

__all__ = ["Row", "Run", "evaluate"]


@dataclass(frozen=True)
class Run:
    """One search.

    Attributes
    ----------
    solved
        Whether it found a plan within its steps.
    backtracks
        Minor and major; of a search without a plan at least its limit of steps, also where it
        gave up before.
    seconds
        Of processor time, the least of several runs.
    """

    solved: bool
    backtracks: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One instance, without and with the model."""

    instance: str
    family: str
    plain: Run
    learned: Run


def evaluate(
    instances: Iterable[Instance],
    model: Model,
    *,
    steps: int = 500_000,
    repeat: int = 1,
    on_row: Callable[[Row], object] | None = None,
) -> list[Row]:
    """Return how searches of instances go without and with the model.

    Parameters
    ----------
    instances
        Problems with capacities; those that the model has not seen say more.
    model
        From `train`, or `memplan.solvers.backtracking.read`.
    steps
        Limit of a search, in placements tried.
    repeat
        How often each search is run, for its time.
    on_row
        Called with every row.
    """
    rows: list[Row] = []
    for instance in instances:
        problem = instance.make()
        plain = _run(problem, steps, repeat, learned=False)
        learned = _run(problem, steps, repeat, learned=model)
        row = Row(instance.name, instance.family, plain, learned)
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return rows


def _run(problem: Problem, steps: int, repeat: int, *, learned: object) -> Run:
    seconds: list[float] = []
    for _ in range(repeat):
        begin = time.process_time()
        plan = solve(problem, "telamalloc", nodes=steps, threads=1, learned=learned)
        seconds.append(time.process_time() - begin)
    solved = plan.offsets is not None
    backtracks = plan.stats["backtracks"]
    assert isinstance(backtracks, int)
    return Run(solved, backtracks if solved else max(backtracks, steps), min(seconds))
