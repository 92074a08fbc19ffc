"""The referee: checks a plan against a problem, and trusts no claim of the plan.

It shares no code with solvers and uses no native code. So a plan that passes is safe to run,
whatever solver made it and whatever format stored it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from memplan.base.errors import PlanError, quoted
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import NONE, Column
from memplan.problem.plan import Plan, Status
from memplan.problem.spans import first_overlap, first_shared, reserved_hit, spans

__all__ = ["verify"]


def verify(problem: Asked, plan: Plan) -> None:
    """Check that a plan is valid for a problem and that its claims are true; raise otherwise.

    The checks, in this order: the plan has offsets; it was made for this problem (by the
    fingerprint, ids, sizes and lifetimes that it has); capacity, alignment, pins and reserved
    ranges; groups; no two buffers hold a common address at the same time, or at any time if they
    conflict explicitly; its claims about peak, lower bound and status agree with its offsets. The
    buffers of a plan may be in another order than those of the problem. A claimed lower bound or
    infeasibility is not proved here; a plan is only optimal if its peak equals its bound.

    Parameters
    ----------
    problem
        The problem, or the result of `memplan.load`. Its capacity is checked, even if the plan was
        made for another capacity.
    plan
        The plan to check.

    Raises
    ------
    PlanError
        One sentence about the first error; for an overlap it names both buffers, the time and the
        bytes that both hold. A plan without offsets is always rejected.

    Notes
    -----
    O(s log s) in the number of spans (`memplan.problem.spans`); one to three seconds for a million.
    """
    problem = problem_of(problem)
    if plan.offsets is None:
        raise PlanError(f"the plan has no offsets to verify (its status is {plan.status})")
    offset = plan.offsets[_match_rows(problem, plan)]
    _check_offsets(problem, offset)
    _check_groups(problem, offset)
    _check_overlaps(problem, offset)
    _check_claims(problem, plan, offset)


def _match_rows(problem: Problem, plan: Plan) -> npt.NDArray[np.intp] | slice:
    """Return the row in the plan of every buffer of the problem."""
    if plan.problem is not None and plan.problem.same_rows(problem):
        return slice(None)
    rows: npt.NDArray[np.intp] | slice = slice(None)
    if plan.ids != problem.ids:
        row_of = {name: row for row, name in enumerate(plan.ids)}
        for name in problem.ids:
            if name not in row_of:
                raise PlanError(f"buffer {quoted(name)} is in the problem but not in the plan")
        if len(row_of) != len(problem):
            known = set(problem.ids)
            extra = next(name for name in plan.ids if name not in known)
            raise PlanError(f"buffer {quoted(extra)} is in the plan but not in the problem")
        rows = np.array([row_of[name] for name in problem.ids], dtype=np.intp)

    _check_same(problem, "size", problem.size, plan.size[rows])
    if plan.start is not None:
        _check_same(problem, "start", problem.start, plan.start[rows])
    if plan.end is not None:
        _check_same(problem, "end", problem.end, plan.end[rows])
    if plan.fingerprint is not None and plan.fingerprint != problem.fingerprint:
        raise PlanError(
            "the plan was made for another problem: the fingerprints differ, though ids and sizes "
            "are the same (look at lifetimes, alignments, pins, gaps, reserved ranges, conflicts "
            "and groups)"
        )
    return rows


def _check_same(problem: Problem, field: str, asked: Column, planned: Column) -> None:
    _reject(
        problem,
        asked != planned,
        lambda i: f"{field} is {planned[i]} in the plan but {asked[i]} in the problem",
    )


def _check_offsets(problem: Problem, offset: Column) -> None:
    """Check the constraints that concern one buffer alone."""
    size, unit, pin = problem.size, problem.alignment, problem.pin
    limit = problem.capacity
    if limit is not None:
        _reject(
            problem,
            offset + size > limit,
            lambda i: f"offset {offset[i]} + size {size[i]} is beyond the capacity {limit}",
        )
    _reject(
        problem,
        offset % unit != 0,
        lambda i: f"offset {offset[i]} is not a multiple of its alignment {unit[i]}",
    )
    _reject(
        problem,
        (pin != NONE) & (offset != pin),
        lambda i: f"offset {offset[i]} is not its pin {pin[i]}",
    )
    if problem.reserved:
        block = reserved_hit(problem, offset)
        _reject(
            problem,
            block >= 0,
            lambda i: (
                f"its bytes [{offset[i]}, {offset[i] + size[i]}) touch the reserved range "
                f"{problem.reserved[block[i]]}"
            ),
        )


def _check_overlaps(problem: Problem, offset: Column) -> None:
    overlap = first_overlap(spans(problem), offset)
    if overlap is not None:
        first, second = problem.label(overlap.first), problem.label(overlap.second)
        raise PlanError(
            f"{first} and {second} overlap: at time {overlap.time} both hold "
            f"the bytes [{overlap.lower}, {overlap.upper})"
        )
    common = first_shared(problem, offset)
    if common is not None:
        first, second = problem.label(common.first), problem.label(common.second)
        raise PlanError(
            f"{first} and {second} conflict, but both hold the bytes "
            f"[{common.lower}, {common.upper})"
        )


def _check_groups(problem: Problem, offset: Column) -> None:
    """Check that the members of each group lie at their distances from its first member."""
    origin = offset - problem.lead
    for rows in problem.groups:
        first = rows[0]
        for row in rows[1:]:
            if origin[row] != origin[first]:
                apart = problem.lead[row] - problem.lead[first]
                raise PlanError(
                    f"{problem.label(row)} is at {offset[row]}, not {apart} bytes behind "
                    f"{problem.label(first)} ({offset[first]}) as their group asks",
                    row=row,
                )


def _check_claims(problem: Problem, plan: Plan, offset: Column) -> None:
    peak = int((offset + problem.size).max()) if len(problem) else 0
    if plan.peak != peak:
        raise PlanError(f"the plan claims a peak of {plan.peak}, but its offsets reach {peak}")
    if plan.lower_bound > peak:
        raise PlanError(
            f"the plan claims the lower bound {plan.lower_bound}, above its peak {peak}"
        )
    if plan.capacity is not None and peak > plan.capacity:
        raise PlanError(f"the plan claims to keep the capacity {plan.capacity}; its peak is {peak}")
    if not plan.status.has_plan:
        raise PlanError(f"the plan has offsets, but its status is {plan.status}")
    if plan.status is Status.OPTIMAL and plan.lower_bound < peak:
        raise PlanError(
            f"the plan claims to be optimal, but its peak {peak} is above its lower bound "
            f"{plan.lower_bound}"
        )
    if plan.status is Status.FITS and plan.capacity is None:
        raise PlanError("the plan claims to fit, but it has no capacity that it was asked to fit")


def _reject(problem: Problem, bad: npt.NDArray[np.bool_], say: Callable[[int], str]) -> None:
    """Raise for the first row that is `bad`; `say` describes what is wrong with it."""
    if bad.any():
        row = int(bad.argmax())
        raise PlanError(f"{problem.label(row)}: {say(row)}", row=row)
