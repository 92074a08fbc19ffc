"""The one door to `memplan._core`: our words to the core's, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from memplan import _core
from memplan._columns import frozen
from memplan.errors import MemplanError
from memplan.plan import Plan, Status
from memplan.problem import Problem

__all__ = ["Bound", "greedy_orders", "lower_bound", "solve"]

# "Nobody has this": the core's rules for problems without pins are stronger, and it tells them by
# the empty column.
_NOBODY = frozen(np.empty(0, dtype=np.int64))


class Bound(NamedTuple):
    """A lower bound on the peak, and where it comes from.

    Attributes
    ----------
    bytes
        No plan has a smaller peak.
    rule
        Which rule gave it.
    section
        The time `(start, end)` at which it is attained, or `None` if it is not of one section.
    """

    bytes: int
    rule: str
    section: tuple[int, int] | None


def solve(
    problem: Problem,
    *,
    solver: str,
    minimize: bool,
    seconds: float | None,
    nodes: int | None,
    threads: int,
    seed: int,
    options: Mapping[str, object],
) -> tuple[Plan, bool]:
    """Return the plan of one solver, and whether Ctrl-C cut it short; nothing is checked here."""
    native = _converted(problem)
    try:
        answer = _core.solve(native, solver, minimize, seconds, nodes, threads, seed, dict(options))
    except ValueError as error:
        raise MemplanError(str(error)) from None
    stats = {
        "solver": answer.solver,
        "nodes": answer.nodes,
        "restarts": answer.restarts,
        "seconds": dict(answer.seconds),
        "note": answer.note,
    }
    conflict = answer.conflict
    plan = Plan.of(
        problem,
        answer.offsets if answer.has_offsets else None,
        status=Status(answer.status),
        lower_bound=answer.lower_bound,
        solver=solver,
        stats=stats,
        conflict=[problem.ids[row] for row in conflict.tolist()] if len(conflict) else (),
    )
    return plan, answer.interrupted


def lower_bound(problem: Problem) -> Bound:
    """Return the best lower bound on the peak that needs no search."""
    bytes, rule, start, end = _core.lower_bound(_converted(problem))
    return Bound(bytes, rule, None if start is None or end is None else (start, end))


def greedy_orders() -> list[str]:
    """Return the names that the option `orders` of greedy may have, in the order of trial."""
    return _core.greedy_orders()


def _converted(problem: Problem) -> _core.Problem:
    if problem.reserved:
        reserved = np.array([(r.lower, r.upper) for r in problem.reserved], dtype=np.int64).T
        lower, upper = np.ascontiguousarray(reserved)
    else:
        lower = upper = _NOBODY
    return _core.Problem(
        problem.start,
        problem.end,
        problem.size,
        problem.alignment if problem.has_alignment else _NOBODY,
        problem.pin if problem.has_pins else _NOBODY,
        problem.hint if problem.has_hints else _NOBODY,
        problem.gap_buffer,
        problem.gap_start,
        problem.gap_end,
        problem.gap_lower,
        problem.gap_upper,
        lower,
        upper,
        problem.capacity,
    )
