"""Tests of memplan.problem.plan: what a plan says, and what it refuses to hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import plans, problems

from memplan.base.errors import PlanError
from memplan.problem import Buffer, Problem
from memplan.problem.columns import frozen
from memplan.problem.plan import Plan, Status


class TestOf:
    """Plans made for a problem in memory."""

    def test_worked_example(self, five: Problem, five_offsets: list[int], five_plan: Plan) -> None:
        """Tests all that a plan says of the solution in Figure 2 of MiniMalloc."""
        plan = five_plan
        assert plan.peak == plan.lower_bound == plan.capacity == 12
        assert plan.gap == 0.0
        assert plan.has_offsets
        assert [plan.offset(id) for id in five.ids] == five_offsets
        assert "b1" in plan
        assert "b6" not in plan
        assert plan.ids == five.ids
        assert plan.size.tolist() == [4] * 5
        assert plan.fingerprint == five.fingerprint
        assert plan.stats == {"nodes": 5}
        assert len(plan) == 5

    def test_without_offsets(self, five: Problem) -> None:
        """Tests that an answer without offsets has no peak, no gap, and says why."""
        plan = Plan.of(five, None, status=Status.INFEASIBLE, lower_bound=12, conflict=["b1", "b2"])
        assert (plan.offsets, plan.peak, plan.gap) == (None, None, None)
        assert not plan.has_offsets
        assert plan.conflict == ("b1", "b2")
        with pytest.raises(PlanError, match=r"no offsets \(its status is infeasible\)"):
            plan.offset("b1")

    @pytest.mark.parametrize("placed", [True, False])
    def test_of_the_core(self, five: Problem, five_offsets: list[int], placed: bool) -> None:
        """Tests that `of_checked` says the same as `of`, where what it is given is right."""
        says = {"status": Status.FEASIBLE, "lower_bound": 8, "solver": "s", "stats": {"nodes": 5}}
        peak, capacity = 12 if placed else None, five.capacity
        offsets = frozen(np.array(five_offsets)) if placed else None
        plan = Plan.of_checked(five, offsets, peak=peak, capacity=capacity, conflict=["b1"], **says)
        assert plan == Plan.of(five, offsets, conflict=["b1"], **says)

    def test_immutable(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that neither a plan, nor its offsets, nor its stats can be written to."""
        source = np.array(five_offsets)
        plan = Plan.of(five, source)
        source[:] = 0
        assert plan.offsets is not None
        assert plan.offsets.tolist() == five_offsets
        assert not plan.offsets.flags.writeable
        with pytest.raises(AttributeError, match="immutable"):
            plan.peak = 3
        with pytest.raises(TypeError):
            plan.stats["nodes"] = 3  # type: ignore[index]

    @pytest.mark.parametrize(
        ("offsets", "sentence"),
        [
            ([0, 0, 0, 0], "offset has 4 values for 5 buffers"),
            ([0, 0, 0, 0, -1], 'buffer "b5": offset is -1'),
            ([0, 0, 0, 0, (1 << 62) - 3], 'buffer "b5": offset is 4611686018427387901'),
            ([0, 0, 0, 0, 1.5], 'buffer "b5": offset is 1.5; it must be a whole number'),
            ([0, 0, 0, 0, None], "offset is None"),
        ],
    )
    def test_bad_offsets(self, five: Problem, offsets: list[int], sentence: str) -> None:
        """Tests that what cannot be offsets is refused, with the buffer named."""
        with pytest.raises(PlanError) as caught:
            Plan.of(five, offsets)
        assert sentence in str(caught.value)

    def test_unknown_buffer(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that asking for a buffer that is not in the plan names it."""
        with pytest.raises(PlanError, match='no buffer "b6"'):
            Plan.of(five, five_offsets).offset("b6")


class TestGap:
    """The distance between peak and bound."""

    @pytest.mark.parametrize(
        ("size", "offset", "bound", "gap"),
        [(4, 0, 4, 0.0), (4, 1, 4, 0.25), (0, 0, 0, 0.0), (4, 0, 0, None)],
    )
    def test_gap(self, size: int, offset: int, bound: int, gap: float | None) -> None:
        """Tests the gap between peak and bound, also where one of them is 0."""
        problem = Problem([Buffer("a", 0, 1, size)])
        assert Plan.of(problem, [offset], lower_bound=bound).gap == gap

    def test_empty(self) -> None:
        """Tests that the plan of nothing has the peak 0."""
        assert Plan.of(Problem([]), []).peak == 0
        assert Plan.of(Problem([]), []).gap == 0.0


class TestFromParts:
    """Plans made from what a file says."""

    def test_computes_or_keeps_the_peak(self) -> None:
        """Tests that a claimed peak is kept for the referee to judge, a missing one computed."""
        parts = {"ids": ["a", "b"], "size": [4, 4], "offsets": [0, 4]}
        assert Plan(**parts).peak == 8  # type: ignore[arg-type]
        assert Plan(**parts, peak=7).peak == 7  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"ids": ["a", "a"]}, 'buffer "a": the id occurs twice'),
            ({"ids": ["a", 3]}, "it must be a string"),
            ({"size": [4]}, "size has 1 values for 2 buffers"),
            ({"size": [4, "5"]}, 'buffer "b": size is "5"'),
            ({"start": [0]}, "start has 1 values for 2 buffers"),
            ({"offsets": None, "peak": 8}, "a plan without offsets cannot have a peak"),
            ({"lower_bound": 1.5}, "lower_bound is 1.5"),
        ],
    )
    def test_bad_parts(self, changes: dict[str, object], sentence: str) -> None:
        """Tests that parts that do not fit together are refused."""
        parts = {"ids": ["a", "b"], "size": [4, 4], "offsets": [0, 4], **changes}
        with pytest.raises(PlanError) as caught:
            Plan(**parts)  # type: ignore[arg-type]
        assert sentence in str(caught.value)

    @given(st.data())
    def test_equality(self, data: st.DataObject) -> None:
        """Tests that a plan equals the plan of the same parts, and no other."""
        problem = data.draw(problems())
        plan = data.draw(plans(problem))
        parts = {
            "ids": plan.ids,
            "size": plan.size,
            "offsets": plan.offsets,
            "status": plan.status,
            "lower_bound": plan.lower_bound,
            "capacity": plan.capacity,
            "solver": plan.solver,
            "stats": plan.stats,
            "conflict": plan.conflict,
            "fingerprint": plan.fingerprint,
        }
        assert Plan(**parts) == plan
        assert Plan(**{**parts, "solver": "other"}) != plan
        assert Plan(**{**parts, "fingerprint": None}) != plan


class TestSummary:
    """Plans in words."""

    def test_optimal(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests the summary of a plan, line by line."""
        plan = Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12, solver="exact")
        assert plan.summary().splitlines() == [
            "status       optimal",
            "buffers      5",
            "peak         12 bytes",
            "lower bound  12 bytes (gap 0.00%)",
            "capacity     12 bytes",
            "solver       exact",
        ]
        assert repr(plan) == "<Plan: optimal, peak 12, lower bound 12, 5 buffers>"

    def test_fits(self, five: Problem) -> None:
        """Tests that the gap of a fit does not read as a failure of the solver."""
        roomy = five.with_capacity(20)
        plan = Plan.of(roomy, [16, 8, 4, 4, 0], status=Status.FITS, lower_bound=16)
        assert "status       fits" in plan.summary()
        assert "16 bytes (gap 25.00%, at most: a smaller peak was not asked for)" in plan.summary()

    def test_infeasible(self, five: Problem) -> None:
        """Tests that the summary of an infeasible problem speaks of no peak."""
        plan = Plan.of(five, None, status=Status.INFEASIBLE, lower_bound=13, conflict=["b1", "b3"])
        assert "peak" not in plan.summary()
        assert "conflict     2 buffers cannot be placed together" in plan.summary()
