"""Valid plans of no use: some buffers lie higher than they have to."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from memplan import solve
from memplan.base.errors import PlanError
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee import verify


def units(problem: Problem) -> list[list[int]]:
    """Return the rows that move together: groups, and all others alone."""
    inside = {row for group in problem.groups for row in group}
    return [list(group) for group in problem.groups] + [
        [row] for row in range(len(problem)) if row not in inside
    ]


def moved(problem: Problem, offsets: list[int], rows: list[int], by: int) -> list[int] | None:
    """Return offsets in which some rows lie elsewhere, or `None` where that is not legal."""
    new = [offset + by if row in rows else offset for row, offset in enumerate(offsets)]
    try:
        verify(problem, Plan.of(problem, new))
    except PlanError:
        return None
    return new


@st.composite
def planned(draw: DrawFn, asked: SearchStrategy[Problem]) -> tuple[Problem, Plan]:
    """Problems without a capacity, each with a valid plan that need not be tight."""
    problem = draw(asked).with_capacity(None)
    plan = solve(problem, "greedy")
    assume(plan.offsets is not None)
    assert plan.offsets is not None
    offsets = plan.offsets.tolist()
    for rows in draw(st.permutations(units(problem))):
        offsets = moved(problem, offsets, rows, draw(st.integers(0, 12))) or offsets
    return problem, Plan.of(problem, offsets)
