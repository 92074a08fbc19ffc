"""Tests of the baselines of TelaMalloc, and of the planners of other compilers."""

from __future__ import annotations

import sys

import numpy as np
import oracle
import pytest
import strategies
from every_solver import is_missing
from hypothesis import given, settings

import memplan as mp
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

needs_cp_sat = pytest.mark.skipif(is_missing("cp_sat"), reason="ortools or pandas is missing")
encodings = pytest.mark.parametrize("encoding", ["pairs", "no_overlap"])

MIB = 1 << 20


def problem_of(*lives: tuple[int, int, int]) -> mp.Problem:
    """Return a problem of buffers `b0`, `b1`, ... given as start, end and size."""
    return mp.Problem([mp.Buffer(f"b{n}", *life) for n, life in enumerate(lives)])


def offsets_of(problem: mp.Problem, solver: str, **options: object) -> list[int]:
    """Return the offsets of a legal plan."""
    plan = mp.solve(problem, solver, **options)  # type: ignore[arg-type]
    mp.verify(problem, plan)
    assert plan.offsets is not None
    return [int(offset) for offset in plan.offsets]


@pytest.fixture
def hard() -> mp.Problem:
    """Return a problem that takes CP-SAT some seconds."""
    return generators.flat_load(64, 1).with_capacity(None)


# cp_sat ----------------------------------------------------------------------------------------


@needs_cp_sat
@encodings
def test_cp_sat_is_brute_force(encoding: str) -> None:
    """Tests statuses and peaks of the model alone, with a capacity, against brute force."""
    kept = frozenset({"alignment", "pins", "reserved", "gaps", "zero", "capacity"})
    proved = set()

    @settings(max_examples=60, deadline=None)
    @given(problem=strategies.problems(max_buffers=6, features=kept & strategies.FEATURES))
    def run(problem: mp.Problem) -> None:
        best = oracle.minimum_peak(problem)
        plan = mp.solve(problem, "cp_sat", "min_peak", encoding=[encoding], start=False)
        assert plan.status == ("infeasible" if best is None else "optimal")
        proved.add(plan.status)
        assert plan.peak == best
        if best is not None:
            mp.verify(problem, plan)

    run()
    assert proved >= {"optimal"}


@needs_cp_sat
@encodings
def test_cp_sat_refutes_a_capacity_above_the_load(encoding: str) -> None:
    """Tests that "infeasible" is a proof of CP-SAT, one byte under an optimum above the load."""
    problem = next(
        each
        for each in (generators.flat_load(20, seed).with_capacity(None) for seed in range(99))
        if (mp.solve(each, "exact", "min_peak").peak or 0) > mp.lower_bound(each)
    )
    best = mp.solve(problem, "exact", "min_peak").peak
    assert best is not None
    plan = mp.solve(problem.with_capacity(best - 1), "cp_sat", encoding=[encoding])
    assert (plan.status, plan.stats["note"]) == ("infeasible", "refuted by CP-SAT")
    plan = mp.solve(problem.with_capacity(best), "cp_sat", encoding=[encoding])
    # It may prove its plan the least, or end before that.
    assert (plan.status, plan.peak) == ("optimal" if plan.lower_bound == best else "fits", best)


@needs_cp_sat
@encodings
def test_cp_sat_with_sizes_that_share_a_unit(encoding: str) -> None:
    """Tests that amounts of 2^52 bytes are no more to it than the small numbers they stand for."""
    small = problem_of((0, 3, 3), (0, 2, 2), (2, 5, 4), (3, 6, 3), (1, 4, 1))
    best = oracle.minimum_peak(small)
    assert best is not None
    large = mp.Problem.from_arrays(small.start, small.end, small.size << 52)
    plan = mp.solve(large, "cp_sat", encoding=[encoding], start=False)
    mp.verify(large, plan)
    assert (plan.status, plan.peak) == ("optimal", best << 52)


@needs_cp_sat
def test_cp_sat_does_not_begin_what_leaves_64_bits() -> None:
    """Tests sizes near 2^60 without a common unit."""
    problem = problem_of((0, 2, 1 << 60), (1, 3, (1 << 60) + 1))
    plan = mp.solve(problem, "cp_sat", start=False)
    assert (plan.status, plan.offsets) == ("unknown", None)
    assert "too many for CP-SAT" in str(plan.stats["note"])


