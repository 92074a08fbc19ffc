"""Tests of `memplan.referee.verify_order`: what is right passes, and nothing that is false does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import order_oracle as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memplan as mp
from memplan.problem import OrderBound, OrderProblem
from memplan.referee import OrderClaim, verify_order

SEEDS = st.integers(0, 2**32)


def fan() -> OrderProblem:
    """Return two branches of a large and a small tensor each, side by side, that are added.

    Operators 0 and 2 make 8 bytes of the 2 that are given, 1 and 3 make 1 byte of them, 4 adds.
    """
    storages = [
        (2, (0, 2), True, False),
        (8, (0, 1), False, False),
        (1, (1, 4), False, False),
        (8, (2, 3), False, False),
        (1, (3, 4), False, False),
        (1, (4,), False, True),
    ]
    problem = oracle.program([0] * 5, [(0, 1), (2, 3), (1, 4), (3, 4)], storages)
    return replace(problem, operators=("grow", "shrink", "grow 2", "shrink 2", "add"))


def random_order(problem: OrderProblem, random: Random) -> list[int]:
    """Return a legal order: each time, one of the operators that may run."""
    waits = oracle.States(problem).before
    order: list[int] = []
    while len(order) < len(problem):
        done = sum(1 << op for op in order)
        ready = [op for op, needed in enumerate(waits) if not done >> op & 1]
        order.append(random.choice([op for op in ready if waits[op] & ~done == 0]))
    return order


class TestOrders:
    """Which orders pass, and which peak they have."""

    def test_the_peak_is_that_of_the_definition(self) -> None:
        """Tests both orders of two branches: one after the other, and side by side."""
        assert verify_order(fan(), [0, 1, 2, 3, 4]) == OrderClaim(11, 10)
        assert verify_order(fan(), [0, 2, 1, 3, 4]) == OrderClaim(18, 10)
        assert verify_order(fan(), np.array([2, 3, 0, 1, 4])).peak == 11

    @given(seed=SEEDS)
    def test_the_peak_is_that_of_the_oracle(self, seed: int) -> None:
        """Tests random programs and orders, and that a peak one byte off is refused."""
        random = Random(seed)
        problem = oracle.random_program(random, 9)
        order = random_order(problem, random)
        peak = oracle.States(problem).peak(order)
        assert verify_order(problem, order, peak=peak).peak == peak
        for wrong in (peak - 1, peak + 1):
            with pytest.raises(mp.PlanError, match=f"claims a peak of {wrong} bytes"):
                verify_order(problem, order, peak=wrong)

    @given(seed=SEEDS)
    def test_every_falsified_order_is_refused(self, seed: int) -> None:
        """Tests an operator that is dropped, twice there, unknown, or before one it waits for."""
        random = Random(seed)
        problem = oracle.random_program(random, 9)
        order = random_order(problem, random)
        for place, op in enumerate(order):
            rest = order[:place] + order[place + 1 :]
            other = random.choice(order)
            false = [(rest, "is not in the order"), ([*order, op], "is in the order twice")]
            if other != op:
                false.append(([*rest, other], "is in the order twice"))
            for number in (-1, len(order)):
                false.append(([*rest, number], f"the order names operator {number}"))
            for wrong, words in false:
                with pytest.raises(mp.PlanError, match=words):
                    verify_order(problem, wrong)
        for first, second in problem.arcs.tolist():
            swapped = [{first: second, second: first}.get(op, op) for op in order]
            with pytest.raises(mp.PlanError, match="but waits for it"):
                verify_order(problem, swapped)

    @pytest.mark.parametrize(
        ("order", "words"),
        [
            ([0, 1, 2, 3], 'operator 4 "add" is not in the order'),
            ([0, 1, 2, 3, 3], 'operator 3 "shrink 2" is in the order twice'),
            ([0, 1, 2, 3, 5], "the order names operator 5, but there are 5 operators"),
            ([1, 0, 2, 3, 4], '"shrink" is before operator 0 "grow" in the order, but waits'),
            ([0, 1.0, 2, 3, 4], "an order must be numbers of operators, not 1.0"),
            ([0, True, 2, 3, 4], "an order must be numbers of operators, not True"),
            (["0"], 'an order must be numbers of operators, not "0"'),
        ],
    )
    def test_errors_name_operators(self, order: list[int], words: str) -> None:
        """Tests the sentences."""
        with pytest.raises(mp.PlanError, match=words):
            verify_order(fan(), order)

    def test_no_operators(self) -> None:
        """Tests that what is given and wanted is live even if nothing runs."""
        storages = [(3, (), True, True), (5, (), True, False), (7, (), False, True)]
        assert verify_order(oracle.program([], [], storages), []) == OrderClaim(3, 3)

    def test_numbers_up_to_the_limit(self) -> None:
        """Tests that nothing is rounded or wraps around at 2^62 bytes."""
        half = 2**61
        storages = [(half - 1, (0,), True, True), (half - 1, (0,), False, False)]
        problem = oracle.program([2], [], storages)
        assert verify_order(problem, [0], peak=2**62, bound=2**62) == OrderClaim(2**62, 2**62)


class TestInPlace:
    """What an operator saves by writing outputs over inputs."""

    def test_each_input_and_each_output_counts_once(self) -> None:
        """Tests that the best matching counts, not the sum and not the first pairs."""
        storages = [(9, (0,), True, False), (5, (0,), True, False)]
        storages += [(size, (0,), False, True) for size in (5, 4, 3)]
        pairs = [(0, old, new) for old, new in ((0, 2), (0, 3), (0, 4), (1, 2))]
        problem = oracle.program([0], [], storages, pairs)
        assert verify_order(problem, [0]).peak == 9 + 5 + 5 + 4 + 3 - 5 - 4

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ((4, (1, 2), False, False), (3, (2,), False, False)),
            ((4, (1, 2, 3), False, False), (4, (2,), False, False)),
            ((4, (1, 2), True, True), (4, (2,), False, False)),
            ((4, (1, 2), False, False), (4, (2,), True, False)),
            ((4, (1, 2), False, False), (4, (0, 2), False, False)),
            ((4, (1, 2), False, False), (5, (2,), False, False)),
        ],
        ids=["smaller", "read later", "wanted", "given", "made before", "larger"],
    )
    def test_when_it_saves(
        self, old: tuple[int, tuple[int, ...], bool, bool], new: tuple[int, tuple[int], bool, bool]
    ) -> None:
        """Tests that it saves if the input dies there and the output is made there and fits."""
        problem = oracle.program([0, 0, 9, 0], [], [old, new], [(2, 0, 1)])
        saved = 3 if new[0] == 3 else 0
        assert verify_order(problem, [0, 1, 2, 3]).peak == old[0] + new[0] + 9 - saved


class TestBounds:
    """Which certificates pass, and what they prove."""

    @given(seed=SEEDS)
    def test_every_cut_is_proved(self, seed: int) -> None:
        """Tests the maximum flow of every operator: it shows the least state that it can run in."""
        problem = oracle.random_program(Random(seed), 7)
        states, order = oracle.States(problem), range(len(problem))
        best, alone = states.least_peak(), verify_order(problem, order).bound
        assert alone <= best
        for op in order:
            certificate = oracle.certify(problem, op)
            bound = verify_order(problem, order, certificate=certificate).bound
            assert alone <= bound <= max(alone, states.least_step(op)) <= best
            if not len(problem.in_place):
                assert bound == max(alone, states.least_step(op))
            with pytest.raises(mp.ProofError, match=f"{bound + 1} bytes on every order is not"):
                verify_order(problem, order, bound=bound + 1, certificate=certificate)
            live = problem.live_while(op, certificate.done)
            assert sum(problem.size[storage] for storage in live) == states.least_held(op)

    @given(seed=SEEDS, data=st.data())
    def test_no_falsified_certificate_proves_what_is_false(
        self, seed: int, data: st.DataObject
    ) -> None:
        """Tests random changes: either they are refused, or what is proved is still true."""
        problem = oracle.random_program(Random(seed), 6)
        if not len(problem):
            return
        least = oracle.States(problem).least_peak()
        numbers = st.integers(0, len(problem) - 1)
        certificate = oracle.certify(problem, data.draw(numbers))
        flow = certificate.flow.tolist()
        nodes = st.integers(-1, 2 + len(problem) + 2 * len(problem.size))
        amounts = st.sampled_from([-1, 1, 2, int(problem.size.max(initial=0)), 2**62])
        rows = st.tuples(nodes, nodes, amounts)
        change = data.draw(st.sampled_from(("operator", "done", "add", "amount", "node")))
        if change == "operator":
            certificate = replace(certificate, operator=data.draw(numbers))
        elif change == "done":
            certificate = replace(certificate, done=tuple(data.draw(st.sets(numbers))))
        elif change == "add" or not flow:
            flow += data.draw(st.lists(rows, min_size=1))
        else:
            row = data.draw(st.sampled_from(flow))
            at = 2 if change == "amount" else data.draw(st.integers(0, 1))
            row[at] += data.draw(st.sampled_from((-1, 1, 2)))
        changed = replace(certificate, flow=np.array(flow, dtype=np.int64).reshape(-1, 3))
        try:
            claim = verify_order(problem, range(len(problem)), certificate=changed)
        except mp.ProofError:
            return
        assert claim.bound <= least

    def test_a_bound_without_a_certificate(self) -> None:
        """Tests that what one operator needs by itself is accepted, and no more."""
        order = [0, 1, 2, 3, 4]
        assert verify_order(fan(), order, bound=10).bound == 10
        with pytest.raises(mp.ProofError, match="11 bytes on every order is not proved, but one"):
            verify_order(fan(), order, bound=11)

    def test_what_is_live_at_the_ends_needs_no_certificate(self) -> None:
        """Tests two inputs for two operators: no operator needs both, but all orders begin so."""
        storages = [(5, (0,), True, False), (5, (1,), True, False)]
        problem = oracle.program([0, 0], [], storages)
        assert verify_order(problem, [0, 1], bound=10) == OrderClaim(10, 10)

    def test_what_is_read_later_is_not_written_over(self) -> None:
        """Tests that a bound counts a pair only if its input can die there."""
        pair = [(4, (0, 1, 2), False, False), (4, (1,), False, False)]
        for arcs, saved in (([(0, 1), (0, 2)], 4), ([(0, 1), (1, 2)], 0)):
            problem = oracle.program([0, 9, 0], arcs, pair, [(1, 0, 1)])
            certificate = oracle.certify(problem, 1)
            claim = verify_order(problem, [0, 1, 2], certificate=certificate)
            assert claim.bound == 4 + 4 + 9 - saved

    def test_the_bytes_beside_an_operator(self) -> None:
        """Tests the cut of the second branch: its output, or the first, is live in any order."""
        certificate = oracle.certify(fan(), 2)
        assert verify_order(fan(), [0, 1, 2, 3, 4], certificate=certificate).bound == 10 + 0
        assert fan().live_while(2, certificate.done) == (0, 3)


class TestFalsifiedFlows:
    """Why a flow is refused, one sentence each, on the certificate of an operator in the middle.

    A chain 0 -> 1 -> 2 beside operator 1 of another: 5 bytes lie from 0 to 2, whatever the order.
    """

    problem = replace(
        oracle.program(
            [0, 0, 0, 0],
            [(0, 1), (1, 2)],
            [(5, (0, 2), False, False), (7, (1,), False, False), (3, (3,), True, True)],
        ),
        operators=("begin", "middle", "end", "beside"),
    )
    certificate = oracle.certify(problem, 1)

    def test_the_flow(self) -> None:
        """Tests the certificate itself: 5 bytes pass, and 3 are given and wanted."""
        arcs = {(0, 6), (6, 7), (7, 1), (0, 10), (10, 11), (11, 1)}
        assert {tuple(row[:2]) for row in self.certificate.flow.tolist()} == arcs
        claim = verify_order(self.problem, range(4), bound=15, certificate=self.certificate)
        assert claim == OrderClaim(15, 15)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda flow: flow.append([0, 6, 1]), "into node 6 is not the flow out of it"),
            (lambda flow: flow.append([6, 7, 1]), "but at most 5 may be"),
            (lambda flow: flow.append([0, 1, 1]), "has no arc from node 0 to node 1"),
            (lambda flow: flow.append([2, 6, 1]), "has no arc from node 2 to node 6"),
            (lambda flow: flow.append([8, 9, 1]), "has no arc from node 8 to node 9"),
            (lambda flow: flow.append([6, 1, 1]), "has no arc from node 6 to node 1"),
            (lambda flow: flow.append([0, 99, 1]), "has no arc from node 0 to node 99"),
            (lambda flow: flow.append([0, 6, -1]), "from node 0 to node 6 is negative"),
            (lambda flow: flow.pop(), "is not the flow out of it"),
            (lambda flow: flow.clear(), "8 bytes are live beside those of operator 1"),
        ],
    )
    def test_why_it_is_refused(
        self, change: Callable[[list[list[int]]], object], words: str
    ) -> None:
        """Tests amounts raised, arcs invented, and what is left out."""
        flow = self.certificate.flow.tolist()
        change(flow)
        false = replace(self.certificate, flow=np.array(flow, dtype=np.int64).reshape(-1, 3))
        with pytest.raises(mp.ProofError, match=words):
            verify_order(self.problem, range(4), certificate=false)

    @pytest.mark.parametrize(
        ("false", "words"),
        [
            (replace(certificate, operator=0), "has no arc"),
            (replace(certificate, operator=-1), "operator -1, which does not exist"),
            (replace(certificate, operator=4), "operator 4, which does not exist"),
            (replace(certificate, done=()), 'operator 1 "middle" waits for operator 0 "begin"'),
            (replace(certificate, done=(0, 1)), '"middle" is in the state of its own certificate'),
            (replace(certificate, done=(0, 2)), 'operator 2 "end" waits for operator 1 "middle"'),
            (replace(certificate, done=(0, 9)), "has operator 9, which is unknown"),
            (replace(certificate, done=(0, -1)), "has operator -1, which is unknown"),
            (replace(certificate, flow=certificate.flow[:, :2]), "must have three columns"),
            (replace(certificate, flow=certificate.flow * 1.0), "must have three columns"),
        ],
    )
    def test_why_the_rest_is_refused(self, false: OrderBound, words: str) -> None:
        """Tests another operator, a state that it cannot run from, and odd arrays."""
        with pytest.raises(mp.ProofError, match=words):
            verify_order(self.problem, range(4), certificate=false)
