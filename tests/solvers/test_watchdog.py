"""Tests that no solver hangs; `python tests/helpers/watchdog.py 100000` is its long run."""

from __future__ import annotations

import every_solver
import pytest
import watchdog

import memplan as mp

pytestmark = pytest.mark.deep

# What a solver once did not end with, smallest first.
HUNG = [
    mp.Problem(
        [mp.Buffer("a", 0, 1, 4), mp.Buffer("b", 0, 1, 2, alignment=5)], groups=[["a", "b"]]
    ),
]


@pytest.mark.parametrize("first", [0, 1000, 2000, 3000])
def test_every_solver_ends_without_a_budget(first: int) -> None:
    """Tests time, plans and bounds of every solver on problems of every mix of constraints."""
    found = watchdog.watch(first, 40)
    assert found.problems == 40
    usual = set(every_solver.OURS) | {"bump", "greedy_by_size", "meta_csp", "tflm_greedy"}
    assert usual <= set(found.solves)
    assert found.faults == []


def test_a_solve_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the watchdog itself: it ends a process that is too slow, and goes on behind it."""
    monkeypatch.setattr(watchdog, "PATIENCE", 0.0)
    found = watchdog.watch(0, 2, ["auto"])
    assert found.problems == 2
    assert any("auto hangs" in fault for fault in found.faults)
