"""What `memplan.explain` claims, against brute force."""

from __future__ import annotations

import oracle

from memplan.analysis.explain import Explanation
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status


def brute_force(problem: Problem, *, objective: str, **_: object) -> Plan:
    """Answer as `memplan.solve` does, by trying everything."""
    capacity = problem.capacity if objective == "fit" else oracle.minimum_peak(problem)
    offsets = None if capacity is None else oracle.fit(problem, capacity)
    status = Status.INFEASIBLE if offsets is None else Status.OPTIMAL
    bound = capacity if objective == "min_peak" and capacity is not None else 0
    if offsets is not None and objective == "fit":
        status = Status.FITS
    return Plan.of(problem, offsets, status=status, lower_bound=bound, stats={"nodes": 1})


def assert_irreducible(problem: Problem, found: Explanation) -> None:
    """Assert that the subset does not fit, and does without any one of its buffers."""
    assert problem.capacity is not None
    assert found.irreducible
    rows = [problem.index(id) for id in found.subset]
    assert oracle.fit(problem.subset(rows), problem.capacity) is None
    for row in rows:
        rest = [other for other in rows if other != row]
        assert oracle.fit(problem.subset(rest), problem.capacity) is not None
    sizes = problem.size[rows].tolist()
    assert sizes == sorted(sizes, reverse=True)
