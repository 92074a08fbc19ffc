"""Tests of policies that a caller gives to the search of telamalloc."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import memplan as mp
from memplan.extensions.published.policy import Policy, State
from memplan.solvers import registry

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy" / "heaviest_first.py"


def make_problem(seed: int, count: int = 30, percent: int = 103) -> mp.Problem:
    """Return random buffers, in part aligned or pinned, with a capacity just above the load."""
    random = np.random.default_rng(seed)
    start = random.integers(0, 40, count)
    size = random.integers(1, 64, count)
    alignment = 1 << random.integers(0, 4, count) if seed % 2 else None
    problem = mp.Problem.from_arrays(
        start, start + random.integers(1, 20, count), size, alignment=alignment
    )
    return problem.with_capacity(mp.lower_bound(problem) * percent // 100)


class Largest(Policy):
    """Place the largest buffer next, and note every state."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.impasses: list[State] = []

    def choose(self, state: State) -> int:
        """Answer as the class says."""
        self.states.append(state)
        return int(state.candidates[np.argmax(state.problem.size[state.candidates])])

    def go_back(self, state: State) -> int | None:
        """Answer as the class says."""
        self.impasses.append(state)
        return None


class Random(Policy):
    """Choose blocks, offsets and levels at random, and sometimes give up."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def choose(self, state: State) -> int | tuple[int, int] | None:
        """Answer as the class says."""
        if self.random.random() < 0.05:
            return None
        at = int(self.random.integers(len(state.candidates)))
        row, lower, upper = (
            int(column[at]) for column in (state.candidates, state.lower, state.upper)
        )
        if self.random.random() < 0.5:
            return row
        alignment = int(state.problem.alignment[row])
        return row, int(self.random.integers(lower // alignment, upper // alignment + 1)) * (
            alignment
        )

    def go_back(self, state: State) -> int | None:
        """Answer as the class says."""
        if self.random.random() < 0.7:
            return None
        return int(self.random.integers(len(state.placed)))


class Answers(Policy):
    """Give the same answers each time, or raise them."""

    def __init__(self, choice: object, level: object = None, after: int = 0) -> None:
        self.choice, self.level, self.after = choice, level, after

    def choose(self, state: State) -> int:
        """Answer as the class says."""
        if len(state.placed) < self.after:
            return int(state.candidates[0])
        if isinstance(self.choice, BaseException):
            raise self.choice
        return self.choice  # type: ignore[return-value]

    def go_back(self, state: State) -> int | None:
        """Answer as the class says."""
        if isinstance(self.level, BaseException):
            raise self.level
        return self.level  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(6))
def test_a_state_is_what_the_docstring_says(seed: int) -> None:
    """Tests shapes, kinds and ranges of each state, and that the plan has what was placed last."""
    problem = make_problem(seed)
    policy = Largest()
    plan = mp.solve(problem, "telamalloc", nodes=500, policy=policy)
    assert len(policy.impasses) == plan.stats["major_backtracks"]
    assert len(policy.states) <= plan.stats["nodes"] <= len(policy.states) + len(problem)
    for state in (*policy.states, *policy.impasses):
        assert state.problem is problem
        assert state.capacity == problem.capacity
        for column in (
            *(state.placed, state.offsets, state.candidates, state.lower, state.upper),
            *(state.failed, state.culprits),
        ):
            assert column.dtype == np.int64
            assert column.ndim == 1
            assert not (column.size and column.flags.writeable)
        assert state.placed.shape == state.offsets.shape
        assert state.candidates.shape == state.lower.shape == state.upper.shape
        rows = [*state.placed, *state.candidates, *state.failed]
        assert len(set(rows)) == len(rows)
        assert np.all(np.diff(state.candidates) > 0)
        assert np.all((state.lower >= 0) & (state.lower <= state.upper))
        assert np.all(state.upper + problem.size[state.candidates] <= state.capacity)
        assert np.all(state.lower % problem.alignment[state.candidates] == 0)
        assert np.all((state.culprits >= 0) & (state.culprits < len(state.placed)))
    assert all(len(state.candidates) for state in policy.states)
    assert all(len(state.placed) for state in policy.impasses)
    if plan.has_offsets:
        mp.verify(problem, plan)
        last = policy.states[-1]
        assert [plan.offsets[row] for row in last.placed] == list(last.offsets)
        assert len(last.candidates) + len(last.failed) == 1


def test_reasons_of_failures_leave_no_solution() -> None:
    """Tests with `exact` that a failed buffer fits nowhere the culprits leave at its offset."""
    seen = 0
    for seed in range(0, 40, 2):
        problem = make_problem(seed, count=12, percent=100)
        policy = Largest()
        mp.solve(problem, "telamalloc", nodes=200, policy=policy)
        # At the first failure of a point, the buffer was tried at the lowest offset just before.
        for before, state in zip(policy.states, policy.states[1:], strict=False):
            if (
                len(state.failed) != 1
                or len(before.failed)
                or len(before.placed) != len(state.placed)
            ):
                continue
            at = list(before.candidates).index(state.failed[0])
            pin = np.full(len(problem), -1)
            pin[state.placed[state.culprits]] = state.offsets[state.culprits]
            pin[state.failed[0]] = before.lower[at]
            fixed = mp.Problem.from_arrays(
                problem.start, problem.end, problem.size, pin=pin, capacity=problem.capacity
            )
            assert mp.solve(fixed, "exact", "fit").status is mp.Status.INFEASIBLE
            seen += 1
    assert seen > 5


def test_random_policies_give_valid_plans() -> None:
    """Tests that plans under random choices pass the referee, and that none claims too much."""
    found = 0
    for seed in range(60):
        problem = make_problem(seed, count=14, percent=125)
        assert mp.solve(problem, "exact", "fit").has_offsets
        plan = mp.solve(problem, "telamalloc", "fit", nodes=400, policy=Random(seed))
        assert plan.status is not mp.Status.INFEASIBLE
        if plan.has_offsets:
            mp.verify(problem, plan)
            found += 1
    assert found > 30


def test_a_policy_serves_the_least_peak() -> None:
    """Tests that a search for the least peak asks the policy for several capacities."""
    problem = make_problem(3).with_capacity(None)
    policy = Largest()
    plan = mp.solve(problem, "telamalloc", nodes=2_000, policy=policy)
    mp.verify(problem, plan)
    assert plan.has_offsets
    assert {state.capacity for state in policy.states} >= {plan.lower_bound}


def test_a_policy_decides_where_and_how_far() -> None:
    """Tests an offset within the range, and a return to the top."""
    problem = mp.Problem.from_arrays([0, 0, 0], [2, 2, 2], [2, 3, 4], capacity=12)

    class Top(Policy):
        def choose(self, state: State) -> tuple[int, int]:
            return int(state.candidates[-1]), int(state.upper[-1])

    assert list(mp.solve(problem, "telamalloc", policy=Top()).offsets) == [3, 5, 8]

    depths = []

    class Restart(Policy):
        def choose(self, state: State) -> int | None:
            depths.append(len(state.placed))
            return None if depths == [0, 1, 2] else int(state.candidates[0])

        def go_back(self, state: State) -> int:
            return 0

    assert mp.solve(problem, "telamalloc", policy=Restart()).has_offsets
    assert depths == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Answers("b1"), 'the policy chose "b1"; choose must return a row, a row and an offset'),
        (Answers(1.0), "the policy chose 1.0; choose must"),
        (Answers(True), "the policy chose True; choose must"),
        (Answers((1, 2, 3)), "the policy chose a tuple; choose must"),
        (Answers((1, "2")), "the policy chose a tuple; choose must"),
        (Answers(99), "the policy chose row 99, which is not one of its candidates"),
        (Answers(-1), "the policy chose row -1, which is not one of its candidates"),
        (Answers(1 << 80), f"the policy chose row {1 << 80}, which is not"),
        (Answers((1, 13)), 'the offset 13 for buffer "b1", which must be from 0 to 12'),
        (Answers((1, -1)), 'the offset -1 for buffer "b1", which must be from 0 to 12'),
        (Answers((1, 1 << 80)), f"the offset {1 << 80} for buffer"),
        (Answers((0, 2)), "the policy chose offset 2 for row 0, which its alignment or a reserved"),
        (Answers(None, 1, after=1), "the policy went back to 1; go_back must return None or an"),
        (Answers(None, -1, after=1), "the policy went back to -1; go_back must"),
        (Answers(None, "top", after=1), 'the policy went back to "top"; go_back must'),
    ],
)
def test_a_wrong_answer_is_one_sentence(policy: Policy, sentence: str) -> None:
    """Tests that the answer is named, with what it must be."""
    problem = mp.Problem.from_arrays(
        [0, 0, 0], [2, 2, 2], [4, 4, 4], alignment=[4, 1, 1], ids=["b0", "b1", "b2"], capacity=16
    )
    with pytest.raises(mp.MemplanError) as caught:
        mp.solve(problem, "telamalloc", policy=policy)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "given", [True, "largest", len, Largest, lambda state: 0], ids=lambda given: str(given)[:8]
)
def test_what_is_no_policy(given: object) -> None:
    """Tests that another object is refused, and what the command line may give."""
    with pytest.raises(mp.MemplanError, match="the option policy of telamalloc is"):
        mp.solve(make_problem(0), "telamalloc", policy=given)
    with pytest.raises(mp.MemplanError, match="which the command line cannot give"):
        mp.solve(make_problem(0), "telamalloc:policy=on")
    assert mp.solve(make_problem(0, percent=200), "telamalloc", policy=False).has_offsets
    assert ("policy", "off") in {row[:2] for row in registry.options_of("telamalloc")}


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), SystemExit(3)])
@pytest.mark.parametrize("where", ["choose", "go_back"])
def test_an_exception_comes_out_as_it_is(error: BaseException, where: str) -> None:
    """Tests that the very object is raised, and that the search has ended."""
    policy = Answers(error) if where == "choose" else Answers(None, error, after=1)
    with pytest.raises(type(error)) as caught:
        mp.solve(make_problem(1), "telamalloc", policy=policy)
    assert caught.value is error
    assert mp.solve(make_problem(1, percent=200), "telamalloc", policy=Largest()).has_offsets


def test_limits_hold() -> None:
    """Tests the budget of nodes, and the clock while a policy is slow."""
    problem = make_problem(5, count=60, percent=100)
    assert mp.solve(problem, "telamalloc", nodes=20, policy=Largest()).stats["nodes"] <= 20

    import time

    class Slow(Largest):
        def choose(self, state: State) -> int:
            time.sleep(0.01)
            return super().choose(state)

    policy = Slow()
    plan = mp.solve(problem, "telamalloc", timeout=0.1, policy=policy)
    assert plan.status is mp.Status.UNKNOWN
    assert len(policy.states) <= 11


def test_an_interrupt_has_the_plan_so_far() -> None:
    """Tests Ctrl-C in the policy's own code: the plan that greedy made before is kept."""
    with pytest.raises(mp.Interrupted) as caught:
        mp.solve(
            make_problem(3).with_capacity(None), "telamalloc", policy=Answers(KeyboardInterrupt())
        )
    assert caught.value.plan.has_offsets


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_ctrl_c_ends_a_search_with_a_policy() -> None:
    """Tests a signal while the search runs under a policy that never finds anything."""
    program = """
import signal
import numpy as np
import memplan as mp
from memplan.extensions.published.policy import Policy
class First(Policy):
    def choose(self, state):
        return int(state.candidates[0])
random = np.random.default_rng(1)
start = random.integers(0, 40, 300)
problem = mp.Problem.from_arrays(start, start + 9, random.integers(1, 640, 300))
problem = problem.with_capacity(mp.lower_bound(problem))
mp.solve([], "telamalloc")  # loads what the search needs
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    mp.solve(problem, "telamalloc", policy=First())
    print("ended")
except mp.Interrupted as stop:
    print("interrupted", stop.plan.status)
"""
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.startswith("interrupted unknown"), run.stdout + run.stderr


def test_a_call_may_solve_within_a_policy() -> None:
    """Tests that a policy may call solvers itself, with policies of their own."""
    inner = make_problem(2, percent=200)

    class Nested(Largest):
        def choose(self, state: State) -> int:
            if not self.states:
                assert mp.solve(inner, "telamalloc", policy=Largest()).has_offsets
            return super().choose(state)

    assert mp.solve(make_problem(4, percent=200), "telamalloc", policy=Nested()).has_offsets


@pytest.mark.skipif(not EXAMPLE.is_file(), reason="examples are not installed")
def test_the_example_plans() -> None:
    """Tests that the example runs, and that most of its problems are solved under its policy."""
    run = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()[1:]
    assert len(lines) == 8
    assert sum(line.endswith("(optimal)") for line in lines) >= 6
