"""Tests of the suite `robustness`, and of what `auto` may not lose on it and others."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import robustness_gate

import memplan
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan, Status
from memplan.referee import verify
from memplan_lab import bench
from memplan_lab.bench import generators as g
from memplan_lab.bench import suites

pytestmark = pytest.mark.slow

FAMILIES = list(g.FAMILIES)
# The families whose optimum is above the load: the bound that is stated has its own reason.
ABOVE_THE_LOAD = {"aligned", "reserved", "gap-cliques"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("n", "seed", "moments"), [(300, 0, 1), (300, 1, 1), (500, 2, 4), (2_000, 3, 1), (2_000, 4, 8)]
)
def test_the_known_plan_has_the_stated_peak(family: str, n: int, seed: int, moments: int) -> None:
    """Tests that the plan a problem was cut from is valid, and that its peak is the bound."""
    known = g.robustness(family, n, seed, moments)
    assert len(known.problem) == n
    assert known.problem.capacity is None
    assert (known.problem.max_load < known.bound) == (family in ABOVE_THE_LOAD)
    if known.offset is None:
        assert family == "flat"
    else:
        plan = Plan.of(known.problem, known.offset, lower_bound=known.bound)
        assert plan.peak == known.bound
        verify(known.problem, plan)


@pytest.mark.parametrize("family", sorted(ABOVE_THE_LOAD - {"gap-cliques"}))
def test_bounds_above_the_load_are_bounds(family: str) -> None:
    """Tests that the core, which proves its bounds, knows no smaller optimum."""
    known = g.robustness(family, 500, 4)
    assert memplan.lower_bound(known.problem) == known.bound


def test_gap_cliques_meet_in_pairs() -> None:
    """Tests that the sizes of buffers which meet in pairs add up to the bound."""
    known = g.robustness("gap-cliques", 500, 0)
    p = known.problem
    full = int(p.gap_start.min())
    live = np.flatnonzero((p.start <= full) & (full + 3 <= p.end))
    held = {(row, full + step) for row in live.tolist() for step in range(3)}
    held -= set(zip(p.gap_buffer.tolist(), p.gap_start.tolist(), strict=True))
    for i in live.tolist():
        for j in live.tolist():
            assert any({(i, full + step), (j, full + step)} <= held for step in range(3))
    assert p.size[live].sum() == known.bound


@pytest.mark.parametrize("family", FAMILIES)
def test_seed_decides_all(family: str) -> None:
    """Tests that a seed gives the same problem each time, and another seed another."""
    one = g.robustness(family, 300, 1)
    assert one.problem == g.robustness(family, 300, 1).problem
    assert one.problem != g.robustness(family, 300, 2).problem


def test_same_problems_on_any_machine() -> None:
    """Tests that one instance of each family is the one that was recorded once."""
    prints = [g.robustness(family, 300, 7).problem.fingerprint for family in FAMILIES]
    assert hashlib.sha256(" ".join(prints).encode()).hexdigest()[:16] == "6fefce1cf8753fa4"


def test_families_have_their_constraints() -> None:
    """Tests that a family has the constraint that it is there for."""
    problems = {family: g.robustness(family, 500, 0).problem for family in FAMILIES}
    assert 50 < (problems["pinned"].pin >= 0).sum() < 150
    assert set(problems["aligned"].alignment.tolist()) == {4096}
    assert set(problems["alignments"].alignment.tolist()) == {1, 64, 4096}
    assert len(problems["reserved"].reserved) == 3
    assert len(problems["gaps"].gap_buffer) >= 16
    assert problems["gaps"].has_windows
    assert len(problems["conflicts"].conflicts) > 90
    assert len(problems["groups"].groups) == 25
    assert len(set(problems["equal-sizes"].size.tolist())) < 10
    loads = Loads(problems["flat"]).load
    assert loads.min() == loads.max()


@pytest.mark.parametrize("family", ["bimodal", "pinned", "gaps"])
def test_as_many_moments_are_full_as_asked_for(family: str) -> None:
    """Tests that in as many stretches of time the load reaches the bound."""
    known = g.robustness(family, 2_000, 0, moments=4)
    loads = Loads(known.problem)
    full = np.flatnonzero(loads.load == known.bound)
    quarters = np.searchsorted(np.arange(1, 4) * len(loads) // 4, full)
    assert len(set(quarters.tolist())) >= 3
    assert (np.diff(full) > 1).sum() >= 3


def test_too_few_buffers_are_refused() -> None:
    """Tests that too small an n is refused with the least that will do."""
    with pytest.raises(ValueError, match="at least 300"):
        g.robustness("pinned", 299, 0)


def test_rows_use_the_known_bound() -> None:
    """Tests that a row's ratio is to the bound of the generator, where the solver's is lower."""
    (case,) = suites.cases("robustness-gap-cliques", suites.Options(sizes=[300], seeds=1))
    assert case.name == "gap-cliques-300-0"
    (row,) = bench.run(["robustness-gap-cliques"], ["bump"], sizes=[300], seeds=1)
    assert row.max_load is not None
    assert row.peak is not None
    assert row.max_load < case.bound() == row.lower_bound
    assert row.ratio == row.peak / case.bound()
    assert row.status == Status.FEASIBLE.value


@pytest.mark.deep
@pytest.mark.parametrize("case", [*robustness_gate.sample()], ids=robustness_gate.name)
def test_what_was_won_is_kept(case: suites.Case) -> None:
    """Tests that `auto` needs no more nodes and no higher peak than when the table was written.

    `python lab/tests/robustness_gate.py` writes the table of a change that is better; where a line
    is worse, its commit says why.
    """
    most, ratio = robustness_gate.read()[robustness_gate.name(case)]
    nodes, reached = robustness_gate.measure(case)
    assert nodes <= most
    assert reached <= ratio
