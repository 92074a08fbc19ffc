"""Tests of `memplan.compare`: what grew from one problem, model or plan to another."""

from __future__ import annotations

import importlib
from fractions import Fraction
from pathlib import Path

import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import memplan as mp
from memplan.analysis.compare import Comparison, Match, compare, grows_beyond
from memplan.analysis.matching import Names, match_rows
from memplan.base.errors import MemplanError, PlanError
from memplan.base.notes import Code
from memplan.problem import Buffer, Problem, formats
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan
from memplan.programs import sources
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View
from memplan.view import comparison

module = importlib.import_module("memplan.analysis.compare")


def ids(matches: tuple[Match, ...]) -> list[str]:
    """Return the ids of some matches."""
    return [match.id for match in matches]


def test_what_grew(five: Problem) -> None:
    """Tests every list on one example, each with the most bytes first."""
    b1, b2, _, _, b5 = five.buffers
    new = Buffer("b6", 3, 9, 6)
    bigger, smaller = Buffer("b3", 0, 9, 7), Buffer("b4", 9, 21, 1)
    found = mp.compare(five, Problem([b1, b2, bigger, smaller, new]))
    assert ids(found.added) == ["b6"]
    assert ids(found.removed) == [b5.id]
    assert found.grown == (Match("b3", "b3", 4, 7),)
    assert found.shrunk == (Match("b4", "b4", 4, 1),)
    assert found.renamed == ()
    assert (found.before.peak, found.after.peak) == (12, 17)
    assert (found.before.load, found.after.load) == (12, 17)
    assert (found.before.naive, found.after.naive) == (20, 22)
    assert (found.before.start, found.before.end) == (0, 3)
    assert (found.after.start, found.after.end) == (3, 9)
    assert found.before.proved
    assert found.after.proved
    assert ids(found.arrived) == ["b6", "b2"]
    assert ids(found.left) == ["b1", "b5"]
    assert [match.grown for match in found.grown + found.shrunk] == [3, -3]


@given(strategies.problems(features=frozenset({"zero", "gaps"})))
def test_a_problem_does_not_differ_from_itself(problem: Problem) -> None:
    """Tests that nothing is listed, whatever the order of the buffers."""
    found = compare(problem, problem.shuffled(1))
    assert found.before == found.after
    for name in ("added", "removed", "grown", "shrunk", "renamed", "arrived", "left", "notes"):
        assert getattr(found, name) == ()


@settings(max_examples=50)
@given(
    strategies.problems(features=frozenset({"zero"}), names=st.sampled_from("abcdefgh")),
    strategies.problems(features=frozenset({"zero"}), names=st.sampled_from("abcdefgh")),
)
def test_everybody_is_somewhere(one: Problem, other: Problem) -> None:
    """Tests that all buffers are accounted for, once, and that the way back is the mirror."""
    there, back = compare(one, other), compare(other, one)
    assert (there.before, there.after) == (back.after, back.before)
    assert len(one) - len(there.removed) == len(other) - len(there.added)
    difference = sum(match.grown for match in there.added + there.removed)
    difference += sum(match.grown for match in there.grown + there.shrunk)
    assert there.after.naive - there.before.naive == difference
    assert ids(there.added) == ids(back.removed)
    assert ids(there.grown) == [match.before for match in back.shrunk]
    live = live_at(other, there)
    assert {match.after for match in there.arrived} <= live
    stayed = live - {match.after for match in there.arrived}
    assert all(match.before not in stayed for match in there.left if match.after == match.before)


def live_at(problem: Problem, found: Comparison) -> set[str]:
    """Return the buffers that are live in the section of the peak after."""
    loads = Loads(problem)
    if found.after.start is None:
        return set()
    section = loads.start.tolist().index(found.after.start)
    return {each.id for each in loads.held(section)}


