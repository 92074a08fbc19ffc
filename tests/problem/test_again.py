"""Tests that wrong columns of a `RecomputeProblem` are refused."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from random import Random
from typing import Any

import again_oracle as oracle
import numpy as np
import pytest

from memplan.base.errors import ProblemError
from memplan.problem import RecomputeProblem

COLUMNS = tuple(field.name for field in fields(RecomputeProblem))[1:]


def chain() -> RecomputeProblem:
    """Return three operators, one after the other, the first of which reads what is given."""
    storages = [
        (4, (0,), True, False, -1),
        (4, (0, 1), False, False, 0),
        (4, (1, 2), False, True, 1),
    ]
    return oracle.program([0, 5, 0], [1, 2, 3], [True, True, False], storages)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("cost", [1, 2], "cost must have 3 rows, not 2"),
        ("cost", [1, -2, 3], "costs must be at least 0, and less than 2^53 together"),
        ("cost", [2**52, 2**52, 0], "costs must be at least 0, and less than 2^53 together"),
        ("again", [True] * 4, "again must have 3 rows, not 4"),
        ("maker", [-1, 0], "maker must have 3 rows, not 2"),
        ("maker", [-1, 1, 1], "must be its first user, or -1"),
        ("maker", [-1, 2, 1], "must be its first user, or -1"),
        ("maker", [-2, 0, 1], "must be its first user, or -1"),
        ("maker", [0, 0, 1], "a storage that is given has no maker"),
        ("move", [-1, -1, -2], "must be at least 0, or -1 if it cannot be moved"),
        ("move", [-1], "move must have 3 rows, not 1"),
    ],
)
def test_what_is_wrong_is_said(column: str, value: list[Any], words: str) -> None:
    """Tests each sentence."""
    given = chain()
    kind = getattr(given, column).dtype
    with pytest.raises(ProblemError, match=words.replace("^", r"\^")):
        replace(given, **{column: np.array(value, dtype=kind)})


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("odd", [None, 3, [0, 1], np.zeros(3, dtype=np.float32), np.zeros((3, 1))])
def test_odd_columns_are_refused(column: str, odd: Any) -> None:
    """Tests everything that is no array of the right type and number of dimensions."""
    with pytest.raises(ProblemError, match=f"^{column} must be"):
        replace(chain(), **{column: odd})


def test_programs_with_in_place_pairs_are_refused() -> None:
    """Tests that copies are counted in full, so that no pair can count."""
    pairs = np.array([[1, 1, 2]], dtype=np.int32)
    with pytest.raises(ProblemError, match="no in-place pairs"):
        replace(chain(), program=replace(chain().program, in_place=pairs))


def test_a_storage_that_nothing_uses_has_no_maker() -> None:
    """Tests that the users of the next storage are not taken for its own."""
    storages = [(4, (), False, False, -1), (4, (0,), False, False, 0)]
    problem = oracle.program([0], [1], [True], storages)
    with pytest.raises(ProblemError, match="must be its first user"):
        replace(problem, maker=np.array([0, 0], dtype=np.int32))


def test_the_fingerprint_is_of_all_columns() -> None:
    """Tests that each column changes it, that names do not, and that a pickle keeps it."""
    given = chain()
    others = [
        replace(given, cost=given.cost + 1),
        replace(given, again=~given.again),
        replace(given, maker=np.array([-1, -1, 1], dtype=np.int32)),
        replace(given, move=given.move + 1),
        replace(given, program=replace(given.program, size=given.program.size + 1)),
    ]
    assert len({each.fingerprint for each in (given, *others)}) == 6
    named = replace(given, program=replace(given.program, operators=("a", "b", "c")))
    assert named.fingerprint == given.fingerprint == pickle.loads(pickle.dumps(given)).fingerprint


def test_random_programs_are_accepted() -> None:
    """Tests that the oracle draws what the columns allow, and what a plain run costs."""
    for seed in range(50):
        problem = oracle.random_program(Random(seed))
        assert problem.plain == sum(problem.cost.tolist())
        assert len(problem) == len(problem.cost)
