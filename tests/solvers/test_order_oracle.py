"""Tests of the search for orders against all states of small programs, and of its promises."""

from __future__ import annotations

import contextlib
import signal
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import order_oracle as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rounds import rounds

from memplan import _core
from memplan.problem import OrderBound, OrderProblem
from memplan.referee import verify_order

pytestmark = pytest.mark.slow

RULES = tuple(_core.order_rules())


def search(
    problem: OrderProblem,
    *,
    seconds: float | None = None,
    states: int | None = None,
    without: tuple[str, ...] = (),
) -> _core.OrderResult:
    """Return what the core finds."""
    columns = _core.OrderProblem(
        problem.workspace,
        np.ascontiguousarray(problem.arcs[:, 0]),
        np.ascontiguousarray(problem.arcs[:, 1]),
        problem.size,
        problem.given.view(np.uint8),
        problem.wanted.view(np.uint8),
        problem.user_begin,
        problem.user,
        problem.in_place.ravel(),
    )
    return _core.best_order(columns, seconds, states, list(without))


def assert_referee_agrees(problem: OrderProblem, found: _core.OrderResult) -> None:
    """Assert that an order is legal, that its peak is its own, and that a flow shows its bound."""
    certificate = bound = None
    if found.operator >= 0:
        flow = np.array(found.flow, dtype=np.int64).reshape(-1, 3)
        certificate, bound = OrderBound(found.operator, tuple(found.done), flow), found.bound
    claim = verify_order(
        problem, found.order, peak=found.peak, bound=bound, certificate=certificate
    )
    assert found.bound <= claim.peak
    assert (found.status == "optimal") == (found.bound == found.peak)


def mirrored(problem: OrderProblem) -> OrderProblem:
    """Return the program that runs backwards, without in-place pairs."""
    last = len(problem) - 1
    columns = zip(problem.size, problem.given, problem.wanted, strict=True)
    return oracle.program(
        problem.workspace[::-1],
        [(last - second, last - first) for first, second in problem.arcs.tolist()],
        [
            (size, [last - user for user in problem.users(storage)], wanted, given)
            for storage, (size, given, wanted) in enumerate(columns)
        ],
    )


def compare(number: int, most: int = 12) -> Counter[str]:
    """Compare the core with the table of all states, on one random program; return what happened.

    The whole search, without each rule in turn; a search that ends early; and the same backwards.
    """
    random = Random(number)
    problem = oracle.random_program(random, most)
    states = oracle.States(problem)
    least = states.least_peak()
    assert least == states.least_peak_backwards()
    without = ((), *((rule,) for rule in RULES), RULES)[number % (len(RULES) + 2)]
    found = search(problem, without=without)
    assert (found.peak, found.bound, found.status) == (least, least, "optimal")
    assert_referee_agrees(problem, found)
    given = range(len(problem))
    if states.peak(given) == least:
        assert found.order == [*given]

    budget = random.choice((1, 2, 5, 20))
    early = search(problem, states=budget, without=without)
    assert early.bound <= least <= early.peak <= states.peak(given)
    assert_referee_agrees(problem, early)

    back = mirrored(problem)
    least_back = oracle.States(back).least_peak()
    if not len(problem.in_place):
        assert least_back == least
    assert search(back, without=without).peak == least_back
    return Counter(
        programs=1,
        shorter=least < states.peak(given),
        by_cut=found.operator >= 0,
        early=early.status != "optimal",
        without=bool(without),
        in_place=least_back != least,
    )


