"""Tests of the promises that every solver keeps (docs/architecture.md), solver by constraint."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import every_solver
import oracle
import pytest
import strategies
from every_solver import EVERY
from hypothesis import given, settings
from hypothesis import strategies as st

import memplan as mp
from memplan.solvers import registry
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

COMPLETE = ("auto", "exact", "prover")
SLOW = ("mip", "cp_sat", "hill_climb")  # a process or a thread for each, or 500 orders
PAIRS = [every_solver.param(s, c) for s in registry.SOLVERS for c in sorted(strategies.FEATURES)]


def best_peak(problem: mp.Problem, solver: str = "exact") -> int:
    """Return the proved optimum."""
    plan = mp.solve(problem, solver, "min_peak", nodes=1_000_000, threads=1)
    assert plan.status == "optimal"
    mp.verify(problem, plan)
    assert plan.peak is not None
    return plan.peak


def assert_promises(solver: str, problem: mp.Problem) -> None:
    """Assert plan, bound and proofs of one solver for both objectives, or that it refuses."""
    if every_solver.refuses(solver, problem):
        with pytest.raises(mp.UnsupportedError, match=f"{solver} does not support"):
            mp.solve(problem, solver)
        return
    best = oracle.minimum_peak(problem)
    free = best if problem.capacity is None else oracle.minimum_peak(problem.with_capacity(None))
    asked = [("min_peak", problem)]
    if problem.capacity is not None:
        asked.append(("fit", problem))
    elif best is not None and solver not in SLOW:
        asked.append(("fit", problem.with_capacity(best + 3)))
    for objective, question in asked:
        plan = mp.solve(question, solver, objective, nodes=100_000, threads=1)
        assert_claims(question, plan, best, free)
        assert plan.status != "fits" or objective == "fit"
        if solver in COMPLETE and best is None:
            assert plan.status == "infeasible"
        elif solver in COMPLETE:
            assert plan.status in (("optimal", "fits") if objective == "fit" else ("optimal",))


def assert_claims(problem: mp.Problem, plan: mp.Plan, best: int | None, free: int | None) -> None:
    """Assert what a plan says; `best` is the least peak, `free` that without the capacity."""
    assert free is None or plan.lower_bound <= free
    if plan.has_offsets:
        mp.verify(problem, plan)
        assert plan.peak is not None
        assert best is not None
        assert best <= plan.peak
    if plan.status == "optimal":
        assert plan.peak == plan.lower_bound == best
    if plan.status == "fits":
        assert plan.lower_bound < plan.peak
    if plan.status == "infeasible":
        assert best is None


@pytest.mark.parametrize(("solver", "feature"), PAIRS)
def test_every_solver_with_every_constraint(solver: str, feature: str) -> None:
    """Tests plans, bounds and proofs against brute force, one constraint at a time."""

    @settings(max_examples=25 if solver in SLOW else 100)
    @given(problem=strategies.problems(max_buffers=6, features=frozenset({feature, "zero"})))
    def run(problem: mp.Problem) -> None:
        assert_promises(solver, problem)

    run()


@pytest.mark.parametrize(("solver", "feature"), PAIRS)
def test_every_solver_with_conflicts_and_groups(solver: str, feature: str) -> None:
    """Tests the same with explicit conflicts and contiguous groups added to a constraint."""
    features = frozenset({feature, "alignment", "zero"})
    plain = strategies.problems(min_buffers=2, max_buffers=5, features=features)

    @settings(max_examples=25 if solver in SLOW else 60)
    @given(problem=strategies.related(plain))
    def run(problem: mp.Problem) -> None:
        assert_promises(solver, problem)

    run()


@pytest.mark.parametrize("solver", every_solver.OURS)
@pytest.mark.parametrize("extra", [(), (mp.Buffer("c0", 3, 5, 6), mp.Buffer("c1", 2, 5, 9))])
def test_an_empty_member_moves_its_group(solver: str, extra: tuple[mp.Buffer, ...]) -> None:
    """Tests the bound of a group that the alignment of an empty buffer lifts off the bottom."""
    size, unit, best = (3, 7, 20) if extra else (5, 8, 8)
    rows = [mp.Buffer("a", 0, 4, size), mp.Buffer("z", 0, 4, 0, alignment=unit), *extra]
    for members in (["a", "z"], ["z", "a"]):
        problem = mp.Problem(rows, groups=[members])
        for capacity in (None, best, best - 1):
            assert_promises(solver, problem.with_capacity(capacity))
    assert oracle.minimum_peak(mp.Problem(rows, groups=[["a", "z"]])) == best


def test_an_empty_window_is_none() -> None:
    """Tests that a solver that cannot keep windows takes a problem in which they hold nothing."""
    gap = mp.Gap(1, 2, window=(0, 0))
    problem = mp.Problem([mp.Buffer("a", 0, 3, 4, gaps=(gap,)), mp.Buffer("b", 1, 2, 4)])
    assert best_peak(problem, "prover") == 4


@settings(max_examples=60)
@given(problem=strategies.related(strategies.problems(min_buffers=4, max_buffers=6, max_size=4)))
def test_everything_at_once(problem: mp.Problem) -> None:
    """Tests conflicts and groups with any mix of constraints."""
    assert_promises("exact", problem)


@settings(max_examples=40)
@given(problem=strategies.problems(min_buffers=7, max_buffers=7, max_size=3, max_time=6))
def test_seven_buffers(problem: mp.Problem) -> None:
    """Tests the proved optimum of the largest problems that brute force can take."""
    best = oracle.minimum_peak(problem)
    plan = mp.solve(problem, "exact", "min_peak", nodes=1_000_000, threads=1)
    assert plan.status == ("infeasible" if best is None else "optimal")
    assert plan.peak == best


@settings(max_examples=80)
@given(
    problem=strategies.problems(min_buffers=1, features=frozenset({"alignment", "zero"})),
    seed=st.integers(0, 99),
    factor=st.integers(2, 1 << 40),
)
def test_what_changes_nothing_changes_nothing(problem: mp.Problem, seed: int, factor: int) -> None:
    """Tests that shuffled rows, scaled sizes, stretched and reversed time keep the optimum."""
    best = best_peak(problem)
    assert best_peak(problem.shuffled(seed)) == best
    assert best_peak(problem.reversed_in_time()) == best
    stretched = mp.Problem.from_arrays(
        problem.start * 7 - 3, problem.end * 7 - 3, problem.size, alignment=problem.alignment
    )
    assert best_peak(stretched) == best
    scaled = mp.Problem.from_arrays(
        problem.start, problem.end, problem.size * factor, alignment=problem.alignment * factor
    )
    assert best_peak(scaled) == best * factor


@pytest.mark.parametrize("solver", COMPLETE)
def test_rows_in_another_order_take_the_same_nodes(solver: str) -> None:
    """Tests that the search does not depend on the order of the rows of a file."""
    problem = generators.synthetic(40, 3)
    counts = {
        mp.solve(problem.shuffled(seed), "exact", threads=1).stats["nodes"] for seed in range(5)
    }
    assert counts == {mp.solve(problem, "exact", threads=1).stats["nodes"]}
    assert best_peak(problem, solver) == problem.capacity


@pytest.mark.parametrize("seed", range(6))
def test_threads_and_repetition_give_the_same_plan(seed: int) -> None:
    """Tests that a plan and its node count are the same again, and with any number of threads."""
    problem = generators.synthetic(56, seed).with_capacity(None)
    runs = [mp.solve(problem, "exact", nodes=30_000, threads=t, seed=4) for t in (1, 1, 2, 5)]
    assert len({tuple(run.offsets.tolist()) for run in runs if run.offsets is not None}) == 1
    assert len({run.stats["nodes"] for run in runs}) == 1
    assert len({run.status for run in runs}) == 1


@pytest.mark.parametrize("solver", EVERY)
def test_the_deadline_is_kept_with_a_plan_and_a_bound(solver: str) -> None:
    """Tests that a short deadline ends a search, with a legal plan and a valid bound."""
    problem = generators.flat_load(64, 1).with_capacity(None)
    plan = mp.solve(problem, solver, timeout=0.2, threads=1)  # without a deadline: hours
    mp.verify(problem, plan)
    assert plan.peak is not None
    assert problem.max_load <= plan.lower_bound <= plan.peak


@pytest.mark.parametrize("solver", EVERY)
def test_sizes_up_to_the_limit(solver: str) -> None:
    """Tests that loads of 2^62 bytes are planned and that nothing wraps around."""
    half = 1 << 61
    problem = mp.Problem(
        [
            mp.Buffer("a", 0, 2, half - 1),
            mp.Buffer("b", 0, 3, half + 1),
            mp.Buffer("c", 2, 3, half - 9),
        ]
    )
    plan = mp.solve(problem, solver)
    if solver == "bump":  # which would need more than there are
        assert (plan.status, plan.offsets) == ("unknown", None)
        return
    mp.verify(problem, plan)
    assert (plan.status, plan.peak) == ("optimal", 1 << 62)


# The worked examples of the sources --------------------------------------------------------------


def orders_of(offsets: list[int], lives: list[tuple[int, int]], size: int) -> list[tuple[int, ...]]:
    """Return the orders of placing that lead to these offsets (MiniMalloc, section 2.3)."""
    found = []
    for order in permutations(range(len(lives))):
        placed: dict[int, int] = {}
        for b in order:
            tops = [
                placed[o] + size
                for o in placed
                if lives[o][0] < lives[b][1] and lives[b][0] < lives[o][1]
            ]
            placed[b] = max(tops, default=0)
        if [placed[b] for b in range(len(lives))] == offsets:
            found.append(order)
    return found


def test_the_eight_isomorphic_solutions(five: mp.Problem, five_offsets: list[int]) -> None:
    """Tests Table 1 of MiniMalloc: 8 orders, 4 offset monotonic, 3 index monotonic, 1 both."""
    lives = [(b.start, b.end) for b in five.buffers]
    orders = orders_of(five_offsets, lives, 4)
    by_offset = {o for o in orders if sorted(o, key=lambda b: five_offsets[b]) == list(o)}
    by_index = {
        order
        for order in orders
        if all(
            a < b
            for i, a in enumerate(order)
            for b in order[i + 1 :]
            if five_offsets[a] == five_offsets[b]
        )
    }
    assert (len(orders), len(by_offset), len(by_index)) == (8, 4, 3)
    assert by_offset & by_index == {(4, 2, 3, 0, 1)}  # b5, b3, b4, b1, b2


def test_canonical_solutions_only_is_fewer_nodes() -> None:
    """Tests that the switches of MiniMalloc prune the refutation of a capacity too small by one."""
    tight = generators.flat_load(20, 3)
    tight = tight.with_capacity(best_peak(tight.with_capacity(None)) - 1)

    def nodes(**switches: bool) -> int:
        plan = mp.solve(tight, "minimalloc", nodes=300_000, **switches)
        assert plan.status in ("infeasible", "unknown")
        count = plan.stats["nodes"]
        assert isinstance(count, int)
        return count

    assert nodes() < nodes(canonical=False)
    assert nodes() < nodes(section_inference=False)
    assert nodes() <= nodes(dominance=False)


@pytest.mark.parametrize("solver", EVERY)
def test_the_example_of_the_course(solver: str) -> None:
    """Tests static memory planning: 330 KB without sharing, 230 KB planned."""
    problem = mp.Problem(
        [
            mp.Buffer("T1", 0, 10, 100_000),
            mp.Buffer("T2", 2, 12, 50_000),
            mp.Buffer("T3", 3, 8, 80_000),
            mp.Buffer("T4", 10, 15, 100_000),
        ]
    )
    plan = mp.solve(problem, solver)
    mp.verify(problem, plan)
    assert int(problem.size.sum()) == 330_000
    best = ("feasible", 330_000) if solver == "bump" else ("optimal", 230_000)
    assert (plan.status, plan.peak) == best


# Real problems ----------------------------------------------------------------------------------


def test_generated_problems_are_solved_to_their_known_optimum() -> None:
    """Tests a slice of the synthetic suite, which knows its optimum by construction."""
    for n in range(20, 61, 8):
        for seed in range(3):
            problem = generators.synthetic(n, seed)
            plan = mp.solve(problem, "exact", nodes=200_000, threads=1)
            mp.verify(problem, plan)
            assert plan.status == "optimal"


CHALLENGING = Path(__file__).parents[2] / ".." / "shared" / "data" / "challenging"


@pytest.mark.skipif(not CHALLENGING.is_dir(), reason="the published instances are not here")
@pytest.mark.parametrize(("solver", "most"), [("exact", 5_000), ("minimalloc", 250_000)])
def test_the_challenging_instances_take_few_nodes(solver: str, most: int) -> None:
    """Tests node counts on the published instances; for `exact`, on their variants as well."""
    for path in sorted(CHALLENGING.glob("*.csv")):
        problem = mp.load(path, capacity=1 << 20).problem
        variants = [problem]
        if solver == "exact":
            variants += [problem.reversed_in_time(), problem.shuffled(1)]
        for variant in variants:
            plan = mp.solve(variant, solver, nodes=most, threads=1)
            mp.verify(variant, plan)
            assert plan.status.has_plan
