"""Tests of Single Object and Many Objects (SOMAS) through the door of all solvers."""

from __future__ import annotations

import numpy as np
import pytest

import memplan as mp
from memplan.solvers import registry

pytestmark = pytest.mark.slow

PEAKS = {"single_object": 1920, "many_objects": 1664}  # figures 8 and 9


@pytest.fixture
def toy() -> mp.Problem:
    """Return the tensors of figure 7, whose lifetimes include their last step."""
    lives = [(0, 1, 1024), (3, 4, 768), (1, 2, 640), (4, 5, 512), (2, 4, 256)]
    return mp.Problem(
        [
            mp.Buffer(name, start, last + 1, size)
            for name, (start, last, size) in zip("ABCDE", lives, strict=True)
        ]
    )


@pytest.mark.parametrize("solver", PEAKS)
def test_the_toy_of_the_paper(solver: str, toy: mp.Problem) -> None:
    """Tests the peaks that the paper gives, and that only the second is known to be the least."""
    plan = mp.solve(toy, solver)
    mp.verify(toy, plan)
    assert plan.peak == PEAKS[solver]
    assert plan.status == ("optimal" if solver == "many_objects" else "feasible")
    assert plan.stats["solver"] == solver


@pytest.mark.parametrize("solver", PEAKS)
def test_a_relation_and_groups(solver: str) -> None:
    """Tests plans of tensors that no time relates, some of them contiguous, with all options."""
    rng = np.random.Generator(np.random.PCG64(7))
    for _ in range(20):
        count = int(rng.integers(4, 30))
        pairs = [(a, b) for a in range(count) for b in range(a) if rng.integers(3) == 0]
        problem = mp.Problem.from_arrays(
            start=np.arange(count),
            end=np.arange(count) + 1,
            size=rng.integers(0, 50, count),
            conflicts=pairs,
            groups=[[2, 0], [1, 3]],
        )
        for sort in ("size", "breadth", "source", "unsafe"):
            for fit in ("first", "best"):
                plan = mp.solve(problem, solver, sort=sort, fit=fit)
                assert plan.has_offsets
                mp.verify(problem, plan)


@pytest.mark.parametrize("solver", PEAKS)
def test_options(solver: str, toy: mp.Problem) -> None:
    """Tests that options come from the command line too, and what is said of others."""
    name, options = registry.parse(f"{solver}:sort=unsafe,fit=best")
    assert mp.solve(toy, name, **options).stats["note"] == "unsafe, best fit"
    with pytest.raises(mp.MemplanError, match="there is no sort 'width': choose size, breadth"):
        mp.solve(toy, solver, sort="width")
    with pytest.raises(mp.MemplanError, match="there is no fit 'worst': choose first or best"):
        mp.solve(toy, solver, fit="worst")
    with pytest.raises(mp.MemplanError, match="the option sort must be one name"):
        mp.solve(toy, solver, sort=["size", "unsafe"])
    with pytest.raises(mp.UnsupportedError, match='has no option "objects"'):
        mp.solve(toy, solver, objects="many")
