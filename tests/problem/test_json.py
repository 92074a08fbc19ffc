"""Tests of problem.formats.json: the schema, round trips, and documents that are not good."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strategies
from documents import changed
from hypothesis import given
from hypothesis import strategies as st

from memplan.base.errors import FormatError, MemplanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.formats.json import read_plan, read_problem, write_plan, write_problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify

FULL = Problem(
    [
        Buffer("b1", start=0, end=3, size=4),
        Buffer(
            "b2",
            start=3,
            end=9,
            size=4,
            alignment=4,
            pin=0,
            hint=8,
            gaps=(Gap(4, 5), Gap(6, 7, (0, 2))),
        ),
    ],
    capacity=12,
    reserved=[(16, 32)],
)

FULL_TEXT = """\
{
  "memplan": {"kind": "problem", "version": 1},
  "capacity": 12,
  "reserved": [[16, 32]],
  "buffers": [
    {"id": "b1", "start": 0, "end": 3, "size": 4},
    {"id": "b2", "start": 3, "end": 9, "size": 4, "alignment": 4, "pin": 0, "hint": 8, \
"gaps": [{"start": 4, "end": 5}, {"start": 6, "end": 7, "window": [0, 2]}]}
  ]
}
"""


def problem_refusal(text: str) -> str:
    """Return the sentence with which a text is refused as a problem."""
    with pytest.raises(FormatError) as caught:
        read_problem(text, "p.json")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def plan_refusal(text: str) -> str:
    """Return the sentence with which a text is refused as a plan."""
    with pytest.raises(FormatError) as caught:
        read_plan(text, "p.json")
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestProblems:
    """Problems there and back."""

    def test_text(self) -> None:
        """Tests the text of a problem with everything, which is the schema's documentation."""
        assert write_problem(FULL) == FULL_TEXT
        assert read_problem(FULL_TEXT, "p") == FULL

    @given(strategies.problems(names=strategies.ids() | st.just("\0")))
    def test_round_trip(self, problem: Problem) -> None:
        """Tests that a problem survives, capacity, reserved ranges and all."""
        again = read_problem(write_problem(problem), "p")
        assert again == problem
        assert again.fingerprint == problem.fingerprint

    def test_nothing_may_be_said_as_null(self) -> None:
        """Tests that null is none for what may be left out."""
        text = write_problem(Problem([Buffer("a", 0, 3, 4, gaps=(Gap(1, 2),))]))
        for path in ("capacity", "buffers.0.pin", "buffers.0.hint", "buffers.0.alignment"):
            text = changed(text, path, None)
        text = changed(text, "buffers.0.gaps.0.window", None)
        assert list(read_problem(text, "p").buffers) == [Buffer("a", 0, 3, 4, gaps=(Gap(1, 2),))]

    def test_capacity_of_the_caller(self) -> None:
        """Tests that a capacity that the caller gives is taken in place of the file's."""
        assert read_problem(FULL_TEXT, "p", capacity=20).capacity == 20

    @pytest.mark.parametrize(
        ("path", "value", "sentence"),
        [
            (
                "memplan",
                ...,
                'the file is JSON, but not of memplan: it does not contain "memplan": {"kind"',
            ),
            ("memplan.kind", "plan", 'is of the kind "plan", not "problem"; give the problem or'),
            ("memplan.date", 1, "is JSON, but not of memplan"),
            ("color", 1, 'the document has the unknown field "color"'),
            ("buffers", ..., 'the document has no field "buffers"'),
            ("buffers", None, "buffers is null; it must be an array"),
            ("buffers", {}, "buffers is an object; it must be an array"),
            ("buffers.1", 7, "buffers[1] is 7; it must be an object"),
            ("buffers.1.size", ..., 'buffers[1] has no field "size"'),
            ("buffers.1.Size", 4, 'buffers[1] has the unknown field "Size"'),
            ("buffers.1.size", 4.0, 'buffers[1]: buffer "b2": size is 4.0; it must be a whole'),
            ("buffers.1.size", True, 'buffers[1]: buffer "b2": size is True; it must be a whole'),
            ("buffers.1.size", "4", 'buffers[1]: buffer "b2": size is "4"; it must be a whole'),
            ("buffers.1.size", None, 'buffers[1]: buffer "b2": size is None; it must be a whole'),
            ("buffers.1.size", {}, 'buffers[1]: buffer "b2": size is a dict; it must be a whole'),
            ("buffers.1.size", -4, 'buffers[1]: buffer "b2": size is -4'),
            ("buffers.1.size", 1 << 70, "does not fit in 64 bits"),
            ("buffers.1.end", 3, 'buffers[1]: buffer "b2": end is 3, not after start (3)'),
            ("buffers.1.id", "b1", 'buffers[1]: buffer "b1": the id occurs twice'),
            ("buffers.1.id", 7, "buffers[1]: the id of buffer number 1 is 7; it must be a string"),
            ("buffers.1.alignment", 0, 'buffers[1]: buffer "b2": alignment is 0'),
            ("buffers.1.pin", 10, 'buffers[1]: buffer "b2": pin is 10, not a multiple'),
            ("buffers.1.gaps", 0, "buffers[1].gaps is 0; it must be an array"),
            ("buffers.1.gaps.0", [4, 5], "buffers[1].gaps[0] is an array; it must be an object"),
            ("buffers.1.gaps.0.end", ..., 'buffers[1].gaps[0] has no field "end"'),
            ("buffers.1.gaps.0.end", 10, 'buffers[1]: buffer "b2": gap [4, 10) is not inside'),
            ("buffers.1.gaps.0.end", "5", 'buffers[1]: buffer "b2": gap end is "5"'),
            ("buffers.1.gaps.1.window", [0], "buffers[1].gaps[1].window is an array; it must be ["),
            ("buffers.1.gaps.1.window", [-1, -1], "buffers[1].gaps[1].window is an array"),
            (
                "buffers.1.gaps.1.window",
                [0, 5],
                'buffers[1]: buffer "b2": gap [6, 7) has the window',
            ),
            ("capacity", 0, "capacity is 0; it must be between 1 and 2^62, or left out"),
            ("capacity", 1.5, "capacity is 1.5; it must be a whole number"),
            ("reserved", None, "reserved is null; it must be an array"),
            ("reserved", [5], "a reserved range must be a pair (lower, upper)"),
            ("reserved", [[4, 4]], "reserved range [4, 4) must have 0 <= lower < upper"),
            ("reserved", [[4, "5"]], 'the upper end of a reserved range is "5"'),
        ],
    )
    def test_bad_documents(self, path: str, value: Any, sentence: str) -> None:
        """Tests that each thing that is wrong is one sentence with its place in the document."""
        said = problem_refusal(changed(FULL_TEXT, path, value))
        assert said.startswith("p.json: ")
        assert sentence in said