class TestWhoIsWho:
    """Matching by id, by tensor, and by what only one buffer on either side looks like."""

    def test_by_id_first(self) -> None:
        """Tests that an id is believed, whatever the shape."""
        before = Names(["a", "b"], [["a"], ["b"]], [1, 2])
        after = Names(["b", "a"], [["b"], ["a"]], [1, 2])
        assert match_rows(before, after) == [1, 0]

    def test_by_a_tensor_that_shares_the_memory(self) -> None:
        """Tests another base, and that a name that two buffers have does not decide."""
        before = Names(["x", "p"], [["x", "view"], ["p", "v1", "v2"]], None)
        after = Names(["view", "v1", "v2"], [["view", "x"], ["v1"], ["v2"]], None)
        assert match_rows(before, after) == [0, -1, -1]

    def test_by_shape_where_there_is_one_of_each(self) -> None:
        """Tests that two that look the same are not guessed at."""
        before = Names("abc", ["a", "b", "c"], [(4, 0, 1), (8, 0, 1), (8, 0, 1)])
        after = Names("xyz", ["x", "y", "z"], [(8, 0, 1), (4, 0, 1), (9, 0, 1)])
        assert match_rows(before, after) == [-1, 0, -1]
        assert match_rows(before._replace(shapes=None), after) == [-1, -1, -1]

    def test_the_maker_counts(self) -> None:
        """Tests models: the same shape by another type of operator is another buffer."""

        def model(name: str, type: str) -> sources.Loaded:
            tensors = (Tensor("in", 8, Kind.INPUT), Tensor(name, 8), Tensor(f"{name} view", 8))
            operators = (Operator("op", type, (0,), (1,)), Operator("flat", "View", (1,), (2,)))
            return sources.of_graph(Graph("net", tensors, operators, (0,), views=(View(2, 1),)))

        found = compare(model("old", "Conv"), model("new", "Conv"))
        assert found.renamed == (Match("old", "new", 8, 8),)
        other = compare(model("old", "Conv"), model("new", "Pool"))
        assert (ids(other.removed), ids(other.added)) == (["old"], ["new"])


class TestTwoPrograms:
    """Growth from one program to another one says nothing."""

    @staticmethod
    def draw(names: str, sizes: tuple[int, ...]) -> Problem:
        """Return buffers with these names and sizes."""
        return Problem(
            [Buffer(*row) for row in zip(names, (0, 1, 2), (3, 4, 5), sizes, strict=True)]
        )

    @pytest.mark.parametrize(
        ("names", "sizes", "apart"),
        [
            ("xyz", (4, 5, 6), True),
            ("xyz", (1, 5, 6), True),
            ("xyz", (1, 2, 6), False),
            ("ayz", (4, 5, 6), False),
        ],
    )
    def test_buffers_that_look_the_same_by_chance(
        self, names: str, sizes: tuple[int, ...], apart: bool
    ) -> None:
        """Tests none of three, one by chance, a program that was renamed, and a common name."""
        found = compare(self.draw("abc", (1, 2, 3)), self.draw(names, sizes))
        assert found.shares_nothing == apart
        assert not compare(Problem([]), self.draw(names, sizes)).shares_nothing


