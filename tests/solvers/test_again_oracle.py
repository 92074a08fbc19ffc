"""Tests of re-runs against all states of small programs, and of their certificates."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import again_oracle as oracle
import numpy as np
import pytest
from rounds import rounds

import memplan as mp
from memplan import _core
from memplan.levers.rewrite.again.native import (
    bound_certificate_of,
    core_recompute_problem,
    floor_certificate_of,
    order_certificate_of,
)
from memplan.problem import GivenOrderBound, RecomputeProblem
from memplan.referee import verify_recompute

pytestmark = pytest.mark.slow

RULES = tuple(_core.recompute_rules())
DEEP_PARTS, DEEP_PART = rounds(2, 20), 1_000


def search(
    problem: RecomputeProblem, capacity: int, without: tuple[str, ...] = (), nodes: int = 400
) -> _core.RecomputeResult:
    """Return what the core finds."""
    columns = core_recompute_problem(problem)
    return _core.recompute(columns, capacity, None, nodes, True, list(without))


def search_each_way(problem: RecomputeProblem, capacity: int) -> list[int]:
    """Return what moves alone and re-runs alone cost, where they are found."""
    stays, once = np.full_like(problem.move, -1), np.zeros_like(problem.again)
    parts = (
        search(replace(problem, **part), capacity) for part in ({"move": stays}, {"again": once})
    )
    return [found.extra for found in parts if found.runs]


def compare(seed: int, moves: bool = False) -> Counter[str]:
    """Compare the core with the cheapest way through all states; return what happened."""
    random = Random(seed)
    problem = oracle.random_program(random, 6 if moves else 7, moves)
    states = oracle.States(problem)
    alone = verify_recompute(problem, None, 0).floor
    given = states.load(range(len(problem)))
    capacity = random.randint(min(alone, given), given)
    without = ((), *((rule,) for rule in RULES), RULES)[seed % (len(RULES) + 2)]
    found = search(problem, capacity, without)
    least = states.least_extra(capacity)
    claim = verify_recompute(
        problem,
        found.runs or None,
        capacity,
        peak=found.peak if found.runs else None,
        extra=found.extra if found.runs else None,
        bound=found.bound,
        certificate=bound_certificate_of(found),
        floor=found.floor,
        floor_certificate=floor_certificate_of(found),
    )
    assert claim.floor >= found.floor
    if least is None:
        assert not found.runs
        assert found.status in ("infeasible", "unknown")
        return Counter(programs=1, infeasible=1)
    assert found.status != "infeasible"
    assert found.floor <= capacity
    assert found.bound <= least
    assert not found.runs or found.bound <= least <= found.extra
    assert (found.status == "optimal") == (bool(found.runs) and found.bound == found.extra)
    whole = not without
    if moves and whole:
        either = search_each_way(problem, capacity)
        assert not either or (found.runs and found.extra <= min(either))
    return Counter(
        programs=1,
        costs=least > 0,
        whole=whole,
        all_equal=whole and bool(found.runs) and found.bound == least == found.extra,
    )


def compare_in_order(seed: int) -> Counter[str]:
    """Compare the bound for the given order with all states, and falsify its certificate."""
    random = Random(seed)
    problem = oracle.random_program(random, moves=seed % 3 == 0)
    states = oracle.States(problem, in_order=True)
    alone = verify_recompute(problem, None, 0).floor
    given = states.load(range(len(problem)))
    capacity = random.randint(min(alone, given), given)
    columns = core_recompute_problem(problem)
    found = _core.recompute(columns, capacity, None, 400, False, [] if seed % 2 else ["repair"])
    least = states.least_extra(capacity)
    certificate = order_certificate_of(found)
    claim = verify_recompute(
        problem,
        found.runs or None,
        capacity,
        extra=found.extra if found.runs else None,
        certificate=bound_certificate_of(found),
        order_bound=found.order_bound,
        order_certificate=certificate,
    )
    assert claim.order_bound >= found.order_bound >= found.bound
    assert found.status != "infeasible" or least is None
    assert (found.status == "optimal") == (bool(found.runs) and found.order_bound == found.extra)
    seen = Counter(programs=1, costs=bool(least))
    if least is None:
        assert not found.runs
    else:
        assert found.order_bound <= claim.order_bound <= least
        assert not found.runs or least <= found.extra
        seen["all_equal"] += bool(found.runs) and found.order_bound == least == found.extra
        seen["possible"] += 1
    if certificate is not None:
        seen["certificates"] += 1
        for _ in range(6):
            seen[falsify(problem, certificate, capacity, least, random)] += 1
    return seen


def falsify(
    problem: RecomputeProblem,
    certificate: GivenOrderBound,
    capacity: int,
    least: int | None,
    random: Random,
) -> str:
    """Change a certificate at random, and check that nothing false is believed of it."""
    leaves = list(certificate.leaves)
    at = random.randrange(len(leaves))
    leaf, needs = leaves[at], leaves[at].needs.copy()
    changes: dict[str, Any] = {}
    change = random.choice(("moments", "scale", "prices", "cases", "impossible", "row", "needs"))
    if change == "moments":
        moments = list(certificate.moments)
        moments[random.randrange(len(moments))] += random.choice((-1, 1))
        changes["moments"] = tuple(moments)
    elif change == "scale":
        name = random.choice(("unit", "scale", "shift"))
        changes[name] = getattr(certificate, name) + random.choice((-1, 1))
    elif change == "prices":
        more = random.choice((-1, 1, max(leaf.prices), -max(leaf.prices) - 1))
        leaf = replace(leaf, prices=(leaf.prices[0] + more, *leaf.prices[1:]))
    elif change == "cases" and len(leaves) > 1 and random.random() < 0.5:
        leaf = leaves[at - 1]
    elif change == "cases":
        decision = (random.randint(0, 40), random.random() < 0.5)
        leaf = replace(leaf, decisions=(*leaf.decisions, decision))
    elif change == "impossible":
        leaf = replace(leaf, impossible=not leaf.impossible)
    elif change == "row":
        row = [random.randint(0, 2), random.randint(-1, 12), random.randint(0, 6), 2**40]
        leaf = replace(leaf, needs=np.vstack((needs, [row])))
    elif len(needs):
        row = random.randrange(len(needs))
        needs[row, random.randrange(4)] += random.choice((-1, 1, 2, 2**40))
        leaf = replace(leaf, needs=needs)
    leaves[at] = leaf
    changed = replace(certificate, leaves=tuple(leaves), **changes)
    try:
        claim = verify_recompute(problem, None, capacity, order_certificate=changed)
    except mp.ProofError:
        return "refused"
    assert least is None or claim.order_bound <= least
    return "true"


def test_the_given_order() -> None:
    """Tests a sample: the bound is true, nearly always met, and no falsified one is false."""
    seen = sum((compare_in_order(seed) for seed in range(250)), Counter[str]())
    assert min(seen["costs"], seen["certificates"]) > 10
    assert min(seen["refused"], seen["true"]) > 5
    assert seen["all_equal"] >= 0.9 * seen["possible"]


def test_random_programs() -> None:
    """Tests a sample, in which re-runs cost something, and nearly all are proved."""
    seen = sum((compare(seed) for seed in range(400)), Counter[str]())
    assert seen["programs"] == 400
    assert min(seen["costs"], seen["infeasible"]) > 10
    assert seen["all_equal"] >= 0.9 * seen["whole"]


def test_random_programs_that_move() -> None:
    """Tests storages that move out and back, beside re-runs and alone."""
    seen = sum((compare(seed, True) for seed in range(250)), Counter[str]())
    assert seen["costs"] > 30
    assert seen["all_equal"] >= 0.9 * seen["whole"]


def test_a_budget_gives_the_same_answer() -> None:
    """Tests that a search that ends early is valid, and is the same again."""
    for seed in range(40):
        random = Random(seed)
        problem = oracle.random_program(random)
        capacity = verify_recompute(problem, None, 0).floor
        nodes = random.randint(1, 20)
        first, second = (search(problem, capacity, nodes=nodes) for _ in range(2))
        assert (first.runs, first.bound, first.status, first.nodes) == (
            *(second.runs, second.bound, second.status, second.nodes),
        )
        least = oracle.States(problem).least_extra(capacity)
        assert least is None or first.bound <= least


@pytest.mark.deep
@pytest.mark.parametrize("part", range(DEEP_PARTS))
def test_many_in_the_given_order(part: int) -> None:
    """Tests thousands of them, and ten thousand falsified certificates in all."""
    parts = range(part * DEEP_PART, (part + 1) * DEEP_PART)
    seen = sum((compare_in_order(seed) for seed in parts), Counter[str]())
    assert seen["refused"] + seen["true"] == 6 * seen["certificates"]
    assert seen["all_equal"] >= 0.9 * seen["possible"]


@pytest.mark.deep
@pytest.mark.parametrize("part", range(DEEP_PARTS))
def test_many_random_programs(part: int) -> None:
    """Tests thousands of them, half of which move storages."""
    seen = sum(
        (compare(seed, seed % 2 == 1) for seed in range(part * DEEP_PART, (part + 1) * DEEP_PART)),
        Counter[str](),
    )
    assert seen["all_equal"] >= 0.95 * seen["whole"]
