"""Tests of `memplan.explain`, with brute force in place of the solvers and with the solvers."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import oracle
import pytest
import strategies
from explained import assert_irreducible, brute_force
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memplan import solvers
from memplan.analysis.explain import explain
from memplan.analysis.inspection import inspect
from memplan.base.errors import ProblemError
from memplan.problem import Buffer, Problem, Reserved
from memplan.problem.loads import capacity_for
from memplan.problem.plan import Plan, Status
from memplan_lab.bench import generators

Solve = Callable[..., Plan]

module = importlib.import_module("memplan.analysis.explain")


@pytest.fixture(params=["brute force", "solvers"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: with the oracle, and with our solvers."""
    if request.param == "brute force":
        monkeypatch.setattr(solvers, "solve", brute_force, raising=False)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Solve], list[Problem]]:
    """Return a function that puts a solver in place, and returns the list of what it is asked."""

    def install(solve: Solve) -> list[Problem]:
        asked: list[Problem] = []

        def record(problem: Problem, **options: object) -> Plan:
            asked.append(problem)
            return solve(problem, **options)

        monkeypatch.setattr(solvers, "solve", record, raising=False)
        return asked

    return install


@pytest.fixture
def stuck() -> Problem:
    """Return a problem of load 8 that does not fit into 8: a pin at 3 leaves no hole of 5."""
    return Problem(
        [
            Buffer("pinned", start=0, end=4, size=1, pin=3),
            Buffer("wide", start=0, end=4, size=5),
            Buffer("innocent", start=4, end=9, size=8),
            Buffer("small", start=0, end=2, size=1),
        ],
        capacity=8,
    )


@pytest.fixture
def jagged() -> Problem:
    """Return eight buffers of load 6 that need 7, found by brute force, and two others."""
    lives = [(4, 6, 2), (2, 6, 2), (3, 5, 1), (5, 7, 2), (0, 2, 3), (1, 4, 1), (1, 5, 1), (2, 3, 2)]
    rows = [Buffer(f"b{i}", *life) for i, life in enumerate(lives)]
    return Problem([Buffer("early", -3, 0, 6), *rows, Buffer("late", 7, 9, 5)], capacity=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(strategies.problems(min_buffers=1, max_buffers=5), st.data())
def test_every_claim_is_true(solver: None, problem: Problem, data: st.DataObject) -> None:
    """Tests verdict, amounts, sections and subset against brute force."""
    problem = problem.with_capacity(None)
    best = oracle.minimum_peak(problem)
    assert best is not None
    fixed = int((problem.pin + problem.size).max())
    lowest = max(1, fixed if problem.has_pins else 0)
    capacity = data.draw(st.integers(lowest, max(lowest, best + 2)))
    found = explain(problem, capacity)

    assert found.fits is (oracle.fit(problem, capacity) is not None)
    assert found.proved
    assert found.required <= best
    assert found.sufficient is not None
    assert found.sufficient >= best
    assert found.excess == max(0, found.required - capacity)
    assert (found.excess > 0) is not found.fits
    assert found.max_load == oracle.load(problem)
    assert bool(found.sections) is (oracle.load(problem) > found.available)
    if found.subset:
        assert_irreducible(problem.with_capacity(capacity), found)
    else:
        assert found.fits or found.sections


SHAPED = frozenset({"alignment", "pins", "reserved", "gaps", "windows"})


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    max_examples=50,
)
@given(strategies.problems(min_buffers=2, max_buffers=6, features=SHAPED))
def test_every_subset_beyond_the_load_is_irreducible(solver: None, problem: Problem) -> None:
    """Tests misfits that no section explains: one byte less than the smallest peak."""
    best = oracle.minimum_peak(problem)
    assert best is not None
    floor = max(oracle.trivial_bound(problem), capacity_for(problem.reserved, problem.max_load))
    assume(best > floor)
    found = explain(problem, best - 1)
    assert (found.fits, found.sections, found.required) == (False, (), best)
    assert_irreducible(problem.with_capacity(best - 1), found)


def test_a_problem_that_fits_says_how_much_is_spare(solver: None, five: Problem) -> None:
    """Tests the answer for the example of MiniMalloc in more than it needs."""
    found = explain(five, 20)
    assert found.fits
    assert (found.capacity, found.available, found.max_load, found.excess) == (20, 20, 12, 0)
    assert (found.sections, found.subset) == ((), ())


