"""Tests of `memplan.solve(progress=...)`: what is told of a search, and what ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from itertools import pairwise

import pytest
from every_solver import EVERY

import memplan as mp
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

# What gives the signal in the tests below is a timer of POSIX.
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")


@pytest.fixture
def hard() -> mp.Problem:
    """Return buffers for which MiniMalloc's search, without its best rules, never ends."""
    return generators.flat_load(64, 1).with_capacity(None)


@pytest.mark.parametrize("solver", EVERY)
def test_peaks_fall_and_bounds_rise(solver: str) -> None:
    """Tests everything that every solver tells, up to the answer."""
    problem = generators.flat_load(40, 2).with_capacity(None)
    told: list[mp.Progress] = []
    plan = mp.solve(problem, solver, threads=1, nodes=20_000, progress=told.append)
    assert told
    for one, then in pairwise(told):
        assert one.seconds <= then.seconds
        assert one.lower_bound <= then.lower_bound
        assert one.nodes <= then.nodes
        assert one.peak is None or (then.peak is not None and then.peak <= one.peak)
    last = told[-1]
    assert last.peak == plan.peak
    assert problem.max_load <= told[0].lower_bound
    assert last.lower_bound <= plan.lower_bound
    assert all(each.phase for each in told)
    for each in told:
        assert (each.gap is None) == (each.peak is None)
        assert each.peak is None or each.gap == each.peak / each.lower_bound - 1


@pytest.mark.parametrize("threads", [1, 2])
def test_watching_changes_nothing(threads: int) -> None:
    """Tests that the plan is the same with and without a callback, and that it is on one thread."""
    problem = generators.flat_load(40, 2).with_capacity(None)
    callers = set()
    watched = mp.solve(
        problem,
        nodes=20_000,
        threads=threads,
        progress=lambda _: callers.add(threading.get_ident()),
    )
    alone = mp.solve(problem, nodes=20_000, threads=threads)
    assert callers == {threading.get_ident()}
    assert watched.offsets is not None
    assert alone.offsets is not None
    assert watched.offsets.tolist() == alone.offsets.tolist()
    assert watched.stats["nodes"] == alone.stats["nodes"]


class EnoughError(Exception):
    """What a caller may raise."""


@pytest.mark.parametrize("kind", [EnoughError, ValueError, mp.MemplanError, SystemExit])
def test_what_a_callback_raises_ends_the_search(
    hard: mp.Problem, kind: type[BaseException]
) -> None:
    """Tests that the very exception comes out, whatever it is; nothing is reported after it."""
    error = kind("enough")
    told = []

    def stop(progress: mp.Progress) -> None:
        told.append(progress)
        raise error

    with pytest.raises(kind) as caught:
        mp.solve(hard, "minimalloc", dominance=False, progress=stop)
    assert caught.value is error
    assert len(told) == 1


def test_ctrl_c_in_a_callback_gives_the_best_plan(hard: mp.Problem) -> None:
    """Tests that an interrupt while Python runs is the same as one while the core does."""

    def stop(progress: mp.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(mp.Interrupted) as caught:
        mp.solve(hard, "minimalloc", dominance=False, progress=stop)
    mp.verify(hard, caught.value.plan)


@needs_timer
def test_ctrl_c_in_a_watched_search() -> None:
    """Tests a signal in the middle of a search with a callback."""
    program = """
import signal
import memplan as mp
from memplan_lab.bench import generators

problem = generators.flat_load(64, 1).with_capacity(100_000)
signal.signal(signal.SIGALRM, signal.default_int_handler)
begun = []

def arm(_):
    if not begun:
        begun.append(signal.setitimer(signal.ITIMER_REAL, 0.1))

try:
    mp.solve(problem, "minimalloc", "min_peak", dominance=False, progress=arm)
except mp.Interrupted as stop:
    mp.verify(problem, stop.plan)
    print("interrupted")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.returncode) == ("interrupted\n", 0), run.stderr


def test_a_callback_must_be_callable(hard: mp.Problem) -> None:
    """Tests that something else is refused before the search."""
    with pytest.raises(mp.MemplanError, match="progress is 5; it must be callable"):
        mp.solve(hard, progress=5)  # type: ignore[arg-type]
