"""Chooses the buffers for fast memory: the most valuable that fit (TelaMalloc, section 7.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError, PlanError
from memplan.machine.memories.memory import Memory
from memplan.machine.memories.question import Question
from memplan.machine.memories.search import find_assignment
from memplan.machine.repack.packing import Clock, Packing
from memplan.machine.repack.repacker import Repacker, require_lifetimes
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import MAX_BYTES, whole_number
from memplan.problem.intake import take_capacity
from memplan.problem.plan import Plan, Status
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

    It is the choice of `memplan.machine.memories.assign` between this memory and one without a
    limit. Where that is not proved to be the best, buffers are also chosen by falling benefit for
    each byte and unit of time, as in compilers. Then rejected buffers replace others with less
    benefit, if a repair or the exact search finds room, and the choice is repeated for random
    stretches of time.

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
    free = problem.with_capacity(None)  # a pin above the capacity only says what is not chosen
    clock = Clock.of(timeout, nodes)
    bound, placed, spent = _assign(free, benefit, limit, forced, timeout, nodes)
    clock.spent += spent if nodes is not None else 0
    where: Plan | Repacker | None = placed
    known = {problem.index(id) for id in placed.ids} if placed is not None else set()
    value = sum(benefit[row] for row in known)
    status = Status.OPTIMAL
    if placed is None or value < bound:
        packing = Packing(free, limit, benefit, forced, clock, seed)
        status = packing.run(bound, known)
        if placed is None or packing.value > value:
            known, value = packing.chosen, packing.value
            where = packing.repacker if status.has_plan else None
        elif not status.has_plan:
            status = Status.FEASIBLE
    part = free.subset(sorted(known)).with_capacity(limit)
    plan = None
    if where is not None:
        offsets = [where.offset(id) for id in part.ids]
        plan = Plan.of(part, offsets, lower_bound=lower_bound(part), solver="repacker")
    elif status is Status.INFEASIBLE:
        bound = 0
    return Selection(part.ids, value, bound, status, part, plan, max(spent, clock.spent))


def _assign(
    problem: Problem,
    benefit: list[int],
    capacity: int,
    forced: npt.NDArray[np.bool_],
    timeout: float | None,
    nodes: int | None,
) -> tuple[int, Plan | None, int]:
    """Choose as between a memory where nothing costs, and one that costs the benefits.

    Returns a bound that no choice exceeds, a plan of the best one that was found, and the nodes
    spent.
    """
    total = sum(benefit)
    coarse = max(0, total.bit_length() - 52)  # the core adds up to 2^53; rounded up, so as to bound
    costs = [(-(-each >> coarse), 0) for each in benefit]
    memories = (Memory("fast", capacity, 0, 0), Memory("elsewhere"))
    allowed = {problem.ids[row]: ("fast",) for row in np.flatnonzero(forced).tolist()}
    share = None if nodes is None else max(1, nodes // 2)
    half = None if timeout is None else timeout / 2
    try:
        question = Question(problem, memories, costs, allowed)
        found = find_assignment(question, half, share)
    except PlanError:
        return total, None, 0
    most = sum(cost for cost, _ in costs) - found.bound
    return min(total, most << coarse), found.plans[0], found.nodes


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
