"""Tests of plans in which sharing costs, from Python: constraints, wrong inputs, the referee."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import memplan as mp
from memplan.base.errors import FormatError, MemplanError, PlanError
from memplan.machine.apart import plan_apart
from memplan.referee import verify_apart

TILES = [mp.Buffer(name, at, at + 1, 8) for at, name in enumerate("abc")]
PRICES = {("a", "b"): 5, ("b", "c"): 5, ("a", "c"): 2}


def least_cost(problem: mp.Problem, prices: Mapping[tuple[str, str], int]) -> int | None:
    """Return the least cost over all plans, by trying all, or nothing."""
    assert problem.capacity is not None
    best = None
    ways = [range(problem.capacity - size + 1) for size in problem.size.tolist()]
    for offsets in itertools.product(*ways):
        plan = mp.Plan.of(problem, offsets)
        try:
            mp.verify(problem, plan)
        except PlanError:
            continue
        lower, size = plan.offset, dict(zip(problem.ids, problem.size.tolist(), strict=True))
        cost = sum(
            price
            for (a, b), price in prices.items()
            if lower(a) < lower(b) + size[b] and lower(b) < lower(a) + size[a]
        )
        best = cost if best is None else min(best, cost)
    return best


def test_the_cheapest_pair_shares() -> None:
    """Tests that the plan pays the least penalty, with the smallest peak at that."""
    found = plan_apart(mp.Problem(TILES), PRICES, capacity=20)
    assert (found.cost, found.bound, found.status) == (2, 2, mp.Status.OPTIMAL)
    assert found.met == (("a", "c"),)
    assert found.plan.peak == found.peak_bound == 16
    assert found.verify() == 2


def test_enough_capacity_costs_nothing() -> None:
    """Tests that all pairs lie apart where there is room."""
    found = plan_apart(mp.Problem(TILES, capacity=24), PRICES)
    assert (found.cost, found.met, found.plan.peak) == (0, (), 24)


@pytest.mark.parametrize("seed", range(12))
def test_all_constraints_hold(seed: int) -> None:
    """Tests costs against all plans, with pins, gaps, groups, conflicts and reserved ranges."""
    draw = random.Random(seed)
    buffers = []
    for name in "abcd":
        start = draw.randrange(5)
        end = start + draw.randint(1, 3)
        gaps = (mp.Gap(start + 1, start + 2),) if end - start == 3 else ()
        buffers.append(mp.Buffer(name, start, end, draw.randint(1, 4), gaps=gaps))
    if seed % 3 == 0:
        buffers[3] = replace_pin(buffers[3], 2)
    problem = mp.Problem(
        buffers,
        capacity=7,
        reserved=[mp.Reserved(0, 1)] if seed % 4 == 1 else [],
        conflicts=[("a", "b")] if seed % 4 == 2 else [],
        groups=[["a", "c"]] if seed % 4 == 3 else [],
    )
    prices = {}
    for pair in itertools.combinations("abcd", 2):
        try:
            plan_apart(problem, {pair: 1})
        except MemplanError:
            continue  # they live together
        prices[pair] = draw.randint(0, 4)
    found = plan_apart(problem, prices)
    best = least_cost(problem, prices)
    if best is None:
        assert found.status is mp.Status.INFEASIBLE
        assert not found.plan.has_offsets
    else:
        assert (found.cost, found.bound) == (best, best)


def replace_pin(buffer: mp.Buffer, pin: int) -> mp.Buffer:
    """Return a buffer with a pin."""
    return mp.Buffer(
        buffer.id, buffer.start, buffer.end, buffer.size, pin=pin, gaps=tuple(buffer.gaps)
    )


def test_nothing_fits() -> None:
    """Tests that `infeasible` names buffers that cannot be placed together."""
    problem = mp.Problem([mp.Buffer("a", 0, 2, 5), mp.Buffer("b", 1, 3, 5)], capacity=9)
    found = plan_apart(problem, {})
    assert found.status is mp.Status.INFEASIBLE
    assert set(found.plan.conflict) == {"a", "b"}


def test_few_nodes_give_the_same_plan_and_a_bound() -> None:
    """Tests that a budget in nodes gives one answer, with a bound below it."""
    draw = random.Random(1)
    buffers = [mp.Buffer(f"t{i}", i, i + 1, draw.choice((2, 4))) for i in range(16)]
    prices = {
        (f"t{i}", f"t{j}"): draw.randint(1, 9) for i, j in itertools.combinations(range(16), 2)
    }
    one, other = (
        plan_apart(mp.Problem(buffers), prices, capacity=12, nodes=3000) for _ in range(2)
    )
    assert one.plan == other.plan
    assert one.cost == other.cost
    assert 0 < one.bound <= one.cost
    assert one.nodes < 200_000


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [
        ({("a", "x"): 1}, 'there is no buffer "x"'),
        ({("a", "a"): 1}, 'buffer "a" has a penalty with itself; name two buffers'),
        (
            {("a", "b"): -1},
            'the penalty of "a" and "b" is -1; it must be a whole number, 0 or more',
        ),
        ({("a", "b"): 1.5}, 'the penalty of "a" and "b" is 1.5; it must be a whole number'),
        ({("a", "b"): 1, ("b", "a"): 1}, 'buffers "b" and "a" have two penalties'),
        ({("b", "d"): 1}, 'buffers "b" and "d" hold memory at the same time'),
        ({("a", "b"): 1 << 53}, "all penalties together must be below 2^53"),
        ({"ab": 1}, "penalties are of pairs of ids"),
    ],
)
def test_wrong_penalties(prices: dict[tuple[str, str], int], sentence: str) -> None:
    """Tests that each wrong penalty is refused in a sentence, from Python and from a file."""
    problem = mp.Problem([*TILES, mp.Buffer("d", 1, 3, 8)], capacity=16)
    with pytest.raises(MemplanError, match="^" + sentence.replace("^", r"\^")):
        plan_apart(problem, prices)


def test_a_capacity_is_needed() -> None:
    """Tests that penalties without a capacity are refused."""
    with pytest.raises(MemplanError, match="penalties need a capacity"):
        plan_apart(mp.Problem(TILES), PRICES)


def test_penalties_from_a_file(tmp_path: Path) -> None:
    """Tests that a table gives the same answer, and that errors name its line."""
    file = tmp_path / "pairs.csv"
    file.write_text("first,second,cost\na,b,5\n\nb, c,5\n".replace(" ", "") + "a,c,2\n")
    assert plan_apart(mp.Problem(TILES), file, capacity=16).cost == 2
    for text, sentence in (
        ("a,b,c\n", "pairs.csv:1: the first line must be: first,second,cost"),
        ("first,second,cost\na,b\n", "pairs.csv:2: a line must have two buffers and their cost"),
        ("first,second,cost\na,b,1\na,c,-2\n", 'pairs.csv:3: the penalty of "a" and "c" is "-2"'),
        ("first,second,cost\na,y,1\n", 'pairs.csv:2: there is no buffer "y"'),
    ):
        file.write_text(text)
        with pytest.raises(FormatError, match=sentence):
            plan_apart(mp.Problem(TILES), file, capacity=16)


def test_the_referee_counts_again() -> None:
    """Tests that a wrong cost, a wrong bound and a wrong plan are refused."""
    found = plan_apart(mp.Problem(TILES), PRICES, capacity=16)
    problem, plan = found.problem, found.plan
    with pytest.raises(PlanError, match="is said to cost 1, but it costs 2"):
        verify_apart(problem, PRICES, plan, 1)
    with pytest.raises(PlanError, match="below the bound 3"):
        verify_apart(problem, PRICES, plan, 2, 3)
    with pytest.raises(PlanError, match="below the bound 17"):
        verify_apart(problem, PRICES, plan, 2, 2, 17)
    with pytest.raises(PlanError, match='names "x"'):
        verify_apart(problem, {("a", "x"): 1}, plan, 0)
    with pytest.raises(PlanError, match="capacity"):
        replace(found, plan=mp.Plan.of(problem, [0, 8, 16])).verify()
