"""The referee of plans in which sharing costs: it counts again what they cost."""

from __future__ import annotations

from collections.abc import Mapping

from memplan.base.errors import PlanError, quoted
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.referee.plans import verify

__all__ = ["verify_apart"]


def verify_apart(
    problem: Problem,
    penalties: Mapping[tuple[str, str], int],
    plan: Plan,
    cost: int,
    bound: int = 0,
    peak_bound: int = 0,
) -> int:
    """Check a plan, what it costs, and that bounds do not contradict it.

    Parameters
    ----------
    problem
        The buffers, with the capacity.
    penalties
        By pair of ids: what it costs if they share an address.
    plan
        The plan.
    cost
        What it is said to cost.
    bound, peak_bound
        What is said of all plans: their cost, and the peak of those which cost no more.

    Returns
    -------
    int
        The cost.

    Raises
    ------
    PlanError
        As `verify`; if the plan costs something else, or a bound is above it.
    """
    verify(problem, plan)
    lower = {id: plan.offset(id) for id in problem.ids}
    upper = {id: lower[id] + int(problem.size[row]) for row, id in enumerate(problem.ids)}
    counted = 0
    for (a, b), price in penalties.items():
        for id in (a, b):
            if id not in lower:
                raise PlanError(f"a penalty names {quoted(id)}, which is no buffer of the problem")
        if max(lower[a], lower[b]) < min(upper[a], upper[b]):
            counted += price
    if counted != cost:
        raise PlanError(f"the plan is said to cost {cost}, but it costs {counted}")
    if bound > cost:
        raise PlanError(f"the plan costs {cost}, which is below the bound {bound}")
    peak = max(upper.values(), default=0)
    if peak_bound > peak:
        raise PlanError(f"the plan has a peak of {peak} bytes, below the bound {peak_bound}")
    return counted
