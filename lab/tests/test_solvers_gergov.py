"""Tests of Gergov's approximation: what he proves of the steps, and of the plan."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given, settings

import memplan as mp
from memplan.solvers.run import Run
from memplan_lab.baselines import gergov
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow


def run_of(problem: mp.Problem, seconds: float | None = None) -> Run:
    """Return a call of a planner with so much time."""
    return Run(
        problem,
        solver="gergov",
        minimize=True,
        seconds=seconds,
        nodes=None,
        seed=0,
        options={},
        progress=None,
    )


def check_two_allocation(problem: mp.Problem) -> int:
    """Check what Gergov proves of the infeasible solution; return the colours that it takes."""
    size = problem.size
    found = gergov._make_two_allocation(run_of(problem), problem.start, problem.end, size)
    assert found is not None
    level, order = found
    assert sorted(order.tolist()) == list(range(len(problem)))
    assert (level + size).max() <= problem.max_load
    for time in np.unique(problem.start):
        live = np.flatnonzero((problem.start <= time) & (time < problem.end))
        for at in level[live]:
            held = (level[live] <= at) & (at < level[live] + size[live])
            assert held.sum() <= 2
    colours = gergov._colour_buffers(run_of(problem), order, level[order], size[order])
    assert colours is not None
    return max(colours) + 1


@settings(max_examples=200)
@given(problem=strategies.problems(min_buffers=1, max_buffers=14, features=frozenset()))
def test_gergov_keeps_his_guarantee(problem: mp.Problem) -> None:
    """Tests that no three lie on each other below the load, and that three colours are enough."""
    assert check_two_allocation(problem) <= 3
    plan = mp.solve(problem, "gergov")
    mp.verify(problem, plan)
    assert plan.peak is not None
    assert plan.peak <= 3 * problem.max_load


def test_gergov_where_conflicts_abound() -> None:
    """Tests the guarantee on dense problems, most of which do take three colours."""
    colours = []
    for seed in range(12):
        problem = generators.flat_load(64, seed).with_capacity(None)
        colours.append(check_two_allocation(problem))
        plan = mp.solve(problem, "gergov")
        mp.verify(problem, plan)
        assert plan.peak is not None
        assert plan.peak <= 3 * problem.max_load
    assert set(colours) == {2, 3}


@given(problem=strategies.problems(min_buffers=1, features=frozenset({"alignment"})))
def test_gergov_aligns_everything_alike(problem: mp.Problem) -> None:
    """Tests the guarantee on sizes that are rounded up to the alignment of all."""
    unit = int(np.lcm.reduce(problem.alignment))
    rounded = mp.Problem.from_arrays(problem.start, problem.end, -(-problem.size // unit) * unit)
    plan = mp.solve(problem, "gergov")
    mp.verify(problem, plan)
    assert plan.peak is not None
    assert plan.peak <= 3 * rounded.max_load


def test_gergov_refuses_alignments_that_are_too_large_together() -> None:
    """Tests that nothing wraps around where a common alignment would be beyond 2^62."""
    primes = [(1 << 31) - 1, (1 << 31) - 19, (1 << 31) - 61]
    problem = mp.Problem([mp.Buffer(f"b{p}", 0, 1, 1, alignment=p) for p in primes])
    plan = mp.solve(problem, "gergov")
    assert (plan.status, plan.offsets) == ("unknown", None)
    assert "2^62" in str(plan.stats["note"])


def test_gergov_ends_with_the_time() -> None:
    """Tests that no step begins after the deadline, the colouring's included."""
    problem = generators.flat_load(64, 1).with_capacity(None)
    plan = mp.solve(problem, "gergov", timeout=0)
    assert (plan.status, plan.offsets, plan.stats["note"]) == ("unknown", None, "the time is over")
    level, size = np.zeros_like(problem.size), problem.size
    assert (
        gergov._colour_buffers(run_of(problem, seconds=0.0), np.arange(len(problem)), level, size)
        is None
    )