def test_a_section_at_fault_names_its_buffers(solver: None, five: Problem) -> None:
    """Tests amounts, times and buffers where the load alone is too high."""
    found = explain(five, 10)
    assert found.fits is False
    assert (found.required, found.available, found.excess) == (12, 10, 2)
    assert found.sufficient == 12
    assert found.section_count == 1
    (section,) = found.sections
    assert (section.start, section.end) == (0, 9)
    assert (section.peak_start, section.peak_end) == (0, 3)
    assert (section.load, section.excess) == (12, 2)
    assert [each.id for each in section.buffers] == ["b1", "b3", "b5"]
    assert found.subset == ()


def test_sections_at_fault_come_worst_first_and_ten_at_most(solver: None) -> None:
    """Tests the order of the sections, and that the rest is counted."""
    rows = [Buffer(str(t), start=2 * t, end=2 * t + 1, size=10 + t % 7) for t in range(15)]
    found = explain(Problem(rows), 9)
    assert found.section_count == 15
    assert [section.load for section in found.sections] == [16] * 2 + [15] * 2 + [14] * 2 + [
        13
    ] * 2 + [12] * 2
    assert [section.start for section in found.sections[:2]] == [12, 26]


def test_reserved_ranges_are_not_available(solver: None) -> None:
    """Tests that what is reserved below the capacity counts against it, and what is above not."""
    rows = [Buffer("a", 0, 2, 4), Buffer("b", 1, 3, 4)]
    found = explain(Problem(rows, reserved=[Reserved(4, 7), Reserved(20, 30)]), 10)
    assert (found.available, found.required, found.sufficient) == (7, 11, 11)
    assert (found.sections[0].excess, found.excess) == (1, 1)


def test_one_buffer_beyond_the_capacity_is_enough(solver: None) -> None:
    """Tests that a buffer that is too large is named though it never holds all of itself."""
    problem = Problem.from_arrays(
        [0, 0], [2, 2], [9, 1], ids=["large", "small"], gaps=([0], [0], [2], [0], [3])
    )
    found = explain(problem, 8)
    assert (found.fits, found.subset, found.irreducible) == (False, ("large",), True)
    assert (found.required, found.max_load, found.sections) == (9, 4, ())


def test_beyond_the_load_the_subset_has_only_what_is_needed(solver: None, stuck: Problem) -> None:
    """Tests that a proof sheds the buffers that it does not need."""
    found = explain(stuck)
    assert (found.fits, found.sections, found.max_load) == (False, (), 8)
    assert found.subset == ("wide", "pinned")
    assert found.required == found.sufficient == 9
    assert_irreducible(stuck, found)


def test_buffers_without_any_constraint_may_need_more_than_the_load(
    solver: None, jagged: Problem
) -> None:
    """Tests the subset of a misfit that is a matter of shapes alone."""
    found = explain(jagged)
    assert (found.fits, found.max_load, found.excess) == (False, 6, 1)
    assert set(found.subset) == {f"b{i}" for i in range(8)}
    assert_irreducible(jagged, found)


def test_a_conflict_of_the_solver_saves_trials(
    answers: Callable[[Solve], list[Problem]], stuck: Problem
) -> None:
    """Tests that shrinking starts from what the solver's proof names."""

    def named(problem: Problem, **options: object) -> Plan:
        plan = brute_force(problem, **options)  # type: ignore[arg-type]
        if plan.status is not Status.INFEASIBLE:
            return plan
        return Plan.of(
            problem, None, status=plan.status, conflict=["wide", "pinned"], stats=plan.stats
        )

    asked = answers(named)
    assert explain(stuck).subset == ("wide", "pinned")
    trials = [set(problem.ids) for problem in asked[2:]]
    assert trials == [{"wide"}, {"pinned"}]


def test_a_budget_that_ends_while_shrinking_is_said(
    answers: Callable[[Solve], list[Problem]], stuck: Problem
) -> None:
    """Tests that what is left is infeasible, and is not called irreducible."""
    asked = answers(brute_force)
    found = explain(stuck, nodes=1)
    assert (found.fits, found.irreducible) == (False, False)
    assert len(asked) == 3  # the question, the smallest capacity, one trial
    assert {"wide", "pinned"} <= set(found.subset)


