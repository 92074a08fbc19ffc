"""Tests that wrong columns of an `OrderProblem` are refused, by Python and by the core alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from random import Random
from typing import Any

import numpy as np
import order_oracle as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan import _core
from memplan.base.errors import ProblemError
from memplan.problem import OrderProblem

COLUMNS = tuple(field.name for field in fields(OrderProblem))[:8]


def chain() -> dict[str, Any]:
    """Return the columns of a chain of three operators, the second of which writes in place."""
    storages = [(4, (0, 1), True, False), (4, (1, 2), False, False)]
    problem = oracle.program([0, 5, 0], [(0, 1), (1, 2)], storages, [(1, 0, 1)])
    return {name: getattr(problem, name) for name in COLUMNS}


def accepts(columns: dict[str, Any]) -> bool:
    """Return whether Python accepts columns, and assert that the core does as Python."""
    accepted = succeeds(ProblemError, lambda: OrderProblem(**columns))
    arcs = columns["arcs"]
    rest = [columns[name] for name in ("size", "given", "wanted", "user_begin", "user")]
    assert accepted == succeeds(
        ValueError,
        lambda: _core.OrderProblem(
            columns["workspace"],
            np.ascontiguousarray(arcs[:, 0]),
            np.ascontiguousarray(arcs[:, 1]),
            *(each.view(np.uint8) if each.dtype == np.bool_ else each for each in rest),
            columns["in_place"].ravel(),
        ),
    )
    return accepted


def succeeds(error: type[Exception], call: Callable[[], object]) -> bool:
    """Return whether a call ends without an error of this type."""
    try:
        call()
    except error:
        return False
    return True


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("workspace", [0, 5], "the users of storages must be operators"),
        ("workspace", [0, -1, 0], "must be between 0 and 2^62 bytes"),
        ("workspace", [0, 2**62 - 7, 0], "the largest workspace together have more than 2^62"),
        ("arcs", [[0, 1], [1, 1]], "an arc must lead from an operator to a later one"),
        ("arcs", [[1, 0]], "an arc must lead from an operator to a later one"),
        ("arcs", [[-1, 0]], "an arc must lead from an operator to a later one"),
        ("arcs", [[0, 3]], "an arc must lead from an operator to a later one"),
        ("size", [4], "the columns of storages must have one row for each"),
        ("size", [4, -4], "must be between 0 and 2^62 bytes"),
        ("size", [4, 2**62 + 1], "must be between 0 and 2^62 bytes"),
        ("size", [2**61, 2**61], "together have more than 2^62 bytes"),
        ("given", [True], "the columns of storages must have one row for each"),
        ("wanted", [True] * 3, "the columns of storages must have one row for each"),
        ("user_begin", [], "the columns of storages must have one row for each"),
        ("user_begin", [1, 2, 4], "must ascend from 0 to the number of users"),
        ("user_begin", [0, 2, 3], "must ascend from 0 to the number of users"),
        ("user_begin", [0, 5, 4], "must ascend from 0 to the number of users"),
        ("user_begin", [0, -(2**63), 4], "must ascend from 0 to the number of users"),
        ("user", [0, 1, 1, 3], "the users of storages must be operators"),
        ("user", [-1, 1, 1, 2], "the users of storages must be operators"),
        ("user", [1, 0, 1, 2], "the users of a storage must ascend, each once"),
        ("user", [0, 0, 1, 2], "the users of a storage must ascend, each once"),
        ("in_place", [[1, 0, 0]], "two storages that its operator touches"),
        ("in_place", [[0, 0, 1]], "two storages that its operator touches"),
        ("in_place", [[-1, 0, 1]], "two storages that its operator touches"),
        ("in_place", [[1, 0, 2]], "two storages that its operator touches"),
        ("in_place", [[3, -1, 1]], "two storages that its operator touches"),
    ],
)
def test_what_is_wrong_is_said(column: str, value: list[Any], words: str) -> None:
    """Tests each sentence, and that the core refuses the same columns."""
    columns = chain()
    shape = (-1, *columns[column].shape[1:])
    columns[column] = np.array(value, dtype=columns[column].dtype).reshape(shape)
    assert not accepts(columns)
    with pytest.raises(ProblemError, match=words.replace("^", r"\^")):
        OrderProblem(**columns)


def test_four_wrapping_steps_are_not_ascending() -> None:
    """Tests that differences that wrap around in 64 bits are not taken for ascending ones."""
    columns = chain()
    columns["user_begin"] = np.array([0, 2**63 - 1, -(2**63), -1, 4])
    for name in ("size", "given", "wanted"):
        columns[name] = np.repeat(columns[name], 2)
    assert not accepts(columns)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("odd", [None, 3, [0, 1], np.zeros(3), np.zeros((1, 1, 1)), np.array(7)])
def test_odd_columns_are_refused(column: str, odd: Any) -> None:
    """Tests everything that is no array of the right type and number of dimensions."""
    with pytest.raises(ProblemError, match=f"^{column} must be"):
        OrderProblem(**chain() | {column: odd})


@pytest.mark.parametrize("column", ["arcs", "in_place"])
def test_tables_have_their_number_of_columns(column: str) -> None:
    """Tests a table with a column too many."""
    with pytest.raises(ProblemError, match="arcs must have two columns, and in_place three"):
        OrderProblem(**chain() | {column: np.zeros((1, 4), dtype=np.int32)})


def test_names_are_all_there_or_none() -> None:
    """Tests names for some operators or storages only."""
    problem = OrderProblem(**chain())
    assert replace(problem, operators=("a", "b", "c"), storages=("x", "y"))
    for names in ({"operators": ("a",)}, {"storages": ("x", "y", "z")}):
        with pytest.raises(ProblemError, match="no names, or one for each"):
            replace(problem, **names)  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**32), data=st.data())
def test_python_and_the_core_agree(seed: int, data: st.DataObject) -> None:
    """Tests one number of a random program that is changed, or one row that is left out."""
    problem = oracle.random_program(Random(seed), 6)
    columns = {name: getattr(problem, name) for name in COLUMNS}
    assert accepts(columns)
    name = data.draw(st.sampled_from([name for name in COLUMNS if columns[name].size]))
    column = columns[name].copy()
    row = data.draw(st.integers(0, len(column) - 1))
    if data.draw(st.booleans()):
        column = np.delete(column, row, axis=0)
    else:
        least, most = -(2**31), 2**31 - 1
        if column.dtype == np.int64:
            least, most = -(2**63), 2**63 - 1
        numbers = st.sampled_from([-1, 0, 1, 2, 6, least, most, 2**62])
        column[row] = data.draw(numbers.filter(lambda number: least <= number <= most))
    accepts(columns | {name: column})
