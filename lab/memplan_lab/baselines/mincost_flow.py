"""Shared objects by a min-cost flow over memory reuse (Lee et al. 2019; MemoMalloc, section 2.3).

An arc from buffer i to buffer j means that j gets the object of i, which has ended by then; its
cost is the growth of the object. A new object costs its size. Every buffer gets one unit of flow,
from the source (a new object) or from an earlier buffer, and passes on at most one unit.

    source --0--> i has an object --max(0, size j - size i)--> j has one --0--> sink
    source -------------------------size j-------------------> j has one

The flow is optimal, but the objects may not be: an arc counts the size of the previous buffer, not
that of its object, which may be larger.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.solvers.run import Run
from memplan_lab.baselines._blocks import SharedObject, lay_out

__all__ = ["solve"]

_MOST_ARCS = 1_000_000  # a flow cannot be interrupted, so a flow of many seconds is not started
_MOST_COST = 1 << 60  # OR-tools multiplies costs by the number of nodes, in 64 bits

Ints = npt.NDArray[np.int64]


def solve(run: Run) -> None:
    """Chain the buffers by the flow of least cost, with an object for each chain."""
    problem = run.problem
    rows = np.flatnonzero(problem.size > 0)
    reuses = _find_reuses(problem, rows)
    if reuses is None:
        run.note = f"more than {_MOST_ARCS} reuses are possible: too many for a flow"
        return
    for _ in range(len(problem)):
        if not run.step():
            return
    successors = dict(_solve_flow(problem.size[rows], *reuses)) if len(rows) else {}
    objects = []
    for first in sorted(set(range(len(rows))).difference(successors.values())):
        chain = SharedObject()
        member: int | None = first
        while member is not None:
            chain.add(problem, int(rows[member]))
            member = successors.get(member)
        objects.append(chain)
    lay_out(run, objects, "by min-cost flow")


def _find_reuses(problem: Problem, rows: Ints) -> tuple[Ints, Ints] | None:
    """Return the pairs whose first has ended when the second starts; positions in `rows`.

    `None` if there are too many for a flow.
    """
    start, end = problem.start[rows], problem.end[rows]
    by_start = np.argsort(start, kind="stable")
    first = np.searchsorted(start[by_start], end)
    count = len(rows) - first
    if int(count.sum()) > _MOST_ARCS:
        return None
    before = np.repeat(np.arange(len(rows)), count)
    within = np.arange(len(before)) - np.repeat(np.cumsum(count) - count, count)
    return before, by_start[first[before] + within]


def _solve_flow(size: Ints, before: Ints, after: Ints) -> list[tuple[int, int]]:
    """Return the pairs whose first passes its object on to the second."""
    n = len(size)
    source, sink = 2 * n, 2 * n + 1
    has, gets = np.arange(n), np.arange(n, 2 * n)
    tail = np.concatenate([np.full(n, source), np.full(n, source), gets, before])
    head = np.concatenate([has, gets, np.full(n, sink), gets[after]])
    growth = np.maximum(0, size[after] - size[before])
    cost = np.concatenate([np.zeros(n, np.int64), size, np.zeros(n, np.int64), growth])
    # Sizes near 2^62 lose their lowest bits, which changes costs only: the plan stays legal.
    cost //= math.gcd(*size.tolist())
    cost >>= max(0, (int(cost.max()) * (sink + 2)).bit_length() - _MOST_COST.bit_length() + 1)

    flow = _library()()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(tail, head, np.ones_like(tail), cost)
    flow.set_node_supply(source, n)
    flow.set_node_supply(sink, -n)
    if flow.solve() != flow.OPTIMAL:
        raise RuntimeError("every buffer can have an object of its own, but OR-tools found no flow")
    carries = np.flatnonzero(flow.flows(arcs[3 * n :]))
    return list(zip(before[carries].tolist(), after[carries].tolist(), strict=True))


def _library() -> Any:
    try:
        from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
    except ImportError as error:
        # OR-tools and highspy both bring a libhighs.so.1, and the first to be loaded serves both.
        raise MemplanError(
            f"mincost_flow cannot load OR-tools ({error}); "
            "if highspy is loaded, use another process"
        ) from error
    return SimpleMinCostFlow