class TestOracle:
    """The oracle itself, and the search against it."""

    @given(seed=st.integers(0, 2**32))
    def test_the_table_agrees_with_all_orders(self, seed: int) -> None:
        """Tests the least peak of both tables against every legal order, one after the other."""
        problem = oracle.random_program(Random(seed), 6)
        states = oracle.States(problem)
        least = min(states.peak(order) for order in states.orders())
        assert states.least_peak() == states.least_peak_backwards() == least

    def test_random_programs(self) -> None:
        """Tests a sample, which has everything that it is to have."""
        seen = sum((compare(number) for number in range(600)), Counter[str]())
        assert seen["programs"] == 600
        assert all(seen[each] for each in ("shorter", "by_cut", "early", "without", "in_place"))

    def test_a_state_that_a_valley_hides_is_searched(self) -> None:
        """Tests a state that is left out beside a valley, and that the valley itself leads to."""
        storages = [
            (1, (2, 5), False, True),
            (1, (4,), False, True),
            (1, (1, 3), False, False),
            (2, (1,), False, False),
            (1, (0, 5), False, False),
        ]
        problem = oracle.program([0] * 6, [(2, 3), (0, 5)], storages)
        found = search(problem, without=("beams",))
        assert found.peak == found.bound == oracle.States(problem).least_peak() == 3

    @pytest.mark.deep
    @pytest.mark.parametrize("first", range(0, rounds(10_000, 100_000), 5_000))
    def test_many_random_programs(self, first: int) -> None:
        """Tests thousands of them."""
        for number in range(first, first + 5_000):
            compare(number)


def layered(layers: int, width: int, seed: int) -> OrderProblem:
    """Return layers of operators that read two or three of the layer before, or of any."""
    random = Random(seed)
    count = layers * width
    users = [[op] for op in range(count)]
    for op in range(width, count):
        layer = range(op // width * width - width, op // width * width)
        for other in {*random.sample(layer, 2), random.randrange(layer.stop)}:
            users[other].append(op)
    arcs = [(each[0], user) for each in users for user in each[1:]]
    storages = [(random.randint(1, 10**6), each, False, False) for each in users]
    return oracle.program([0] * count, arcs, storages)


def facts(found: _core.OrderResult) -> tuple[Any, ...]:
    """Return all that must not change from one run to the next."""
    rest = (found.peak, found.bound, found.status, found.states, found.operator)
    return tuple(found.order), *rest, tuple(found.done), tuple(map(tuple, found.flow))


class TestPromises:
    """The promises of docs/architecture.md, where the search is too short to end."""

    @pytest.mark.parametrize("seed", range(3))
    def test_repetition_gives_the_same_order(self, seed: int) -> None:
        """Tests that all is the same again."""
        problem = layered(10, 8, seed)
        runs = [search(problem, states=3_000) for _ in range(2)]
        assert len(set(map(facts, runs))) == 1
        assert_referee_agrees(problem, runs[0])

    def test_the_deadline_is_kept_with_an_order_and_a_bound(self) -> None:
        """Tests that a short deadline ends a search, with a legal order and a valid bound."""
        problem = layered(40, 25, 1)
        found = search(problem, seconds=0.3)  # without a deadline: hours
        assert_referee_agrees(problem, found)
        assert 0 < found.bound <= found.peak

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
    def test_ctrl_c_ends_the_search_with_an_order(self) -> None:
        """Tests a signal in the middle of a search."""
        problem = layered(40, 25, 2)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            found, patience = None, 0.3
            while found is None:
                # On a busy machine the signal may come before the search: then again, later.
                with contextlib.suppress(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, patience)
                    found = search(problem)
                patience *= 2
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert found.interrupted
        assert_referee_agrees(problem, found)

    @pytest.mark.parametrize("seed", range(20))
    def test_sizes_up_to_the_limit(self, seed: int) -> None:
        """Tests that a program scaled to 2^62 bytes has its order, peak and bound to scale."""
        problem = oracle.random_program(Random(seed), 9)
        total = sum(problem.size.tolist()) + int(problem.workspace.max(initial=0))
        if not total:
            return
        factor = 2**62 // total
        columns = zip(problem.size, problem.given, problem.wanted, strict=True)
        scaled = oracle.program(
            [int(each) * factor for each in problem.workspace],
            problem.arcs.tolist(),
            [
                (int(size) * factor, problem.users(storage).tolist(), given, wanted)
                for storage, (size, given, wanted) in enumerate(columns)
            ],
            problem.in_place.tolist(),
        )
        one, other = search(problem), search(scaled)
        assert (other.peak, other.bound) == (one.peak * factor, one.bound * factor)
        assert other.order == one.order
        assert_referee_agrees(scaled, other)