def test_a_trial_without_an_answer_keeps_the_buffer(
    answers: Callable[[Solve], list[Problem]], stuck: Problem
) -> None:
    """Tests that a buffer is dropped for a proof only, never for want of an answer."""

    def shy(problem: Problem, **options: object) -> Plan:
        if options.get("solver") == "exact":
            return Plan.of(problem, None, status=Status.UNKNOWN)
        return brute_force(problem, **options)  # type: ignore[arg-type]

    answers(shy)
    found = explain(stuck)
    assert set(found.subset) == set(stuck.ids)
    assert not found.irreducible


def give_up(problem: Problem, **_: object) -> Plan:
    """Answer that nothing was found."""
    return Plan.of(problem, None, status=Status.UNKNOWN, lower_bound=7)


def test_unknown_is_not_called_a_misfit(
    answers: Callable[[Solve], list[Problem]], stuck: Problem
) -> None:
    """Tests that a budget without an answer is neither a fit nor a proof."""
    answers(give_up)
    found = explain(stuck)
    assert (found.fits, found.proved, found.excess) == (None, False, 0)
    assert (found.required, found.sufficient) == (8, None)


@pytest.mark.parametrize(
    ("peak", "bound", "fits"), [(8, 8, True), (9, 9, False), (10, 8, None), (9, 8, None)]
)
def test_the_search_for_the_smallest_peak_may_settle_it(
    answers: Callable[[Solve], list[Problem]], five: Problem, peak: int, bound: int, fits: bool
) -> None:
    """Tests the verdict where only the second search finds something."""
    tall = Problem([Buffer("a", 0, 1, 8), Buffer("b", 1, 2, 1)], capacity=8)

    def second(problem: Problem, *, objective: str, **_: object) -> Plan:
        if objective == "fit":
            return give_up(problem)
        return Plan.of(problem, [0, peak - 1], lower_bound=bound)

    answers(second)
    found = explain(tall)
    assert (found.fits, found.required, found.sufficient) == (fits, bound, peak)
    assert found.subset == ()


def test_time_is_shared_and_ends(
    answers: Callable[[Solve], list[Problem]],
    stuck: Problem,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that each question gets a part of the time, and that none is asked after its end."""
    clock = 100.0
    given_time: list[object] = []

    def slow(problem: Problem, **options: object) -> Plan:
        nonlocal clock
        given_time.append(options["timeout"])
        clock += 4.0
        return brute_force(problem, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module.time, "monotonic", lambda: clock)
    answers(slow)
    found = explain(stuck, timeout=10.0)
    assert given_time == [5.0, 3.0, 2.0]
    assert (found.fits, found.irreducible) == (False, False)


def test_the_answer_is_the_same_every_time(solver: None, stuck: Problem) -> None:
    """Tests that a node budget gives equal explanations, whatever the order of the rows."""
    assert explain(stuck) == explain(stuck) == explain(stuck.shuffled(3))


def test_without_a_capacity_there_is_nothing_to_explain(five: Problem) -> None:
    """Tests the sentence for a problem without a capacity."""
    with pytest.raises(ProblemError, match="capacity"):
        explain(five.with_capacity(None))


def test_one_answer_where_the_optimum_is_known() -> None:
    """Tests that a first fit above the least peak is no second answer, in `inspect` as well."""
    above = 0
    for seed in range(12):
        problem = generators.nn_like(60, seed)
        least = solvers.solve(problem.with_capacity(None), nodes=200_000)
        assert least.status == "optimal"
        assert least.peak is not None
        roomy = problem.with_capacity(2 * least.peak)
        above += solvers.solve(roomy).peak != least.peak
        for found in (explain(roomy), inspect(roomy).shortage):
            assert found is not None
            assert (found.fits, found.required, found.sufficient) == (True, least.peak, least.peak)
    assert above > 0


@settings(max_examples=60)
@given(problem=strategies.related(strategies.problems(max_buffers=6)), capacity=st.integers(1, 30))
def test_inspect_has_one_answer(problem: Problem, capacity: int) -> None:
    """Tests that the plan, its bound and the answer about a capacity are of one mind."""
    assume(int((problem.pin + problem.size).max(initial=0)) <= capacity)
    found = inspect(problem.with_capacity(capacity))
    shortage = found.shortage
    assert shortage is not None
    assert shortage.sufficient == found.plan.peak
    if shortage.required is not None:
        assert shortage.required == found.lower_bound
        assert shortage.fits == (oracle.fit(problem, capacity) is not None)
