"""Tests of the mixed-integer program: the model without HiGHS, and what is made of its answers."""

from __future__ import annotations

import subprocess
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import oracle
import pytest
import strategies
from every_solver import is_missing
from hypothesis import assume, given, settings

import memplan as mp
from memplan.solvers.run import Run
from memplan_lab.baselines import _highs, mip
from memplan_lab.baselines._highs import Known
from memplan_lab.baselines._mip_model import model_of, point_of, unit_of
from memplan_lab.baselines._pairs import conflicting_pairs, place_lowest
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

needs_highs = pytest.mark.skipif(is_missing("mip"), reason="highspy is not installed")

KEPT = frozenset({"capacity", "alignment", "pins", "reserved", "gaps", "hints", "zero"})


@pytest.fixture
def jagged() -> mp.Problem:
    """Return eight buffers of load 6 that need 7, found by brute force."""
    lives = [(4, 6, 2), (2, 6, 2), (3, 5, 1), (5, 7, 2), (0, 2, 3), (1, 4, 1), (1, 5, 1), (2, 3, 2)]
    return mp.Problem([mp.Buffer(f"b{i}", *life) for i, life in enumerate(lives)])


@pytest.fixture
def hard() -> mp.Problem:
    """Return sixty-four buffers that HiGHS does not settle for minutes."""
    return generators.flat_load(64, 1).with_capacity(None)


# The model -------------------------------------------------------------------------------------


@given(problem=strategies.problems(max_buffers=8, features=KEPT))
def test_pairs_are_those_that_meet(problem: mp.Problem) -> None:
    """Tests the sweep against times one by one."""
    rows = range(len(problem))
    held = [{time for time, bits in oracle.held_by_time(problem, row) if bits} for row in rows]
    expected = {(a, b) for a, b in combinations(rows, 2) if held[a] & held[b]}
    pairs = conflicting_pairs(problem, 1000)
    assert pairs is not None
    assert set(zip(*(column.tolist() for column in pairs), strict=True)) == expected
    assert len(pairs[0]) == len(expected)
    assert not expected or conflicting_pairs(problem, 0) is None


@settings(max_examples=200)
@given(problem=strategies.problems(min_buffers=1, max_buffers=8, features=KEPT))
def test_a_legal_plan_is_a_point_of_the_model(problem: mp.Problem) -> None:
    """Tests that no constraint of the program cuts a plan off, and that each is there."""
    plan = mp.solve(problem, nodes=10_000, threads=1)
    assume(plan.has_offsets)
    assert plan.offsets is not None
    assert plan.peak is not None
    pairs = conflicting_pairs(problem, 1000)
    assert pairs is not None
    unit = unit_of(problem)
    model = model_of(problem, pairs, bound=plan.lower_bound, top=plan.peak, scale=1)

    def breaks(offsets: np.ndarray) -> bool:
        point = point_of(problem, pairs, offsets, scale=1)
        ends = np.append(model.row_begin, len(model.column))
        rows = [
            float(model.value[a:b] @ point[model.column[a:b]]) for a, b in pairwise(ends.tolist())
        ]
        whole = point[model.whole]
        return bool(
            (point < model.lower).any()
            or (point > model.upper).any()
            or (np.array(rows) > model.row_upper).any()
            or (whole != np.round(whole)).any()
        )

    assert not breaks(plan.offsets)
    for row in range(len(problem)):
        for step in (-unit, unit):  # anything between is left to the placing in whole units
            moved = plan.offsets.copy()
            moved[row] += step
            assert breaks(moved) != oracle.is_legal(problem, moved.tolist(), plan.peak)


@settings(max_examples=200)
@given(problem=strategies.problems(max_buffers=8, features=KEPT))
def test_in_the_order_of_a_plan_no_buffer_comes_out_higher(problem: mp.Problem) -> None:
    """Tests that placing again by a plan's offsets is legal, and moves no buffer up."""
    plan = mp.solve(problem, nodes=10_000, threads=1)
    assume(plan.has_offsets)
    assert plan.offsets is not None
    pairs = conflicting_pairs(problem, 1000)
    assert pairs is not None
    offsets = place_lowest(problem, np.argsort(plan.offsets, kind="stable").tolist(), pairs)
    assert oracle.is_legal(problem, offsets, problem.capacity)
    assert all(a <= b for a, b in zip(offsets, plan.offsets.tolist(), strict=True))


