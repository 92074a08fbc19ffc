"""Why a problem does not fit into a capacity: how much is missing, when, and whose fault it is.

Three reasons, from cheap to dear. One buffer is larger than the capacity, or one contiguous group.
Or the buffers that live at one time are, together: those are the sections at fault. Or every
section fits by itself, and yet no plan fits: only a search can prove that, and its proof is shrunk
to an irreducible infeasible subset: buffers that cannot be placed together, although they can as
soon as any one of them is left out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from memplan import solvers
from memplan.analysis.shrink import Subset, shrink
from memplan.errors import ProblemError
from memplan.plan import Plan, Status
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.loads import Held, Loads, available, capacity_for

__all__ = ["DEFAULT_NODES", "Explanation", "SectionAtFault", "explain"]

DEFAULT_NODES = 1_000_000
_MOST_SECTIONS = 10  # a time axis can be at fault in a hundred thousand places


@dataclass(frozen=True, slots=True)
class SectionAtFault:
    """A maximal time in which more bytes live than are available.

    Attributes
    ----------
    start, end
        The time `[start, end)`; the load is too high in all of it.
    peak_start, peak_end
        The section in it with the greatest load.
    load
        The load of that section, in bytes.
    excess
        How many bytes of it are too many.
    buffers
        What is held in that section, the most bytes first.
    """

    start: int
    end: int
    peak_start: int
    peak_end: int
    load: int
    excess: int
    buffers: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known about a problem under a capacity. All amounts are in bytes.

    Attributes
    ----------
    fits
        True: there is a plan. False: it is proved that there is none. None: neither was found
        within the budget.
    capacity
        The limit that was asked about.
    available
        The part of it that is not reserved.
    max_load
        The most bytes held at one time.
    required
        Proven: no smaller capacity suffices. None where it is proved that none at all does: pins
        and groups contradict each other.
    sufficient
        The peak of the best plan found: this capacity suffices. None where no plan was found.
    sections
        The times at which more bytes live than are available, the worst first; ten at most.
    section_count
        How many such times there are.
    subset
        Ids of buffers that cannot be placed together, the largest first. Empty where sections are
        at fault, where the problem fits, and where nothing is known.
    irreducible
        Whether it was shown that without any one buffer of the subset the rest fits.
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

    @property
    def excess(self) -> int | None:
        """How many bytes of capacity are missing at least; 0 where none is known to be.

        None where no capacity suffices.
        """
        return None if self.required is None else max(0, self.required - self.capacity)

    @property
    def proved(self) -> bool:
        """Whether `fits` is certain, either way."""
        return self.fits is not None


def explain(
    problem: Asked,
    capacity: int | None = None,
    *,
    nodes: int = DEFAULT_NODES,
    timeout: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Explanation:
    """Say whether a problem fits into a capacity, and if not, why not.

    Parameters
    ----------
    problem
        What was asked, or what `memplan.load` read.
    capacity
        In bytes, in place of the problem's own.
    nodes
        Search nodes for each of: the question itself, the smallest capacity, the shrinking of the
        proof. Sections at fault are found without any.
    timeout
        Seconds for all of it together, or None. A clock makes the answer depend on the machine.
    threads, seed
        As in `memplan.solve`.

    Raises
    ------
    ProblemError
        If there is no capacity, or pins do not keep it.
    """
    limited = problem_of(problem)
    if capacity is not None:
        limited = limited.with_capacity(capacity)
    limit = limited.capacity
    if limit is None:
        raise ProblemError("there is no capacity to explain; give one")
    search = _Search(nodes, timeout, threads, seed)
    loads, room = Loads(limited), available(limited.reserved, limit)
    runs, too_long = loads.ranges_above(room), _too_long(limited)

    answer: Plan | None = None
    fits: bool | None = True
    if not runs and not too_long:
        answer = search.solve(limited, "fit", share=0.5)
    if answer is not None and answer.has_offsets:
        best = answer
    else:
        best = search.solve(limited.with_capacity(None), "min_peak", share=0.5)
        fits = _verdict(answer, best, limit)

    subset = Subset((), False)
    if answer is not None and answer.status is Status.INFEASIBLE:
        subset = shrink(limited, answer.conflict, search.prove, nodes)
    elif too_long and not runs:
        subset = shrink(limited, too_long, search.prove, nodes)
    required = max(_floor(limited, loads), best.lower_bound, limit + 1 if fits is False else 0)
    return Explanation(
        fits=fits,
        capacity=limit,
        available=room,
        max_load=loads.peak,
        required=None if best.status is Status.INFEASIBLE else required,
        sufficient=best.peak,
        sections=_worst(loads, runs, room),
        section_count=len(runs),
        subset=subset.ids,
        irreducible=subset.irreducible,
    )


class _Search:
    """Questions to the solvers, within the time that is left for all of them."""

    def __init__(self, nodes: int, timeout: float | None, threads: int | None, seed: int) -> None:
        self._nodes, self._threads, self._seed = nodes, threads, seed
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def solve(self, problem: Problem, objective: str, *, share: float) -> Plan:
        """Ask for a plan, in at most this share of the time that is left."""
        left = self._left()
        return solvers.solve(
            problem,
            objective=objective,
            nodes=self._nodes,
            timeout=None if left is None else left * share,
            threads=self._threads,
            seed=self._seed,
        )

    def prove(self, problem: Problem, nodes: int) -> Plan | None:
        """Ask the exact search whether a problem fits; None where no time is left to ask."""
        left = self._left()
        if left == 0:
            return None
        return solvers.solve(
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


def _verdict(answer: Plan | None, best: Plan, limit: int) -> bool | None:
    """Whether it fits, where no plan within the limit was found at once.

    `answer` is None where the problem was too large to ask. The search for the smallest peak may
    still have settled what the search for a fit could not.
    """
    if answer is None or answer.status is Status.INFEASIBLE or best.lower_bound > limit:
        return False
    return True if best.peak is not None and best.peak <= limit else None


def _too_long(problem: Problem) -> list[str]:
    """Return the ends of what is longest, a buffer or a group, if it is beyond the capacity."""
    if not len(problem):
        return []
    assert problem.capacity is not None
    last = int((problem.lead + problem.size).argmax())
    if problem.lead[last] + problem.size[last] <= problem.capacity:
        return []
    fellows = (problem.group == problem.group[last]) & (problem.lead == 0)
    first = int(fellows.argmax()) if problem.lead[last] else last
    return [problem.ids[row] for row in dict.fromkeys((first, last))]


def _floor(problem: Problem, loads: Loads) -> int:
    """Return the capacity that is needed by the loads, by sizes and groups, and by the pins."""
    pinned = problem.pin >= 0
    ends = (problem.pin + problem.size)[pinned]
    return max(
        capacity_for(problem.reserved, loads.peak),
        int((problem.lead + problem.size).max(initial=0)),
        int(ends.max(initial=0)),
    )


def _worst(loads: Loads, runs: list[tuple[int, int]], room: int) -> tuple[SectionAtFault, ...]:
    """Describe the runs of sections with the greatest loads; of equal ones the earliest."""
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