@needs_cp_sat
def test_cp_sat_does_not_begin_too_many_pairs(
    hard: mp.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that pairs have a limit and that the plan of the start remains."""
    from memplan_lab.baselines import _cp_model

    monkeypatch.setattr(_cp_model, "MOST_PAIRS", 10)
    plan = mp.solve(hard, "cp_sat", "min_peak")
    mp.verify(hard, plan)
    assert plan.status == "feasible"
    assert plan.peak == mp.solve(hard, "greedy_by_size", "min_peak").peak


@needs_cp_sat
@encodings
def test_cp_sat_keeps_the_deadline(hard: mp.Problem, encoding: str) -> None:
    """Tests that a search ends at its deadline, and claims no more than it knows."""
    plan = mp.solve(hard, "cp_sat", "min_peak", timeout=0.3, encoding=[encoding])
    mp.verify(hard, plan)
    assert plan.peak is not None
    assert hard.max_load <= plan.lower_bound <= plan.peak


@needs_cp_sat
def test_cp_sat_repeats_itself(hard: mp.Problem) -> None:
    """Tests that a seed and a budget of nodes, which are conflicts, give the same plan again."""
    first, second = (
        mp.solve(hard, "cp_sat", "min_peak", nodes=400, seed=3, start=False) for _ in range(2)
    )
    assert first.stats["nodes"] == second.stats["nodes"]
    assert (first.peak, first.lower_bound) == (second.peak, second.lower_bound)
    assert first.status in ("feasible", "unknown")


@needs_cp_sat
def test_cp_sat_is_interrupted(hard: mp.Problem) -> None:
    """Tests that an exception in the caller's thread, as Ctrl-C raises, ends the search."""

    def watch(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mp.solve(hard, "cp_sat", "min_peak", start=False, progress=watch)


@needs_cp_sat
@pytest.mark.parametrize("value", ["triples", True])
def test_cp_sat_has_two_encodings(hard: mp.Problem, value: object) -> None:
    """Tests the sentence about another one."""
    with pytest.raises(mp.MemplanError, match="encoding of cp_sat must be one of pairs, no_ov"):
        mp.solve(hard, "cp_sat", encoding=value)


@needs_cp_sat
def test_cp_sat_that_does_not_load_says_why(
    hard: mp.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests the sentence where OR-tools is there, but another library is in its way."""
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(mp.MemplanError, match="cp_sat cannot load OR-tools"):
        mp.solve(hard, "cp_sat")


# bfc -------------------------------------------------------------------------------------------


def test_bfc_follows_a_trace() -> None:
    """Tests each rule of the allocator in a trace that was worked by hand.

    Three chunks and a wall; 0 and 1 are freed and joined into [0, 14). Of the free chunks, [0, 14)
    and what is above 23, 6 bytes go into [0, 14), which is split, and 5 bytes into [6, 14) whole,
    as 8 is less than twice 5. So 3 bytes more go to the top.
    """
    problem = problem_of(
        (0, 2, 10), (0, 3, 4), (0, 9, 9), (4, 9, 6), (5, 7, 5), (6, 9, 3), (7, 9, 8)
    )
    assert offsets_of(problem, "bfc") == [0, 10, 14, 0, 6, 23, 6]


def test_bfc_takes_the_smallest_chunk_and_of_equals_the_lowest() -> None:
    """Tests best fit among holes of 6, 3 and 3 bytes between walls of 1."""
    holes = [(0, 1, 6), (0, 9, 1), (0, 1, 3), (0, 9, 1), (0, 1, 3), (0, 9, 1)]
    assert offsets_of(problem_of(*holes, (1, 9, 3)), "bfc")[-1] == 7
    assert offsets_of(problem_of(*holes, (1, 9, 3), (1, 9, 3)), "bfc")[-2:] == [7, 11]
    assert offsets_of(problem_of(*holes, (1, 9, 4)), "bfc")[-1] == 0


@pytest.mark.parametrize(("left", "split"), [(128 * MIB - 1, False), (128 * MIB, True)])
def test_bfc_wastes_less_than_128_mib(left: int, split: bool) -> None:
    """Tests that a chunk under twice the request is split where so much is left over."""
    asked = 200 * MIB
    problem = problem_of((0, 1, asked + left), (0, 9, 1), (1, 9, asked), (2, 9, 1))
    assert offsets_of(problem, "bfc")[3] == (asked if split else asked + left + 1)


def test_bfc_does_not_see_ends() -> None:
    """Tests TelaMalloc, 3.1: without a look at ends, it loses what greedy saves."""
    problem = problem_of((0, 2, 4), (1, 9, 4), (2, 9, 8))
    assert mp.solve(problem, "bfc").peak == 16
    assert mp.solve(problem, "greedy").peak == 12


def test_bfc_rounds_up_to_the_alignment() -> None:
    """Tests TensorFlow's own unit: what is aligned to 256 takes multiples of 256."""
    problem = mp.Problem([mp.Buffer(f"b{n}", 0, 1, 257, alignment=256) for n in range(3)])
    assert offsets_of(problem, "bfc") == [0, 512, 1024]


# greedy: tflm_greedy, xla_best_fit, contention_skyline -----------------------------------------


def test_tflm_takes_the_lowest_gap_and_not_the_tightest() -> None:
    """Tests first fit: 2 bytes go into the gap of 4 at the bottom, best fit takes that of 2.

    The gaps at time 2 are [0, 4) and [14, 16).
    """
    problem = mp.Problem(
        [
            mp.Buffer("low", 0, 9, 10, pin=4),
            mp.Buffer("high", 0, 9, 10, pin=16),
            mp.Buffer("small", 2, 3, 2),
        ]
    )
    assert offsets_of(problem, "tflm_greedy")[-1] == 0
    assert offsets_of(problem, "greedy_by_size")[-1] == 14


def test_tflm_takes_equals_as_they_are_listed() -> None:
    """Tests that, other than in greedy_by_size, the longer life is not before the shorter."""
    problem = problem_of((0, 1, 4), (0, 9, 4))
    assert offsets_of(problem, "tflm_greedy") == [0, 4]
    assert offsets_of(problem, "greedy_by_size") == [4, 0]


def by_key(problem: mp.Problem, order: list[int]) -> list[int]:
    """Return offsets by best fit in an order, by its definition."""
    offsets: dict[int, int] = {}
    for row in order:
        size = int(problem.size[row])
        meets = (problem.start < problem.end[row]) & (problem.end > problem.start[row])
        taken = sorted((at, at + int(problem.size[o])) for o, at in offsets.items() if meets[o])
        top, holes = 0, []
        for lower, upper in taken:
            if lower - top >= size:
                holes.append((lower - top, top))
            top = max(top, upper)
        offsets[row] = min(holes)[1] if holes else top
    return [offsets[row] for row in range(len(problem))]


@given(problem=strategies.problems(min_buffers=1, max_buffers=10, features=frozenset()))
def test_xla_takes_the_better_of_two_orders(problem: mp.Problem) -> None:
    """Tests the peak against both orders by definition: by size, and by length of life."""
    life = problem.end - problem.start
    spatial = by_key(problem, np.lexsort((-life, -problem.size)).tolist())
    temporal = by_key(problem, np.lexsort((-problem.size, -life)).tolist())
    peaks = [int((np.array(at) + problem.size).max()) for at in (spatial, temporal)]
    plan = mp.solve(problem, "xla_best_fit", "min_peak")
    assert plan.peak == min(peaks)


def test_xla_beats_the_largest_first() -> None:
    """Tests an instance on which the second order counts."""
    found = [
        seed
        for seed in range(40)
        for problem in [generators.synthetic(30, seed).with_capacity(None)]
        if (mp.solve(problem, "xla_best_fit", "min_peak").peak or 0)
        < (mp.solve(problem, "greedy_by_size", "min_peak").peak or 0)
    ]
    assert found


def test_the_skyline_takes_the_most_contended_first() -> None:
    """Tests TelaMalloc, 3.1: contention before size; what is under a small load waits."""
    problem = problem_of((0, 4, 5), (3, 6, 4), (5, 9, 7))  # loads 5, 9, 4, 11, 7
    # b1 and b2 have contention 11, and 7 * 4^2 > 4 * 3^2. So b2 is first; b0 is before b1, as it
    # fits into the lowest row and b1 does not.
    assert offsets_of(problem, "contention_skyline", objective="min_peak") == [0, 7, 0]


# hill_climb ------------------------------------------------------------------------------------


def test_hill_climbing_starts_from_its_order_and_improves() -> None:
    """Tests that more orders are better than the first, on problems of which all are legal."""
    better = 0
    for seed in range(6):
        problem = generators.synthetic(30, seed).with_capacity(None)
        first = mp.solve(problem, "hill_climb", "min_peak", nodes=30)
        best = mp.solve(problem, "hill_climb", "min_peak", nodes=30 * 200)
        mp.verify(problem, first)
        mp.verify(problem, best)
        assert first.peak is not None
        assert best.peak is not None
        assert best.peak <= first.peak
        better += best.peak < first.peak
    assert better >= 3


def test_the_first_order_of_hill_climbing() -> None:
    """Tests one pass: highest load, then longest, then earliest, then largest."""
    problem = problem_of((0, 1, 9), (2, 4, 3), (2, 5, 2), (2, 4, 6))
    # Load 9 for b0, 11 for the rest: b2 (3 long), b3 and b1 (2 long, 6 and 3 bytes), b0.
    plan = mp.solve(problem, "hill_climb", nodes=4)
    assert plan.offsets is not None
    assert plan.offsets.tolist() == [0, 8, 0, 2]


def test_hill_climbing_repeats_itself() -> None:
    """Tests that the seed decides, and that the search ends without a budget."""
    problem = generators.flat_load(24, 3).with_capacity(None)
    plans = [mp.solve(problem, "hill_climb", "min_peak", seed=s) for s in (1, 1, 2)]
    assert plans[0].offsets is not None
    assert plans[1].offsets is not None
    assert plans[0].offsets.tolist() == plans[1].offsets.tolist()
    assert plans[0].stats["nodes"] == plans[1].stats["nodes"]
    assert plans[0].stats["nodes"] != plans[2].stats["nodes"]


@pytest.mark.parametrize("solver", ["tflm_greedy", "hill_climb"])
def test_too_many_pairs_are_not_listed(
    hard: mp.Problem, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a planner that lists pairs says so where there are too many."""
    monkeypatch.setattr("memplan_lab.baselines._pairs._MOST_PAIRS", 10)
    plan = mp.solve(hard, solver)
    assert (plan.status, plan.offsets) == ("unknown", None)
    assert "too many to list" in str(plan.stats["note"])