class TestPlans:
    """Plans from memory and from files."""

    def test_its_own_peak(self, five: Problem, five_offsets: list[int], tmp_path: Path) -> None:
        """Tests that a plan is not planned again, that its live set is that of its peak."""
        worse = Plan.of(five.with_capacity(None), [0, 0, 4, 12, 8])
        best = Plan.of(five, five_offsets, status="optimal", lower_bound=12)
        found = compare(best, worse)
        assert (found.before.peak, found.after.peak) == (12, 16)
        assert (found.before.proved, found.after.proved) == (True, False)
        assert (found.after.start, found.after.end) == (9, 21)
        assert ids(found.arrived) == ["b4"]
        formats.save(worse, tmp_path / "worse.csv")
        again = compare(best, formats.load_plan(tmp_path / "worse.csv"))
        assert (again.arrived, again.left) == (found.arrived, found.left)

    def test_without_lifetimes(
        self, five: Problem, five_offsets: list[int], tmp_path: Path
    ) -> None:
        """Tests that what a plan in JSON does not tell is said, and not guessed."""
        path = tmp_path / "plan.json"
        formats.save(Plan.of(five, five_offsets), path)
        for one, other in ((formats.load_plan(path), five), (five, formats.load_plan(path))):
            found = compare(one, other)
            assert (found.arrived, found.left, found.added, found.removed) == ((), (), (), ())
            (note,) = found.notes
            assert note.code == Code.LIFETIMES_UNKNOWN
            assert found.before.notes + found.after.notes == (note,)
        assert (found.after.load, found.after.start, found.after.peak) == (None, None, 12)

    def test_a_peak_that_is_not_true(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a gate cannot be passed by a claim."""
        plan = Plan(ids=five.ids, size=five.size, offsets=five_offsets, peak=8)
        with pytest.raises(PlanError, match="claims a peak of 8, but its offsets reach 12"):
            compare(plan, five)

    def test_no_plan(self, five: Problem) -> None:
        """Tests a plan file that says that there is none, and a problem that has none."""
        none = Plan.of(five, None, status="infeasible")
        assert compare(five, none).after.peak is None
        assert compare(none, none).arrived == ()


def test_the_capacity_does_not_matter(five: Problem) -> None:
    """Tests that a problem that does not fit has a peak all the same."""
    found = compare(five, five.with_capacity(9))
    assert found.before == found.after


def test_the_same_problem_is_planned_once(five: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that two searches that the clock cuts short cannot say that the same thing grew."""
    asked = []

    def once(problem: Problem, **limits: object) -> Plan:
        asked.append(limits["timeout"])
        return quick_plan(problem, **limits)

    quick_plan = module.quick_plan
    monkeypatch.setattr(module, "quick_plan", once)
    compare(five, five.shuffled(3), timeout=5)
    assert asked == [5]


@pytest.mark.parametrize("what", [None, 7, "five.csv", [Buffer("a", 0, 1, 1)]])
def test_other_things_are_refused(five: Problem, what: object) -> None:
    """Tests that a path has to be loaded first."""
    with pytest.raises(MemplanError, match="neither a problem nor a plan; load it first"):
        compare(five, what)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "limit", "beyond"),
    [
        (100, 101, Fraction(1, 100), False),
        (100, 102, Fraction(1, 100), True),
        (0, 1, Fraction(1), True),
        (0, 0, Fraction(0), False),
        (100, 100, 0, False),
        (100, 101, 0, True),
        (100, 104, 4, False),
        (100, 50, 0, False),
        (1 << 62, (1 << 62) + 1, Fraction(0), True),
    ],
)
def test_growth(before: int, after: int, limit: int | Fraction, beyond: bool) -> None:
    """Tests shares and bytes at their edges, exactly."""
    assert grows_beyond(before, after, limit) is beyond


def test_words(five: Problem, five_offsets: list[int]) -> None:
    """Tests the answer in one sentence: the same, more, less, not known."""
    best = Plan.of(five, five_offsets, status="optimal", lower_bound=12)
    worse = Plan.of(five.with_capacity(None), [0, 0, 4, 12, 8])
    none = Plan.of(five, None)
    for one, other, sentence in (
        (best, best, "The peak is the same, 12 bytes; both are proved to be optimal."),
        (
            best,
            worse,
            "The peak grew by 4 bytes (33.3 %), to 16 bytes; less is not ruled out after.",
        ),
        (
            worse,
            best,
            "The peak shrank by 4 bytes (25.0 %), to 12 bytes; less was not ruled out before.",
        ),
        (worse, worse, "The peak is the same, 16 bytes; less is not ruled out in either."),
        (best, none, "There is no plan after, so the peaks cannot be compared."),
        (none, best, "There is no plan before, so the peaks cannot be compared."),
        (none, none, "There is no plan before or after, so the peaks cannot be compared."),
    ):
        assert comparison.make_report(compare(one, other), ("a", "b")).sentences[0] == sentence
    empty = compare(Problem([]), five)
    assert (
        comparison.make_report(empty, ("a", "b"))
        .sentences[0]
        .startswith("The peak grew by 12 bytes,")
    )
