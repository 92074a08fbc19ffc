"""Searches with and without learning, side by side (TelaMalloc, section 7.3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memplan.extensions.published.backtracking import Model
from memplan.problem import Problem
from memplan.solvers import solve
from memplan_lab.learn.instances import Instance

__all__ = ["Row", "Run", "evaluate"]


@dataclass(frozen=True)
class Run:
    """One search."""

    solved: bool  # whether it found a plan within its steps
    # Minor and major; of a search without a plan at least its limit of steps, also where it gave up
    # before.
    backtracks: int
    seconds: float  # of processor time, the least of several runs
    steps: int = 0  # placements tried, also by a second search


@dataclass(frozen=True)
class Row:
    """One instance, without and with learning."""

    instance: str
    family: str
    plain: Run
    learned: Run


def evaluate(
    instances: Iterable[Instance],
    learned: Model | bool = True,
    *,
    steps: int = 500_000,
    repeat: int = 1,
    on_row: Callable[[Row], object] | None = None,
) -> list[Row]:
    """Return the results of searches of instances without and with learning.

    Parameters
    ----------
    instances
        Problems with capacities; use problems that did not train the model.
    learned
        As the option of `telamalloc`: True for the second search beside it; or a model, from
        `train` or `memplan.extensions.published.backtracking.read`, which searches as published.
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
        other = _run(problem, steps, repeat, learned=learned)
        row = Row(instance.name, instance.family, plain, other)
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
    nodes = plan.stats["nodes"]
    assert isinstance(backtracks, int)
    assert isinstance(nodes, int)
    return Run(solved, backtracks if solved else max(backtracks, steps), min(seconds), nodes)
