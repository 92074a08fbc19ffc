"""Tests of `memplan.explain` and of its words, for explicit conflicts and for groups."""

from __future__ import annotations

import io

import oracle
import pytest
import strategies
from explained import assert_irreducible, brute_force
from hypothesis import HealthCheck, assume, given, settings
from rich.console import Console

from memplan import solvers
from memplan.analysis.explain import explain
from memplan.problem import Buffer, Problem
from memplan.solvers import registry
from memplan.view.words import explanations

NEEDED = ("auto", "exact")  # what `explain` asks


@pytest.fixture(params=["brute force", "solvers"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: with the oracle, and with our solvers."""
    if request.param == "brute force":
        monkeypatch.setattr(solvers, "solve", brute_force)
        return
    for name in NEEDED:
        for constraint in ("conflicts", "groups"):
            if constraint not in registry.SOLVERS[name].supports:
                pytest.skip(f"{name} does not support {constraint}")


def chain(*sizes: int, **more: object) -> Problem:
    """Return buffers a, b, c, ... that live one after the other."""
    rows = [Buffer(chr(97 + i), i, i + 1, size) for i, size in enumerate(sizes)]
    return Problem(rows, **more)  # type: ignore[arg-type]


def told(problem: Problem) -> list[str]:
    """Return what `memplan inspect` prints of a capacity, by line."""
    file = io.StringIO()
    found = explain(problem)
    Console(file=file, width=100, markup=False, highlight=False).print(
        explanations.explanation(problem, found)
    )
    return [line.rstrip() for line in file.getvalue().splitlines()]


SHAPED = frozenset({"alignment", "pins", "reserved", "gaps"})


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    max_examples=60,
)
@given(strategies.related(strategies.problems(min_buffers=2, max_buffers=5, features=SHAPED)))
def test_one_byte_less_is_explained(solver: None, problem: Problem) -> None:
    """Tests verdict, amounts and subset for one byte less than the smallest peak."""
    best = oracle.minimum_peak(problem)
    assume(best is not None and best > 1)
    assert best is not None
    fixed = int((problem.pin + problem.size)[problem.pin >= 0].max(initial=0))
    assume(fixed < best)
    found = explain(problem, best - 1)
    assert found.fits is False
    assert found.required is not None
    assert best - 1 < found.required <= best <= (found.sufficient or best)
    if not found.sections:
        assert_irreducible(problem.with_capacity(best - 1), found)
    assert explain(problem, best).fits is True


def test_conflicts_beside_lifetimes(solver: None) -> None:
    """Tests that a subset carries its conflicts, and that they are named."""
    ring = [("a", "c"), ("c", "e"), ("e", "a"), ("b", "d")]
    problem = chain(4, 4, 4, 4, 4, conflicts=ring, capacity=11)
    found = explain(problem)
    assert (found.fits, found.sections, found.required) == (False, (), 12)
    assert (found.subset, found.irreducible) == (("a", "c", "e"), True)
    lines = told(problem)
    assert (
        "These 3 buffers cannot be placed together, although at most 4 bytes of them are live at"
        in (" ".join(lines))
    )
    assert '"a" and "c" conflict though their lifetimes do not meet.' in lines
    assert sum("conflict though" in line for line in lines) == 3


def test_a_group_longer_than_the_capacity(solver: None) -> None:
    """Tests that the ends of a group are too far apart, and that the rest is not needed."""
    problem = chain(4, 3, 2, 9, groups=[["c", "a", "b"]], capacity=8)
    found = explain(problem.with_capacity(9))
    assert (found.fits, found.required, found.sufficient) == (True, 9, 9)
    problem = chain(4, 3, 2, 8, groups=[["c", "a", "b"]], capacity=8)
    found = explain(problem)
    assert (found.fits, found.required, found.sufficient, found.excess) == (False, 9, 9, 1)
    assert (found.subset, found.irreducible) == (("b", "c"), True)
    assert '"c" and "b" are parts of one group: 9 bytes from end to end.' in told(problem)


def test_reserved_ranges_leave_no_room_for_a_group(solver: None) -> None:
    """Tests a group of which every member fits between reserved ranges, and the whole does not."""
    problem = chain(3, 2, groups=[["a", "b"]], reserved=[(4, 5), (9, 10)], capacity=14)
    assert explain(problem.with_capacity(15)).fits
    found = explain(problem)
    assert (found.fits, found.required) == (False, 15)
    assert (found.subset, found.irreducible) == (("a", "b"), True)
    lines = told(problem)
    assert '"a" and "b" lie one behind the other: 5 bytes from end to end.' in lines
    assert "Reserved ranges leave at most 4 bytes in one piece." in lines


def test_a_pin_in_the_way_of_a_group(solver: None) -> None:
    """Tests a pinned buffer that conflicts with a member, and leaves no room for the group."""
    rows = [Buffer("wall", 0, 1, 2, pin=2), Buffer("a", 0, 1, 2), Buffer("b", 1, 2, 3)]
    problem = Problem(rows, conflicts=[("wall", "b")], groups=[["b", "a"]], capacity=8)
    assert explain(problem.with_capacity(9)).fits is True
    found = explain(problem)
    assert (found.fits, found.required) == (False, 9)
    assert (found.subset, found.irreducible) == (("b", "a", "wall"), True)
    assert '"wall" is pinned at 2.' in told(problem)


def test_no_capacity_is_enough(solver: None) -> None:
    """Tests a group whose pinned member puts another one onto a pinned buffer."""
    rows = [
        Buffer("wall", 0, 1, 4, pin=4),
        Buffer("a", 1, 2, 4, pin=2),
        Buffer("b", 0, 1, 4),
        Buffer("free", 0, 1, 4),
    ]
    problem = Problem(rows, groups=[["a", "b"]], capacity=100)
    found = explain(problem)
    assert (found.fits, found.required, found.sufficient, found.excess) == (False, None, None, None)
    assert (set(found.subset), found.irreducible) == ({"wall", "a", "b"}, True)
    lines = told(problem)
    assert lines[0] == (
        "It does not fit, whatever the capacity: pins and groups contradict each other."
    )
    assert "required   it is proved that no capacity is enough" in lines


def test_many_reasons_are_cut(solver: None) -> None:
    """Tests that a subset of many conflicts names some of them and counts the others."""
    names = "abcde"
    pairs = [(i, j) for i in names for j in names if i < j]
    lines = told(chain(*5 * [2], conflicts=pairs, capacity=9))
    assert sum("conflict though" in line for line in lines) == 5
    assert "5 more of this kind." in lines
