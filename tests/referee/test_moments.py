"""Tests of the referee of bounds for the given order: one certificate by hand, and its errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import again_oracle as oracle
import numpy as np
import pytest

import memplan as mp
from memplan.problem import GivenOrderBound, GivenOrderLeaf, RecomputeProblem
from memplan.referee import verify_recompute

NEST = [
    (10, (0, 1, 3), False, False, 0),
    (20, (1, 2), False, False, 1),
    (5, (2, 3), False, False, 2),
    (1, (3,), False, True, 3),
]


def nest() -> RecomputeProblem:
    """Return a chain of four operators whose end reads what its beginning made."""
    return oracle.program([0, 0, 0, 0], [4, 7, 2, 9], [True, True, True, False], NEST)


def leaf(prices: tuple[int, ...], *needs: tuple[int, ...], **changes: Any) -> GivenOrderLeaf:
    """Return a case without decisions."""
    columns = np.array(needs, dtype=np.int64).reshape(-1, 4)
    return replace(GivenOrderLeaf((), False, prices, columns), **changes)


# At the first run of operator 2, storage 0 is there for 10 * 4 / 8 of its bytes, or operator 0 runs
# again: storage 0 is read by operator 3 after that.
HONEST = leaf((4,), (1, -1, 0, 4))
AGAIN = (4 + 2 * 4) + 4  # operator 0 runs again in block 1, of 4 operators and 4 storages


def certificate(*leaves: GivenOrderLeaf, **changes: Any) -> GivenOrderBound:
    """Return one about operator 2."""
    return replace(GivenOrderBound((2,), 1, 0, 3, leaves), **changes)


def prove(one: GivenOrderBound, capacity: int = 34, problem: RecomputeProblem | None = None) -> int:
    """Return the bound that is proved."""
    claim = verify_recompute(problem or nest(), None, capacity, order_certificate=one)
    return claim.order_bound


def test_what_a_case_proves() -> None:
    """Tests the sum by hand: 4 for the read, less 4 / 8 of the 9 bytes that are left, rounded."""
    assert prove(certificate(HONEST)) == 4 - (4 * 9 >> 3)
    assert prove(certificate(HONEST), 25) == 4
    assert prove(certificate(leaf((0,), (1, -1, 0, 4)))) == 0
    assert prove(certificate(leaf((8,), (1, -1, 0, 5)))) == 0


def test_cases_are_decided() -> None:
    """Tests that one branch is impossible, and the other costs what runs again."""
    there = leaf((8,), (1, -1, 0, 10), decisions=((AGAIN, False),), impossible=True)
    again = leaf((0,), decisions=((AGAIN, True),))
    assert prove(certificate(there, again)) == 4
    assert prove(certificate(there, replace(again, impossible=True))) == 0
    only = replace(there, decisions=())
    assert prove(certificate(only)) == 0


def test_a_storage_that_moves_back() -> None:
    """Tests that a move bounds the multiplier of a read."""
    problem = replace(nest(), move=np.array([3, -1, -1, -1]))
    assert prove(certificate(HONEST), 25, problem) == 3
    assert prove(certificate(leaf((4,), (1, -1, 0, 3))), 25, problem) == 3


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_a_storage_that_nothing_touches_never_moves(given: bool, wanted: bool) -> None:
    """Tests that what its move would cost has no part in the unit of costs."""
    storages = [*NEST, (7, (), given, wanted, -1)]
    moves = [-1] * len(NEST) + [3]
    problem = oracle.program([0] * 4, [4, 6, 2, 9], [True, True, True, False], storages, (), moves)
    always = 7 if given and wanted else 0
    one = certificate(leaf((4,), (1, -1, 0, 2)), unit=2)
    assert prove(one, 25 + always, problem) == 4


def test_a_claim() -> None:
    """Tests that a bound above what is proved is refused, and one below is accepted."""
    one = certificate(HONEST)
    assert verify_recompute(nest(), None, 25, order_bound=4, order_certificate=one).bound == 0
    with pytest.raises(mp.ProofError, match="in the given order cost at least 5 is not proved"):
        verify_recompute(nest(), None, 25, order_bound=5, order_certificate=one)
    with pytest.raises(mp.ProofError, match="at least 1 is not proved, but that they cost 0 is"):
        verify_recompute(nest(), None, 25, order_bound=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"moments": ()}, "moments of the certificate are not ascending"),
        ({"moments": (2, 1)}, "moments of the certificate are not ascending"),
        ({"moments": (4,)}, "a moment that is no operator"),
        ({"moments": (1, 2)}, "one price for each moment"),
        ({"unit": 0}, "a unit, scale or shift of 0"),
        ({"unit": 5}, "a cost of 4 is no multiple of 5"),
        ({"shift": 63}, "a scale or shift above 62"),
        ({"leaves": ()}, "not all that there are"),
        ({"leaves": (HONEST, HONEST)}, "not all that there are"),
        ({"leaves": (replace(HONEST, decisions=((AGAIN, True),)),)}, "not all that there are"),
        (
            {
                "leaves": tuple(
                    replace(HONEST, decisions=((AGAIN + each, each > 0),)) for each in (0, 1)
                )
            },
            "do not agree about a variable",
        ),
        ({"leaves": (leaf((-1,)),)}, "one price for each moment"),
        ({"leaves": (replace(HONEST, needs=np.zeros((1, 3), dtype=np.int64)),)}, "four columns"),
        *(
            ({"leaves": (leaf((4,), need),)}, "has no rule")
            for need in (
                (1, -1, 0, -1),  # a negative multiplier
                (1, -1, 1, 4),  # which nothing reads later
                (1, -1, 3, 4),  # made after the moment
                (0, -1, 0, 4),  # before the first moment
                (2, -1, 0, 4),  # after the last block
                (1, 0, 0, 4),  # kept at the end
                (1, 4 + 0, 0, 4),  # read by its own maker
                (1, 4 + 3, 0, 4),  # by an operator that may not run again
                (1, 4 + 4, 0, 4),  # by a move
                (1, -1, 4, 4),  # no storage
            )
        ),
    ],
)
def test_errors(change: dict[str, Any], words: str) -> None:
    """Tests one sentence each."""
    with pytest.raises(mp.ProofError, match=words):
        prove(replace(certificate(HONEST), **change))