@settings(max_examples=60)
@given(problem=strategies.problems(min_buffers=1, max_buffers=5, features=KEPT - {"zero"}))
def test_offsets_are_whole_numbers_of_a_unit(problem: mp.Problem) -> None:
    """Tests that some best plan has multiples of the unit only."""
    scaled = mp.Problem.from_arrays(
        problem.start,
        problem.end,
        problem.size * 3,
        alignment=np.where(problem.alignment > 1, problem.alignment * 3, 1),
        pin=np.where(problem.pin >= 0, problem.pin * 3, -1),
        gaps=[
            problem.gap_buffer,
            problem.gap_start,
            problem.gap_end,
            problem.gap_lower,
            problem.gap_upper,
        ],
        reserved=[(block.lower * 3, block.upper * 3) for block in problem.reserved],
    )
    assert unit_of(scaled) == 3 * unit_of(problem)
    best = oracle.minimum_peak(scaled)
    assert best is not None
    assert best % unit_of(scaled) == 0


# HiGHS -----------------------------------------------------------------------------------------


@needs_highs
def test_an_alignment_beyond_the_capacity_refutes_nothing() -> None:
    """Tests that an aligned buffer which fits at 0 only is placed there, and not refuted."""
    problem = mp.Problem.from_arrays(
        [0, 1, 0, 6], [6, 7, 2, 8], [2, 3, 1, 1], alignment=[64, 4, 1, 1], capacity=7
    )
    found = mp.solve(problem, solver="mip")
    assert (found.status, found.peak) == ("optimal", 7)
    mp.verify(problem, found)


@pytest.mark.parametrize("start", [True, False])
@settings(max_examples=30)
@given(problem=strategies.problems(max_buffers=6, features=KEPT))
def test_small_problems_are_solved_to_the_optimum(start: bool, problem: mp.Problem) -> None:
    """Tests the program against brute force, with and without a plan to begin at."""
    best = oracle.minimum_peak(problem)
    plan = mp.solve(problem, "mip", "min_peak", start=start)
    assert (plan.status, plan.peak) == ("infeasible" if best is None else "optimal", best)
    if plan.has_offsets:
        mp.verify(problem, plan)


@needs_highs
@pytest.mark.parametrize("start", ["on", "off"])
def test_above_the_load(jagged: mp.Problem, start: str) -> None:
    """Tests a bound that is HiGHS's own, and a capacity that it refutes."""
    plan = mp.solve(jagged, f"mip:start={start}")
    mp.verify(jagged, plan)
    assert mp.lower_bound(jagged) == 6
    assert (plan.status, plan.peak, plan.lower_bound) == ("optimal", 7, 7)
    plan = mp.solve(jagged.with_capacity(6), f"mip:start={start}")
    assert (plan.status, plan.peak, plan.stats["note"]) == ("infeasible", None, "refuted by HiGHS")


def run_of(problem: mp.Problem) -> Run:
    """Return a call of the planner without limits."""
    return Run(
        problem,
        solver="mip",
        minimize=True,
        seconds=None,
        nodes=None,
        seed=0,
        options={},
        progress=None,
    )


@pytest.mark.parametrize(
    ("bound", "slack", "learnt"),
    [(2.0, 0.0, 8), (2.0, 0.1, 8), (2.2, 0.1, 12), (2.05, 0.1, 8), (2.9, 2.0, 6), (-1.0, 0.0, 6)],
)
def test_a_bound_is_what_tolerances_leave(
    jagged: mp.Problem, bound: float, slack: float, learnt: int
) -> None:
    """Tests the step to whole units of 4 bytes; our own bound of 6 is never lowered."""
    run = run_of(jagged)
    pairs = conflicting_pairs(jagged, 1000)
    assert pairs is not None
    mip._learn(run, Known(bound * 2, 0, None, None), pairs, bytes=2.0, unit=4, slack=slack)
    assert run.bound == learnt
    run.offer([0, 2, 4, 0, 0, 4, 5, 5], "a plan")  # of 7 bytes: stronger than any claim
    mip._learn(run, Known(99.0, 0, None, None), pairs, bytes=2.0, unit=4, slack=slack)
    assert run.bound == 7


