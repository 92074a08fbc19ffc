"""Tests of the referee of recomputation: which sequences and certificates pass.

Loads and least costs come from `again_oracle`, which goes through all states of small programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import again_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rounds import rounds

import memplan as mp
from memplan.problem import RecomputeBound, RecomputeLeaf, RecomputeProblem
from memplan.referee import RecomputeClaim, verify_recompute

SEEDS = st.integers(0, 2**32)
ANY = 2**62
DEEP_PARTS, DEEP_PART = rounds(4, 20), 500


def nest() -> RecomputeProblem:
    """Return a chain of four operators whose end reads what its beginning made.

    The first result of 10 bytes is read by the second operator and by the last one.
    """
    storages = [
        (10, (0, 1, 3), False, False, 0),
        (20, (1, 2), False, False, 1),
        (5, (2, 3), False, False, 2),
        (1, (3,), False, True, 3),
    ]
    problem = oracle.program([0, 0, 0, 0], [4, 7, 2, 9], [True, True, True, False], storages)
    names = ("begin", "grow", "shrink", "end")
    return replace(problem, program=replace(problem.program, operators=names))


def certificate_of(problem: RecomputeProblem, op: int, capacity: int) -> RecomputeBound:
    """Return the best of a few certificates."""
    drawn = [oracle.certify(problem, op, capacity, Random(seed)) for seed in range(6)]
    return max(
        drawn,
        key=lambda each: verify_recompute(problem, None, capacity, certificate=each).bound,
    )


class TestSequences:
    """Which sequences are legal, and what they need and cost."""

    @given(seed=SEEDS)
    def test_the_peak_is_that_of_the_oracle(self, seed: int) -> None:
        """Tests random sequences, and that a peak, a cost or a capacity one off is refused."""
        random = Random(seed)
        problem = oracle.random_program(random, moves=seed % 2 == 1)
        runs = oracle.random_runs(problem, random)
        peak = oracle.States(problem).load(runs)
        extra = oracle.extra_of(problem, runs)
        claim = verify_recompute(problem, runs, peak, peak=peak, extra=extra)
        assert claim[:3] == (peak, extra, 0)
        assert claim.floor <= peak
        with pytest.raises(mp.PlanError, match=f"needs {peak} bytes, but the capacity is"):
            verify_recompute(problem, runs, peak - 1)
        for wrong in (-1, 1):
            with pytest.raises(mp.PlanError, match=f"claims a peak of {peak + wrong} bytes"):
                verify_recompute(problem, runs, peak, peak=peak + wrong)
            with pytest.raises(mp.PlanError, match=f"claims re-runs that cost {extra + wrong}"):
                verify_recompute(problem, runs, peak, extra=extra + wrong)

    def test_a_read_takes_the_latest_copy(self) -> None:
        """Tests that the first copy is over when it is made again, and both peaks."""
        assert verify_recompute(nest(), [0, 1, 2, 3], ANY)[:2] == (35, 0)
        assert verify_recompute(nest(), [0, 1, 2, 0, 3], ANY)[:2] == (30, 4)
        assert verify_recompute(nest(), [0, 0, 1, 0, 2, 0, 0, 3], ANY)[:2] == (30, 16)

    def test_a_storage_is_moved_out_and_back(self) -> None:
        """Tests that it is absent between its last read before and its way back."""
        problem = replace(nest(), move=np.array([3, -1, -1, 5]))
        assert verify_recompute(problem, [0, 1, 2, 4, 3], ANY)[:2] == (30, 3)
        assert verify_recompute(problem, [0, 1, 4, 4, 2, 3], ANY)[:2] == (35, 6)
        with pytest.raises(mp.PlanError, match="moves storage 3 back before it is made"):
            verify_recompute(problem, [0, 7, 1, 2, 3], ANY)

    @pytest.mark.parametrize(
        ("runs", "words"),
        [
            ([0, 1, 2], 'operator 3 "end" is not in the sequence'),
            ([0, 1, 2, 3, 3], 'operator 3 "end" is in the sequence twice, but may run once'),
            ([0, 1, 2, 3, 8], "the sequence names operator 8, but there are 4 operators"),
            ([0, 1, 2, 3, 4], "the sequence moves storage 0, which may not be moved"),
            ([0, 1, 2, -1], "the sequence names operator -1, but there are 4 operators"),
            ([0, 2, 1, 3], '"shrink" is before operator 1 "grow" in the sequence, but waits'),
            ([0, 1.0, 2, 3], "a sequence must be numbers of operators, not 1.0"),
            ([0, True, 2, 3], "a sequence must be numbers of operators, not True"),
        ],
    )
    def test_errors_name_operators(self, runs: list[int], words: str) -> None:
        """Tests the sentences."""
        with pytest.raises(mp.PlanError, match=words):
            verify_recompute(nest(), runs, ANY)

    def test_no_operators(self) -> None:
        """Tests that what is given and wanted is live even if nothing runs."""
        storages = [(3, (), True, True, -1), (5, (), True, False, -1), (7, (), False, True, -1)]
        problem = oracle.program([], [], [], storages)
        assert verify_recompute(problem, [], 3) == RecomputeClaim(3, 0, 0, 3)

    def test_numbers_up_to_the_limit(self) -> None:
        """Tests that nothing is rounded or wraps around at 2^62 bytes."""
        half = 2**61
        storages = [(half - 1, (0,), True, True, -1), (half - 1, (0,), False, False, 0)]
        problem = oracle.program([2], [2**53 - 1], [True], storages)
        claim = verify_recompute(problem, [0, 0], 2**62, floor=2**62)
        assert claim == RecomputeClaim(2**62, 2**53 - 1, 0, 2**62)


class TestBounds:
    """Which certificates pass, and what they prove."""

    @given(seed=SEEDS)
    def test_no_moment_proves_more_than_is_true(self, seed: int) -> None:
        """Tests the certificates of every operator against the least cost and the least peak."""
        check_certificates(seed)

    def test_a_bound_that_is_met(self) -> None:
        """Tests that at 34 bytes one of two operators has to run again."""
        problem = nest()
        certificate = certificate_of(problem, 2, 34)
        runs = [0, 1, 2, 0, 3]
        claim = verify_recompute(
            problem, runs, 34, peak=30, extra=4, bound=4, certificate=certificate
        )
        assert claim == RecomputeClaim(30, 4, 4, 30, 4)
        with pytest.raises(
            mp.ProofError, match="at least 5 is not proved, but that they cost 4 is"
        ):
            verify_recompute(problem, runs, 34, bound=5, certificate=certificate)
        assert verify_recompute(problem, runs, 35, certificate=certificate).bound < 4

    def test_without_a_certificate(self) -> None:
        """Tests that of peaks only what one operator shows by itself is believed."""
        assert verify_recompute(nest(), None, 34, bound=0, floor=30).floor == 30
        with pytest.raises(mp.ProofError, match="at least 1 is not proved, but that they cost 0"):
            verify_recompute(nest(), None, 34, bound=1)
        with pytest.raises(
            mp.ProofError, match="needs 31 bytes is not proved, but that it needs 30"
        ):
            verify_recompute(nest(), None, 34, floor=31)

    def test_a_floor_that_no_operator_shows_by_itself(self) -> None:
        """Tests that what cannot be made again is counted beside an operator."""
        problem = replace(nest(), again=np.array([False, True, True, False]))
        certificate = oracle.certify_floor(problem, 2)
        claim = verify_recompute(problem, None, 0, floor=35, floor_certificate=certificate)
        assert claim.floor == 35
        with pytest.raises(mp.ProofError, match="36 bytes is not proved, but that it needs 35"):
            verify_recompute(problem, None, 0, floor=36, floor_certificate=certificate)

    @given(seed=SEEDS)
    def test_no_falsified_certificate_proves_what_is_false(self, seed: int) -> None:
        """Tests random changes: either they are refused, or what is proved is still true."""
        falsify(seed)

    @pytest.mark.deep
    @pytest.mark.parametrize("part", range(DEEP_PARTS))
    def test_many(self, part: int) -> None:
        """Tests programs, and as many falsified certificates, most of which are refused."""
        seen: Counter[str] = Counter()
        for seed in range(part * DEEP_PART, (part + 1) * DEEP_PART):
            check_certificates(seed)
            seen[falsify(seed)] += 1
        assert seen["refused"] > DEEP_PART / 2


def check_certificates(seed: int) -> None:
    """Check the certificates of all operators of a random program."""
    random = Random(seed)
    problem = oracle.random_program(random, 5, moves=seed % 2 == 1)
    states = oracle.States(problem)
    given_peak = states.load(range(len(problem)))
    alone = verify_recompute(problem, None, 0).floor
    capacity = random.randint(min(alone, given_peak), given_peak)
    least = states.least_extra(capacity)
    for op in range(len(problem)):
        floor = verify_recompute(
            problem, None, 0, floor_certificate=oracle.certify_floor(problem, op)
        ).floor
        assert alone <= floor <= given_peak
        if capacity < floor:
            assert least is None
        certificate = oracle.certify(problem, op, capacity, random)
        bound = verify_recompute(problem, None, capacity, certificate=certificate).bound
        assert least is None or 0 <= bound <= least


def falsify(seed: int) -> str:
    """Change a certificate at random, and check that nothing false is believed of it."""
    random = Random(seed)
    problem = oracle.random_program(random, 5, moves=seed % 2 == 1)
    count = len(problem)
    states = oracle.States(problem)
    peak = states.load(range(count))
    capacity = max(peak - random.randint(1, max(1, peak // 2)), 0)
    certificate = oracle.certify(problem, random.randrange(count), capacity, random)
    leaves = list(certificate.leaves)
    at = random.randrange(len(leaves))
    leaf = leaves[at]
    flow = [list(row) for row in leaf.flow.tolist()]
    nodes = 2 + 2 * count + 2 * len(problem.program.size)
    change = random.choice(("operator", "scale", "price", "cases", "add", "amount", "node"))
    certificate_change: dict[str, Any] = {}
    if change == "operator":
        certificate_change["operator"] = random.randint(-1, count)
    elif change == "scale":
        name = random.choice(("unit", "scale", "shift"))
        certificate_change[name] = getattr(certificate, name) + random.choice((-1, 1))
    elif change == "price":
        leaf = replace(leaf, price=leaf.price + random.choice((-1, 1, 7, -leaf.price - 1)))
    elif change == "cases" and random.random() < 0.5 and len(leaves) > 1:
        leaf = leaves[at] = leaves[at - 1]
    elif change == "cases":
        last = count + len(problem.program.size)
        decision = (random.randint(-1, last), random.randint(0, 3))
        leaf = replace(leaf, decisions=(*leaf.decisions, decision))
    elif change == "add" or not flow:
        start, end = random.randint(0, nodes), random.randint(0, nodes)
        flow += [[0, start, 3], [start, end, 3], [end, 1, 3]]
        leaf = replace(leaf, flow=oracle.columns(flow))
    else:
        row = random.choice(flow)
        row[2 if change == "amount" else random.randint(0, 1)] += random.choice((-1, 1, 2))
        leaf = replace(leaf, flow=oracle.columns(flow))
    leaves[at] = leaf
    changed = replace(certificate, leaves=tuple(leaves), **certificate_change)
    try:
        claim = verify_recompute(problem, None, capacity, certificate=changed)
    except mp.ProofError:
        return "refused"
    least = states.least_extra(capacity)
    assert least is None or claim.bound <= least
    return "true"


class TestFalsified:
    """Why certificates are refused, one sentence each, on that of an operator in the middle."""

    problem = nest()
    certificate = certificate_of(nest(), 2, 34)

    def leaf(self, **changes: Any) -> RecomputeBound:
        """Return the certificate with a change of its first leaf."""
        first, *rest = self.certificate.leaves
        return replace(self.certificate, leaves=(replace(first, **changes), *rest))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda flow: flow.append([0, 6, 1]), "into node 6 is not the flow out of it"),
            (lambda flow: flow.append([0, 1, 1]), "has no arc from node 0 to node 1"),
            (lambda flow: flow.append([0, 99, 1]), "has no arc from node 0 to node 99"),
            (lambda flow: flow.append([0, 6, -1]), "from node 0 to node 6 is negative"),
            (lambda flow: flow.append([6, 11, 2**40]), "but at most .* may be"),
            (lambda flow: flow.pop(), "is not the flow out of it"),
        ],
    )
    def test_a_flow(self, change: Callable[[list[list[int]]], object], words: str) -> None:
        """Tests amounts raised, arcs invented, and what is left out."""
        flow = self.certificate.leaves[0].flow.tolist()
        change(flow)
        with pytest.raises(mp.ProofError, match=words):
            verify_recompute(
                self.problem, None, 34, certificate=self.leaf(flow=oracle.columns(flow))
            )

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"operator": 4}, "is about operator 4, which does not exist"),
            ({"operator": -1}, "is about operator -1, which does not exist"),
            ({"unit": 3}, 'operator 0 "begin" costs 4, no multiple of the unit 3'),
            ({"unit": 0}, "a unit, scale, shift or price of 0"),
            ({"scale": 63}, "a unit, scale, shift or price of 63"),
            ({"shift": -1}, "a unit, scale, shift or price of -1"),
            ({"leaves": ()}, "are not all that there are"),
        ],
    )
    def test_its_numbers(self, change: dict[str, Any], words: str) -> None:
        """Tests what does not belong to the program."""
        with pytest.raises(mp.ProofError, match=words):
            verify_recompute(
                self.problem, None, 34, certificate=replace(self.certificate, **change)
            )

    @pytest.mark.parametrize(
        ("paths", "words"),
        [
            ([[(0, 0)]], "are not all that there are"),
            ([[(0, 0)], [(0, 2)]], 'do not agree about operator 0 "begin"'),
            ([[(0, 0)], [(1, 1)]], 'do not agree about operator 0 "begin"'),
            ([[(0, 0)], [(0, 1)], [(0, 1)]], "are not all that there are"),
            ([[], []], "are not all that there are"),
            ([[(0, 7)], [(0, 1)]], 'do not agree about operator 0 "begin"'),
            ([[(9, 0)], [(9, 1)]], "is about operator 9, which does not exist"),
            ([[(0, 2)], [(0, 3), (1, 0)]], "are not all that there are"),
        ],
    )
    def test_its_cases(self, paths: list[list[tuple[int, int]]], words: str) -> None:
        """Tests what is no tree of decisions."""
        nothing = oracle.columns([])
        leaves = tuple(RecomputeLeaf(tuple(path), 0, nothing) for path in paths)
        with pytest.raises(mp.ProofError, match=words):
            verify_recompute(
                self.problem, None, 34, certificate=replace(self.certificate, leaves=leaves)
            )

    def test_a_negative_price(self) -> None:
        """Tests that memory that is left over cannot be sold."""
        with pytest.raises(mp.ProofError, match="a unit, scale, shift or price of -1"):
            verify_recompute(self.problem, None, 34, certificate=self.leaf(price=-1))
