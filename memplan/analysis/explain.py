"""Why a problem does not fit into a capacity: how much is missing, when, and because of what.

There are three reasons, from cheap to expensive to find. One buffer or one contiguous group is
larger than the capacity. Or the buffers that are live at one time are larger together; these times
are the sections at fault. Or no plan fits although every section does. Only a search can prove
the last one; its proof is shrunk to an irreducible infeasible subset: buffers that cannot be placed
together, but can as soon as any one of them is left out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from memplan.analysis.shrink import Subset, shrink
from memplan.base.errors import ProblemError
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.loads import Held, Loads, available, capacity_for
from memplan.problem.plan import Plan, Status
from memplan.solvers.refereed import find_plan

__all__ = ["DEFAULT_NODES", "Explanation", "SectionAtFault", "explain"]

DEFAULT_NODES = 1_000_000
_MOST_SECTIONS = 10  # are described, though a hundred thousand may be at fault


@dataclass(frozen=True, slots=True)
class SectionAtFault:
    """A maximal time in which more bytes are live than are available."""

    start: int  # the time `[start, end)`; the load is too high in all of it
    end: int
    peak_start: int  # the section in it with the greatest load
    peak_end: int
    load: int  # of that section, in bytes
    excess: int  # by how many bytes that load exceeds what is available
    buffers: tuple[Held, ...]  # held in that section, the most bytes first


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known about a problem under a capacity. All amounts are in bytes.

    Attributes
    ----------
    fits
        True: there is a plan. False: it is proved that there is none. None: neither was found
        within the budget.
    capacity
        The capacity in question.
    available
        The part of it that is not reserved.
    max_load
        The most bytes held at one time.
    required
        Proved: no smaller capacity suffices. None if it is proved that no capacity suffices,
        because pins and groups contradict each other.
    sufficient
        The peak of the best plan found: this capacity suffices. None if no plan was found.
    sections
        The times at which more bytes are live than are available, the worst first; ten at most.
    section_count
        How many such times there are.
    subset
        Ids of buffers that cannot be placed together, the largest first. Empty if sections are at
        fault, if the problem fits, and if nothing is known.
    irreducible
        Whether it was shown that the rest fits without any one buffer of the subset.
    plan
        The best plan found, whose peak is `sufficient`, or an answer without offsets.
    """

    fits: bool | None
    capacity: int
    available: int
    max_load: int
    required: int | None
    sufficient: int | None
    sections: tuple[SectionAtFault, ...] = ()
    section_count: int = 0
    subset: tuple[str, ...] = ()
    irreducible: bool = False
    plan: Plan | None = field(default=None, compare=False, repr=False)

    @property
    def excess(self) -> int | None:
        """How many bytes of capacity are missing at least; 0 if none is known to be missing.

        None if no capacity suffices.
        """
        return None if self.required is None else max(0, self.required - self.capacity)

    @property
    def proved(self) -> bool:
        """Whether the question is decided: `fits` is True or False."""
        return self.fits is not None


def explain(
    problem: Asked,
    capacity: int | None = None,
    *,
    nodes: int = DEFAULT_NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
    known: Plan | None = None,
) -> Explanation:
    """Find out whether a problem fits into a capacity, and if not, why not.

    Parameters
    ----------
    problem
        A problem, or the result of `memplan.load`.
    capacity
        In bytes, in place of the problem's: of the plan alone, also where a runtime keeps more in
        the same arena (`memplan inspect --capacity` counts that for a TFLite model).
    nodes
        Search nodes for each of three searches: for a plan that fits, for the smallest capacity,
        and for a smaller infeasible subset. Sections at fault need no search.
    timeout
        Seconds for all searches together, or None. A clock makes the answer depend on the machine.
    threads, seed
        As in `memplan.solve`.
    known
        The best plan of the problem without its capacity, if it is known already: then the
        smallest capacity is not searched for again.

    Raises
    ------
    ProblemError
        If there is no capacity, or a pin ends above it.
    """
    limited = problem_of(problem)
    if capacity is not None:
        limited = limited.with_capacity(capacity)
    limit = limited.capacity
    if limit is None:
        raise ProblemError("there is no capacity to explain; give one")
    search = _TimedSolver(nodes, timeout, threads, seed)
    loads, room = Loads(limited), available(limited.reserved, limit)
    runs, too_long = loads.ranges_above(room), _find_too_long(limited)

    refuted = bool(runs or too_long)
    answer, free = _find_plans(limited, known, search, refuted)
    plans = [plan for plan in (free, answer) if plan is not None]
    best = min(plans, key=lambda plan: (plan.peak is None, plan.peak))
    bound = max(plan.lower_bound for plan in plans)
    refuted = refuted or bound > limit or (answer is not None and answer.status == "infeasible")
    fits = False if refuted else True if _is_within(best, limit) else None

    subset = Subset((), False)
    if answer is not None and answer.status is Status.INFEASIBLE:
        subset = shrink(limited, answer.conflict, search.prove, nodes)
    elif too_long and not runs:
        subset = shrink(limited, too_long, search.prove, nodes)
    required = max(_bound_capacity(limited, loads), bound, limit + 1 if refuted else 0)
    return Explanation(
        fits=fits,
        capacity=limit,
        available=room,
        max_load=loads.peak,
        required=None if free is not None and free.status is Status.INFEASIBLE else required,
        sufficient=best.peak,
        sections=_describe_worst(loads, runs, room),
        section_count=len(runs),
        subset=subset.ids,
        irreducible=subset.irreducible,
        plan=best,
    )


