"""Chooses the buffers for fast memory: the most valuable that fit (TelaMalloc, section 7.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from memplan.errors import MemplanError
from memplan.plan import Plan, Status
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import MAX_BYTES, whole_number
from memplan.problem.intake import take_capacity
from memplan.repack.packing import Clock, Packing
from memplan.repack.repacker import require_lifetimes
from memplan.solvers import lower_bound

__all__ = ["Selection", "pack_most_valuable"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen buffers, and a bound on the best choice.

    Attributes
    ----------
    chosen
        Their ids, in the order of the problem's rows.
    value
        The sum of their benefits.
    bound
        Proved: no choice has a greater value.
    status
        `optimal` if `value` is `bound`, else `feasible`; `infeasible` if it is proved that the
        buffers that must be chosen do not fit, `unknown` if that was not decided in time.
    problem
        The problem of the chosen buffers, with the capacity.
    plan
        A plan of that problem, or `None` if there is no choice.
    nodes
        The placements and search nodes that were spent.
    """

    chosen: tuple[str, ...]
    value: int
    bound: int
    status: Status
    problem: Problem
    plan: Plan | None
    nodes: int

    @property
    def gap(self) -> float:
        """How much more the best choice could be worth, as a share of the bound."""
        return 1 - self.value / self.bound if self.bound else 0.0

    def __repr__(self) -> str:
        return (
            f"<Selection: {self.status}, {len(self.chosen)} buffers, value {self.value}, "
            f"bound {self.bound}>"
        )


def pack_most_valuable(
    problem: Asked,
    benefits: Mapping[str, int],
    capacity: int | None = None,
    *,
    must: Iterable[str] = (),
    timeout: float | None = None,
    nodes: int | None = None,
    seed: int = 0,
) -> Selection:
    """Choose the buffers with the greatest benefit together that fit within a capacity.

    The first choice is the better of two: by falling benefit for each byte and unit of time, as in
    compilers, and by the worth of buffers at the prices of the bound. Then rejected buffers replace
    others with less benefit, if a repair or the exact search finds room. Then the choice is
    repeated for random stretches of time. Last, a complete search decides about the few buffers
    that the bound leaves open.

    Parameters
    ----------
    problem
        All buffers, or the result of `memplan.load`. A pin holds only if its buffer is chosen.
    benefits
        By id: the benefit if the buffer is chosen, a whole number from 0. It is 0 for other ids.
    capacity
        Replaces the capacity of the problem.
    must
        Ids of buffers that must be chosen.
    timeout, nodes
        When to stop; see `memplan.solve`. By default it stops after a fixed amount of work.
    seed
        The seed of the searches.

    Returns
    -------
    Selection
        The best choice that was found.

    Raises
    ------
    ProblemError
        For an id that no buffer has.
    UnsupportedError
        For a problem with conflicts or groups.
    MemplanError
        If there is no capacity, for benefits that are not whole numbers from 0 or sum up to more
        than 2^62, and for limits that are out of range.
    Interrupted
        On Ctrl-C.

    Examples
    --------
    >>> import memplan as mp
    >>> problem = mp.Problem(
    ...     [mp.Buffer("a", 0, 4, 6), mp.Buffer("b", 0, 4, 5), mp.Buffer("c", 0, 4, 5)]
    ... )
    >>> best = mp.pack_most_valuable(problem, {"a": 7, "b": 5, "c": 5}, capacity=10)
    >>> best.chosen, best.value, str(best.status)
    (('b', 'c'), 10, 'optimal')
    """
    problem = problem_of(problem)
    require_lifetimes(problem)
    limit = problem.capacity if capacity is None else take_capacity(capacity)
    if limit is None:
        raise MemplanError("pack_most_valuable needs a capacity; the problem has none")
    benefit = _take_benefits(problem, benefits)
    forced = np.zeros(len(problem), dtype=np.bool_)
    forced[[problem.index(id) for id in must]] = True
    clock = Clock.of(timeout, nodes)
    # A pin above the capacity is not an error; the buffer is just not chosen.
    packing = Packing(problem.with_capacity(None), limit, benefit, forced, clock, seed)
    status, bound = packing.run()
    part = problem.with_capacity(None).subset(sorted(packing.chosen)).with_capacity(limit)
    plan = None
    if status.has_plan:
        offsets = [packing.repacker.offset(id) for id in part.ids]
        plan = Plan.of(part, offsets, lower_bound=lower_bound(part), solver="repacker")
    value = packing.value
    return Selection(part.ids, value, bound, status, part, plan, clock.spent)


def _take_benefits(problem: Problem, given: Mapping[str, int]) -> list[int]:
    benefit = [0] * len(problem)
    for id, value in given.items():
        row = problem.index(id)
        benefit[row] = whole_number(value, f"the benefit of {problem.label(row)}", "benefit")
        if benefit[row] < 0:
            raise MemplanError(
                f"the benefit of {problem.label(row)} is {value}; it must not be negative"
            )
    if sum(benefit) > MAX_BYTES:
        raise MemplanError("the benefits sum up to more than 2^62: take a coarser unit")
    return benefit