@pytest.mark.parametrize(("slack", "status"), [(0.4, "infeasible"), (0.5, "unknown")])
def test_a_refutation_is_believed_where_tolerances_leave_it(
    jagged: mp.Problem, slack: float, status: str
) -> None:
    """Tests that "infeasible" is only answered with a proof."""
    run = run_of(jagged.with_capacity(6))
    pairs = conflicting_pairs(jagged, 1000)
    assert pairs is not None
    mip._learn(run, Known(None, 0, None, "Infeasible"), pairs, bytes=1.0, unit=1, slack=slack)
    assert run.plan().status == status


@needs_highs
def test_sizes_that_no_double_holds_claim_nothing(jagged: mp.Problem) -> None:
    """Tests that what tolerances could hide is not called proved."""
    odd = mp.Problem.from_arrays(jagged.start, jagged.end, jagged.size * (1 << 55) + 1)
    plan = mp.solve(odd, "mip", nodes=200)
    mp.verify(odd, plan)
    exact = mp.solve(odd, "exact")
    assert plan.peak is not None
    assert exact.peak is not None
    assert plan.lower_bound <= exact.peak <= plan.peak
    assert plan.status == "feasible"


@needs_highs
def test_the_nodes_are_those_of_highs(jagged: mp.Problem) -> None:
    """Tests that a node budget gives the same plan again."""
    runs = [mp.solve(jagged, "mip", nodes=20, seed=3, start=False) for _ in range(2)]
    assert runs[0].stats["nodes"] == runs[1].stats["nodes"]
    assert runs[0].offsets is not None
    assert runs[1].offsets is not None
    assert runs[0].offsets.tolist() == runs[1].offsets.tolist()


@needs_highs
def test_a_deadline_ends_the_process(hard: mp.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what was found until then is kept, and that nothing goes on in the background."""
    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def remember(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        begun.append(popen(*arguments, **named))  # type: ignore[call-overload]
        return begun[-1]

    monkeypatch.setattr(_highs.subprocess, "Popen", remember)
    plan = mp.solve(hard, "mip", timeout=0.5)
    mp.verify(hard, plan)
    assert plan.status == "feasible"
    assert [child.returncode is not None for child in begun] == [True]


@needs_highs
def test_ctrl_c_gives_the_best_plan(hard: mp.Problem) -> None:
    """Tests that an interrupt while HiGHS is at work has the plan that it began at."""

    def soon(progress: mp.Progress) -> None:
        if progress.seconds > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(mp.Interrupted) as caught:
        mp.solve(hard, "mip", progress=soon)
    mp.verify(hard, caught.value.plan)


@needs_highs
def test_too_many_pairs_are_not_begun(hard: mp.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the plan to begin at is the answer where HiGHS would be lost."""
    monkeypatch.setattr(mip, "_MOST_PAIRS", 10)
    plan = mp.solve(hard, "mip")
    assert plan.peak == mp.solve(hard, "greedy_by_size").peak
    assert plan.stats["note"] == "more than 10 pairs conflict: too many for HiGHS"


@needs_highs
@pytest.mark.parametrize(
    ("program", "sentence"),
    [("raise SystemExit('no licence')", "no licence"), ("pass", "no word")],
)
def test_a_highs_that_fails_is_an_error(
    jagged: mp.Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, sentence: str
) -> None:
    """Tests that its last word is handed on."""
    child = tmp_path / "child.py"
    child.write_text(program)
    monkeypatch.setattr(_highs, "_CHILD", child)
    with pytest.raises(mp.MemplanError, match=f"HiGHS ended without an answer: {sentence}"):
        mp.solve(jagged, "mip")


@needs_highs
@pytest.mark.parametrize("value", ["yes", 1, ["on"]])
def test_start_is_on_or_off(jagged: mp.Problem, value: object) -> None:
    """Tests that something else is refused."""
    with pytest.raises(mp.MemplanError, match="start of mip must be True or False"):
        mp.solve(jagged, "mip", start=value)
