"""Tests of the choice of the most valuable buffers, against every subset and the referee."""

from __future__ import annotations

import random

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import memplan as mp
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

FEATURES = frozenset({"alignment", "pins", "reserved", "gaps", "windows", "zero"})


def most_valuable(
    problem: mp.Problem, benefits: dict[str, int], capacity: int, must: set[str]
) -> int | None:
    """Return what the best choice is worth, by trying every subset; None where none fits."""
    best = None
    for bits in range(1 << len(problem)):
        rows = [row for row in range(len(problem)) if bits >> row & 1]
        ids = [problem.ids[row] for row in rows]
        worth = sum(benefits.get(id, 0) for id in ids)
        if must <= set(ids) and (best is None or worth > best):
            part = problem.subset(np.array(rows, dtype=np.int64))
            if oracle.fit(part, capacity) is not None:
                best = worth
    return best


@st.composite
def questions(draw: st.DrawFn) -> tuple[mp.Problem, dict[str, int], int, set[str]]:
    """Draw a problem, benefits, a capacity and buffers that must be chosen."""
    problem = draw(problems(max_buffers=6, max_size=5, max_time=6, features=FEATURES))
    benefits = {id: draw(st.integers(0, 9)) for id in problem.ids}
    must = {id for id in problem.ids if draw(st.integers(0, 5)) == 0}
    return problem.with_capacity(None), benefits, draw(st.integers(1, 14)), must


@settings(max_examples=150, deadline=None)
@given(questions())
def test_the_choice_is_that_of_brute_force(
    question: tuple[mp.Problem, dict[str, int], int, set[str]],
) -> None:
    """Tests value, bound, status and plan for any mix of constraints."""
    problem, benefits, capacity, must = question
    best = most_valuable(problem, benefits, capacity, must)
    found = mp.pack_most_valuable(problem, benefits, capacity, must=must)
    if best is None:
        assert (found.status, found.plan, found.chosen) == ("infeasible", None, ())
        return
    assert found.plan is not None
    mp.verify(found.problem, found.plan)
    assert found.problem.capacity == capacity
    assert found.plan.peak is not None
    assert found.plan.peak <= capacity
    assert must <= set(found.chosen)
    assert found.value == sum(benefits[id] for id in found.chosen)
    assert (found.value, found.bound, found.status) == (best, best, "optimal")


def network(count: int) -> tuple[mp.Problem, dict[str, int]]:
    """Return a network's buffers, each worth a few times its size."""
    problem = generators.nn_like(count, 3)
    chance = random.Random(count)
    sizes = zip(problem.ids, problem.size.tolist(), strict=True)
    return problem, {id: size * chance.randint(1, 8) for id, size in sizes}


def greedy_value(problem: mp.Problem, benefits: dict[str, int], capacity: int) -> int:
    """Return what falling density alone comes to, with a fresh solve for every buffer."""
    length = (problem.end - problem.start).tolist()
    area = {id: s * t for id, s, t in zip(problem.ids, problem.size.tolist(), length, strict=True)}
    taken: list[mp.Buffer] = []
    for id in sorted(benefits, key=lambda id: -benefits[id] / area[id]):
        trial = [*taken, problem.buffer(id)]
        if mp.solve(mp.Problem(trial, capacity), nodes=500).has_offsets:
            taken = trial
    return sum(benefits[buffer.id] for buffer in taken)


def test_it_beats_greedy_by_density() -> None:
    """Tests a network in half of the memory that it needs, and how near the bound it comes."""
    problem, benefits = network(120)
    capacity = mp.lower_bound(problem) // 2
    found = mp.pack_most_valuable(problem, benefits, capacity)
    assert found.plan is not None
    mp.verify(found.problem, found.plan)
    assert found.value > greedy_value(problem, benefits, capacity)
    assert found.value <= found.bound
    assert found.gap < 0.1


def test_the_same_question_gets_the_same_answer() -> None:
    """Tests that seeds decide, and nothing else."""
    problem, benefits = network(60)
    capacity = mp.lower_bound(problem) // 3
    first, second = (
        mp.pack_most_valuable(problem, benefits, capacity, nodes=20_000, seed=5) for _ in range(2)
    )
    assert (first.chosen, first.value, first.bound, first.nodes) == (
        second.chosen,
        second.value,
        second.bound,
        second.nodes,
    )
    assert first.plan == second.plan


def test_more_memory_is_never_worth_less() -> None:
    """Tests small problems, where the answer is the best, under rising capacities."""
    problem, benefits = network(14)
    top = mp.lower_bound(problem)
    found = [
        mp.pack_most_valuable(problem, benefits, max(1, top * part // 8)) for part in range(1, 10)
    ]
    assert all(each.status == "optimal" for each in found)
    values = [each.value for each in found]
    assert values == sorted(values)
    assert values[-1] == sum(benefits.values())


def test_a_budget_ends_it_with_what_there_is() -> None:
    """Tests that little work gives a choice that is valid, with a bound."""
    problem, benefits = network(120)
    found = mp.pack_most_valuable(problem, benefits, mp.lower_bound(problem) // 2, nodes=40)
    assert found.plan is not None
    mp.verify(found.problem, found.plan)
    assert 0 < found.value < found.bound
    assert found.status == "feasible"
    assert found.nodes < 4000


def test_a_pin_above_the_capacity_is_not_chosen() -> None:
    """Tests that it is no mistake, unless the buffer must be chosen."""
    problem = mp.Problem([mp.Buffer("a", 0, 4, 4, pin=8), mp.Buffer("b", 0, 4, 4)])
    found = mp.pack_most_valuable(problem, {"a": 9, "b": 1}, capacity=8)
    assert (found.chosen, found.bound, found.status) == (("b",), 1, "optimal")
    forced = mp.pack_most_valuable(problem, {"a": 9, "b": 1}, capacity=8, must=["a"])
    assert forced.status == "infeasible"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"benefits": {"x": 1}}, 'no buffer has the id "x"'),
        ({"benefits": {"a": -1}}, "must not be negative"),
        ({"benefits": {"a": 0.5}}, "whole number"),
        ({"benefits": {"a": 1 << 63}}, "coarser unit"),
        ({"capacity": 0}, "capacity is 0"),
        ({"capacity": None}, "needs a capacity"),
        ({"must": ["x"]}, 'no buffer has the id "x"'),
        ({"nodes": 0}, "nodes is 0"),
        ({"timeout": -1}, "timeout is -1"),
    ],
)
def test_mistakes_are_one_sentence(arguments: dict[str, object], sentence: str) -> None:
    """Tests bad arguments."""
    problem = mp.Problem([mp.Buffer("a", 0, 4, 4)])
    given = {"benefits": {"a": 1}, "capacity": 8} | arguments
    with pytest.raises(mp.MemplanError, match=sentence):
        mp.pack_most_valuable(problem, **given)  # type: ignore[arg-type]


def test_conflicts_are_refused_by_name() -> None:
    """Tests what a repacker does not keep."""
    problem = mp.Problem([mp.Buffer("a", 0, 1, 1), mp.Buffer("b", 2, 3, 1)], conflicts=[("a", "b")])
    with pytest.raises(mp.UnsupportedError, match="conflicts"):
        mp.pack_most_valuable(problem, {"a": 1, "b": 1}, capacity=1)