class _TimedSolver:
    """Runs the solvers, which share one limit on time."""

    def __init__(self, nodes: int, timeout: float | None, threads: int | None, seed: int) -> None:
        self._nodes, self._threads, self._seed = nodes, threads, seed
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def solve(self, problem: Problem, objective: str, *, share: float) -> Plan:
        """Look for a plan, within this share of the time that is left."""
        left = self._left()
        return find_plan(
            problem,
            objective=objective,
            nodes=self._nodes,
            timeout=None if left is None else left * share,
            threads=self._threads,
            seed=self._seed,
        )

    def prove(self, problem: Problem, nodes: int) -> Plan | None:
        """Run the exact search for a plan that fits; return None if no time is left."""
        left = self._left()
        if left == 0:
            return None
        return find_plan(
            problem,
            solver="exact",
            objective="fit",
            nodes=nodes,
            timeout=left,
            threads=self._threads,
            seed=self._seed,
        )

    def _left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())


def _find_plans(
    limited: Problem, known: Plan | None, search: _TimedSolver, refuted: bool
) -> tuple[Plan | None, Plan | None]:
    """Return the answers to "does it fit?" and "what is the least peak?", where they are needed.

    The first is not if the capacity is refuted, or if a known plan is within it; the second is not
    if it is known, or if the first plan is at its bound.
    """
    limit, answer = limited.capacity, None
    assert limit is not None
    if not refuted and not (known is not None and _is_within(known, limit)):
        answer = search.solve(limited, "fit", share=0.5)
    if known is None and (answer is None or answer.status is not Status.OPTIMAL):
        known = search.solve(limited.with_capacity(None), "min_peak", share=0.5)
    return answer, known


def _is_within(plan: Plan, limit: int) -> bool:
    return plan.peak is not None and plan.peak <= limit


def _find_too_long(problem: Problem) -> list[str]:
    """Return the first and last id of the longest buffer or group if it exceeds the capacity."""
    if not len(problem):
        return []
    assert problem.capacity is not None
    last = int((problem.lead + problem.size).argmax())
    if problem.lead[last] + problem.size[last] <= problem.capacity:
        return []
    fellows = (problem.group == problem.group[last]) & (problem.lead == 0)
    first = int(fellows.argmax()) if problem.lead[last] else last
    return [problem.ids[row] for row in dict.fromkeys((first, last))]


def _bound_capacity(problem: Problem, loads: Loads) -> int:
    """Return a lower bound on the capacity from loads, sizes, groups and pins."""
    pinned = problem.pin >= 0
    ends = (problem.pin + problem.size)[pinned]
    return max(
        capacity_for(problem.reserved, loads.peak),
        int((problem.lead + problem.size).max(initial=0)),
        int(ends.max(initial=0)),
    )


def _describe_worst(
    loads: Loads, runs: list[tuple[int, int]], room: int
) -> tuple[SectionAtFault, ...]:
    """Describe the times with the greatest loads, of equal ones the earliest first."""
    peaks = [first + int(loads.load[first : last + 1].argmax()) for first, last in runs]
    worst = sorted(range(len(runs)), key=lambda run: (-int(loads.load[peaks[run]]), run))
    return tuple(
        SectionAtFault(
            start=int(loads.start[runs[run][0]]),
            end=int(loads.end[runs[run][1]]),
            peak_start=int(loads.start[peaks[run]]),
            peak_end=int(loads.end[peaks[run]]),
            load=int(loads.load[peaks[run]]),
            excess=int(loads.load[peaks[run]]) - room,
            buffers=tuple(loads.held(peaks[run])),
        )
        for run in worst[:_MOST_SECTIONS]
    )
