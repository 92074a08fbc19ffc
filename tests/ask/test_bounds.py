"""Tests that what an answer says is proved holds for all that the levers could do, by trying it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations, product
from random import Random

import pytest
from oracle import minimum_peak
from rounds import rounds

import memplan as mp
from memplan.base.errors import InfeasibleError, MemplanError
from memplan.levers.rewrite.again import NoRunsError
from memplan.levers.rewrite.stored import put_in_order
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph
from memplan.scenarios.together.planning import join_programs, plan_alone
from memplan.solvers.planning import SharedBudget, layouts


def draw_program(random: Random, *, fewest: int = 2, most: int = 4) -> Loaded:
    """Return a tiny program, of which most operators may write over an input."""
    count = random.randint(fewest, most)
    tensors = [Tensor("t0", random.randint(1, 5), Kind.INPUT)]
    operators: list[Operator] = []
    for at in range(count):
        inputs = tuple(sorted(random.sample(range(at + 1), min(at + 1, random.randint(1, 2)))))
        tensors.append(Tensor(f"t{at + 1}", random.randint(1, 5)))
        over = tuple((each, at + 1) for each in inputs if random.random() < 0.7)[:1]
        operators.append(Operator(f"op{at}", "CONV", inputs, (at + 1,), in_place=over))
    read = {each for operator in operators for each in operator.inputs}
    wanted = tuple(at for at in range(1, count + 1) if at not in read)
    for at in wanted:
        tensors[at] = replace(tensors[at], kind=Kind.OUTPUT)
    return of_graph(Graph("tiny", tuple(tensors), tuple(operators), (0,), wanted))


def list_ways(given: Loaded, levers: Sequence[str]) -> Iterator[Loaded]:
    """Yield all programs that the levers could make; of re-runs, those with one more."""
    graph = given.graph
    assert graph is not None
    numbers = range(len(graph.operators))
    orders: list[tuple[int, ...]] = [tuple(numbers)]
    if "order" in levers or "again" in levers:
        orders = [*permutations(numbers)]
    if "again" in levers:
        for number in (1,):
            for more in combinations(numbers, number):
                orders += set(permutations((*numbers, *more)))
    for order in orders:
        try:
            moved = put_in_order(given, list(order))
        except MemplanError:
            continue  # an operator would run before what it reads, or again for no reader
        yield from layouts(moved, in_place=True)[: 2 if "in place" in levers else 1]
    if given.in_place:
        yield given


def find_least(given: Loaded, levers: Sequence[str]) -> int:
    """Return the smallest peak of all ways, by brute force."""
    problems = {each.problem.fingerprint: each.problem for each in list_ways(given, levers)}
    peaks = (minimum_peak(each.with_capacity(None)) for each in problems.values())
    return min(peak for peak in peaks if peak is not None)


def check_claims(answer: mp.Answer, least: int, capacity: int | None) -> None:
    """Check status and bound of an answer against the truth."""
    axis = answer.axes[0]
    assert axis.bound <= least
    if axis.found is not None:
        assert axis.found >= least
        assert not axis.is_proved or axis.found == least
        assert answer.status is not mp.Status.OPTIMAL or axis.found == least
    if answer.status is mp.Status.INFEASIBLE:
        assert capacity is not None
        assert least > capacity
        assert all(part.plan.status is mp.Status.INFEASIBLE for part in answer)


LEVERS = [(), ("order",), ("in place",), ("again",), ("in place", "order")]
LEVERS += [("in place", "again"), ("again", "order")]


@pytest.mark.parametrize("levers", LEVERS, ids=" ".join)
@pytest.mark.parametrize("was_in_place", [False, True])
def test_claims_hold_for_all_that_levers_can_do(
    levers: tuple[str, ...], was_in_place: bool
) -> None:
    """Tests tiny programs, with and without a capacity at and below what they need."""
    for seed in range(rounds(2, 200) if "again" in levers else rounds(6, 1000)):
        random = Random(seed)
        loaded = draw_program(random, most=2 if "again" in levers else 4)
        if was_in_place:
            loaded = layouts(loaded, in_place=True)[-1]
        least, proved = find_least(loaded, levers), [1]
        for capacity in (None, least, least - 1):
            if capacity == 0 or (capacity is None and "again" in levers):
                continue
            try:
                answer = mp.plan(loaded, levers=levers, capacity=capacity, threads=1)
            except NoRunsError:
                proved.append(least - (capacity or 0))
                continue
            answer.verify()
            check_claims(answer, least, capacity)
        assert min(proved) > 0


@pytest.mark.parametrize("levers", [("order",), ("in place", "order"), ("again",)], ids=" ".join)
def test_claims_hold_for_programs_in_turn(levers: tuple[str, ...]) -> None:
    """Tests two tiny programs that keep their results, or run at the same time."""
    for seed in range(rounds(4, 400)):
        random = Random(seed)
        most = 2 if "again" in levers else 3
        programs = [draw_program(random, most=most), draw_program(random, most=2)]
        overlap = [("a", "b")] if seed % 3 == 0 else []
        keep = ["outputs"] if seed % 2 else []
        joined = (
            join_by_hand(pair, keep, bool(overlap))
            for pair in product(*(list_ways(each, levers) for each in programs))
        )
        problems = {problem.fingerprint: problem for problem in joined}
        least = min(mp.solve(problem, threads=1).peak or 0 for problem in problems.values())
        proved: list[int] = []
        for capacity in (least, least - 1):
            try:
                answer = mp.plan(
                    programs,
                    names=["a", "b"],
                    keep=keep,
                    overlap=overlap,
                    levers=levers,
                    capacity=capacity,
                    threads=1,
                )
            except InfeasibleError:
                proved.append(least - capacity)
                continue
            except mp.NoPlanError:
                continue
            check_claims(answer, least, capacity)
        assert min(proved, default=1) > 0


def join_by_hand(pair: Sequence[Loaded], keep: Sequence[str], overlaps: bool) -> mp.Problem:
    """Return two programs as one problem."""
    alone = [
        plan_alone(name, each, SharedBudget(None, 100), 2)
        for name, each in zip("ab", pair, strict=True)
    ]
    return join_programs(alone, keep, ((0, 1),) if overlaps else (), None).problem


@pytest.mark.parametrize("levers", [("order",), ("in place",), ()], ids=" ".join)
def test_other_axes_say_what_their_bound_is_of(levers: tuple[str, ...]) -> None:
    """Tests that blocks, penalties and traffic of chosen programs are no proof for all."""
    fast, slow = mp.Memory("fast", 5, 0, 0, block=4), mp.Memory("slow")
    for seed in range(6):
        loaded = draw_program(Random(seed))
        block = int(loaded.problem.size.max())
        for machine in (mp.Machine(block=block), mp.Machine((fast, slow))):
            found = mp.plan(loaded, machine=machine, levers=levers, threads=1)
            for axis in found.axes:
                assert bool(axis.scope) == (bool(levers) or " in " in axis.name)
            assert not levers or found.status is not mp.Status.OPTIMAL
