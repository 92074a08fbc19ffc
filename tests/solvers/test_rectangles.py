"""Tests of the baselines from rectangle packing (MiniMalloc, section 8) through `solve`."""

from __future__ import annotations

import pytest

import memplan as mp
from memplan.solvers import registry

pytestmark = pytest.mark.slow

NAMES = ("csp", "meta_csp")

# Loads of 12 at most, and no plan of 12: only a search can tell.
START = [0, 5, 0, 5, 3, 1, 0, 1, 3, 2, 2]
END = [1, 6, 2, 6, 5, 4, 3, 3, 6, 5, 4]
SIZE = [4, 4, 4, 4, 4, 3, 4, 1, 3, 1, 1]


def problem(unit: int = 1, **constraints: object) -> mp.Problem:
    """Return the problem above, with every size so many times as large."""
    return mp.Problem.from_arrays(
        START,
        END,
        [unit * size for size in SIZE],
        **constraints,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("solver", NAMES)
def test_they_are_baselines(solver: str) -> None:
    """Tests that they are shown as what to compare with, not as what to use."""
    assert registry.SOLVERS[solver].is_baseline
    assert not registry.SOLVERS["minimalloc"].is_baseline


@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("unit", [1, 4096])
def test_the_least_peak_is_proved(solver: str, unit: int) -> None:
    """Tests both objectives above the load, where a proof takes all of a search."""
    plan = mp.solve(problem(unit), solver)
    mp.verify(problem(unit), plan)
    assert (plan.status, plan.peak, plan.lower_bound) == ("optimal", 13 * unit, 13 * unit)
    refuted = mp.solve(problem(unit, capacity=13 * unit - 1), solver)
    assert (refuted.status, refuted.stats["note"]) == ("infeasible", "the search is exhausted")
    fit = mp.solve(problem(unit, capacity=13 * unit), solver)
    mp.verify(problem(unit, capacity=13 * unit), fit)
    assert fit.status == "fits"


@pytest.mark.parametrize(
    ("solver", "option"),
    [(name, option) for name in NAMES for option in registry.SOLVERS[name].options],
)
def test_every_switch_is_in_use(solver: str, option: str) -> None:
    """Tests that each switch reaches the core: without it, the same proof takes more nodes."""
    asked = problem(capacity=12)
    on, off = mp.solve(asked, solver), mp.solve(asked, f"{solver}:{option}=off")
    assert on.status == off.status == "infeasible"
    assert on.stats["nodes"] < off.stats["nodes"]


def test_what_ails_the_csp_is_said() -> None:
    """Tests that a budget that runs out says how many offsets there were to try."""
    plan = mp.solve(problem(capacity=12), "csp", nodes=10)
    assert plan.status == "unknown"
    assert plan.stats["note"] == "the budget ran out, with up to 12 offsets for a buffer"
    assert plan.stats["nodes"] == 10


@pytest.mark.parametrize("solver", NAMES)
def test_what_they_lack_is_refused_by_name(solver: str) -> None:
    """Tests that windows, conflicts and groups are named, and none of it is solved without."""
    window = mp.Gap(1, 2, window=(0, 1))
    with pytest.raises(mp.UnsupportedError, match=f"{solver} does not support windows"):
        mp.solve([mp.Buffer("a", 0, 3, 4, gaps=[window])], solver)
    with pytest.raises(mp.UnsupportedError, match=f"{solver} does not support conflicts"):
        mp.solve(problem(conflicts=[(0, 1)]), solver)
    with pytest.raises(mp.UnsupportedError, match=f"{solver} does not support groups"):
        mp.solve(problem(groups=[[0, 1]]), solver)
