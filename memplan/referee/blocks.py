"""The referee of blocks of limited size: each buffer is in one block, and each block is an arena.

A block is at most as high as the limit, or as the largest item in it, a buffer or a whole group.

It knows nothing of the one arena with strips in which the planner looks for blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memplan.base.errors import PlanError, quoted
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import NONE
from memplan.problem.plan import Plan
from memplan.referee.plans import verify

__all__ = ["verify_blocks"]


def verify_blocks(
    problem: Asked,
    limit: int,
    plans: Sequence[Plan],
    *,
    count_bound: int = 0,
    total_bound: int = 0,
) -> int:
    """Check plans of blocks: all constraints of the problem hold in each, and none is too high.

    A block with a buffer or a group that is larger than the limit may have as many bytes as that.

    Parameters
    ----------
    problem
        All buffers. Pins and reserved ranges are addresses in every block.
    limit
        The most bytes of a block.
    plans
        Of the buffers of each block.
    count_bound, total_bound
        Claimed: the least number of blocks, and the fewest bytes of so many blocks. They are not
        proved here, but may not exceed what the plans have.

    Returns
    -------
    int
        The bytes of all blocks.

    Raises
    ------
    PlanError
        One sentence about the first error: a buffer in no block or in two, a group in two blocks, a
        block above the limit, a wrong bound, or as `verify` with the number of the block.
    """
    whole = problem_of(problem)
    where: dict[str, int] = {}
    known, total, extents = set(whole.ids), 0, _measure_items(whole)
    for number, plan in enumerate(plans, 1):
        for id in plan.ids:
            if id not in known:
                raise PlanError(
                    f"block {number}: buffer {quoted(id)} is in the plan but not in the problem"
                )
            if id in where:
                raise PlanError(
                    f"buffer {quoted(id)} is in the blocks {where[id]} and {number}; each buffer "
                    "is in one"
                )
            where[id] = number
        rows = np.array([whole.index(id) for id in plan.ids], np.int64)
        most = max([limit, *(extents[row] for row in rows.tolist())])
        try:
            verify(whole.subset(rows).with_capacity(most), plan)
        except PlanError as error:
            raise PlanError(f"block {number}: {error}") from None
        total += plan.peak or 0
    for id in whole.ids:
        if id not in where:
            raise PlanError(f"buffer {quoted(id)} is in no block")
    _check_groups(whole.group.tolist(), [where[id] for id in whole.ids], whole.ids)
    if count_bound > len(plans):
        raise PlanError(
            f"the claimed least number of blocks is {count_bound}, above their number {len(plans)}"
        )
    if total_bound > total:
        raise PlanError(f"the claimed lower bound {total_bound} is above the {total} bytes in all")
    return total


def _measure_items(problem: Problem) -> list[int]:
    """Return by row the bytes of the buffer, or of the group that it is in."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    columns = (each.tolist() for each in (problem.group, problem.lead, problem.size))
    rows = [(group, lead, lead + size) for group, lead, size in zip(*columns, strict=True)]
    for group, lower, upper in rows:
        begin[group] = min(begin.get(group, lower), lower)
        end[group] = max(end.get(group, upper), upper)
    return [
        upper - lower if group == NONE else end[group] - begin[group]
        for group, lower, upper in rows
    ]


def _check_groups(groups: Sequence[int], blocks: Sequence[int], ids: Sequence[str]) -> None:
    first: dict[int, int] = {}
    for row, group in enumerate(groups):
        if group != NONE and blocks[first.setdefault(group, row)] != blocks[row]:
            raise PlanError(
                f"buffers {quoted(ids[first[group]])} and {quoted(ids[row])} are of one group, but "
                f"in the blocks {blocks[first[group]]} and {blocks[row]}"
            )