class TestPlans:
    """Plans there and back."""

    def test_text(self, five: Problem, five_plan: Plan) -> None:
        """Tests that a plan carries sizes and the fingerprint of its problem."""
        document = json.loads(write_plan(five_plan))
        assert document.pop("buffers")[:2] == [
            {"id": "b1", "size": 4, "offset": 8},
            {"id": "b2", "size": 4, "offset": 8},
        ]
        assert document == {
            "memplan": {"kind": "plan", "version": 1},
            "problem": five.fingerprint,
            "status": "optimal",
            "peak": 12,
            "lower_bound": 12,
            "capacity": 12,
            "solver": "s",
            "stats": {"nodes": 5},
            "conflict": [],
        }
        verify(five.shuffled(1), read_plan(write_plan(five_plan), "p"))

    @given(st.data())
    def test_round_trip(self, data: st.DataObject) -> None:
        """Tests that a plan survives whole, with offsets and without."""
        problem = data.draw(strategies.problems(names=strategies.ids()))
        plan = data.draw(strategies.plans(problem))
        assert read_plan(write_plan(plan), "p") == plan

    def test_without_a_fingerprint(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan whose problem is not known stays so."""
        plan = Plan(ids=five.ids, size=five.size, offsets=five_offsets)
        assert read_plan(write_plan(plan), "p").fingerprint is None

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x"])
    def test_stats_that_json_cannot_carry(self, five: Problem, value: object) -> None:
        """Tests that stats that would not come back are refused."""
        plan = Plan.of(five, None, status=Status.UNKNOWN, stats={"x": value})
        with pytest.raises(MemplanError, match="JSON cannot store the statistics of this plan"):
            write_plan(plan)

    @pytest.mark.parametrize(
        ("path", "value", "sentence"),
        [
            ("memplan.kind", "problem", 'the file is of the kind "problem", not "plan"'),
            ("problem", ..., 'the document has no field "problem"'),
            ("problem", 7, "problem is 7; it must be a string"),
            ("status", "good", 'status is "good"; it must be one of optimal, fits, feasible, '),
            ("status", [], "status is an array; it must be one of"),
            ("peak", 12.5, "peak is 12.5; it must be a whole number"),
            ("lower_bound", "12", 'lower_bound is "12"; it must be a whole number'),
            ("capacity", True, "capacity is true; it must be a whole number"),
            ("solver", 3, "solver is 3; it must be a string"),
            ("stats", [], "stats is an array; it must be an object"),
            ("conflict", "b1", 'conflict is "b1"; it must be an array'),
            ("conflict", ["b1", 3], "conflict[1] is 3; it must be a string"),
            ("speed", 3, 'the document has the unknown field "speed"'),
            (
                "buffers.1.offset",
                ...,
                'buffers[1]: buffer "b2": offset is None; it must be a whole',
            ),
            ("buffers.1.offset", -1, 'buffers[1]: buffer "b2": offset is -1'),
            ("buffers.1.offset", 8.0, 'buffers[1]: buffer "b2": offset is 8.0'),
            ("buffers.1.size", ..., 'buffers[1] has no field "size"'),
            ("buffers.1.size", "4", 'buffers[1]: buffer "b2": size is "4"'),
            ("buffers.1.start", 4, 'buffers[1] has the unknown field "start"'),
            ("buffers.1.id", "b1", 'buffers[1]: buffer "b1": the id occurs twice'),
        ],
    )
    def test_bad_documents(
        self, five: Problem, five_offsets: list[int], path: str, value: Any, sentence: str
    ) -> None:
        """Tests that each thing that is wrong is one sentence with its place in the document."""
        text = write_plan(Plan.of(five, five_offsets))
        said = plan_refusal(changed(text, path, value))
        assert said.startswith("p.json: ")
        assert sentence in said
