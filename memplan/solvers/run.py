"""One run of a solver in Python: its question, the rest of its budget, and the best plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.plan import Plan, Status, gap
from memplan.solvers import native
from memplan.solvers.native import Progress, Round

__all__ = ["Run"]

_HEARTBEAT = 0.5  # seconds between two calls of `progress` while nothing changes


class Run:
    """The question for a solver in Python, and the object that it reports to."""

    def __init__(
        self,
        problem: Problem,
        *,
        solver: str,
        minimize: bool,
        seconds: float | None,
        nodes: int | None,
        seed: int,
        options: Mapping[str, object],
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._began = perf_counter()
        self._reported = self._began
        self._solver = solver
        self._minimize = minimize
        self._seconds = seconds
        self._limit = nodes
        self._nodes = 0
        self._options = options
        self._progress = progress
        self._offsets: Column | None = None
        self.problem = problem
        self.seed = seed  # for a solver with random choices
        self.bound = native.lower_bound(problem).bytes  # in bytes
        # Of the incumbent, in bytes: the best plan within the capacity so far.
        self.peak: int | None = None
        # A few words on what decided the answer.
        self.note = "the capacity is below the bound" if self._refuted else ""

    # Options

    def choice(self, option: str, values: tuple[str, ...]) -> str:
        """Return the value of an option, one of `values`; the first if the option is not given."""
        given = self._options.get(option, values[0])
        name = given[0] if isinstance(given, list) and len(given) == 1 else given
        if not isinstance(name, str) or name not in values:
            raise MemplanError(
                f"the option {option} of {self._solver} must be one of {', '.join(values)}"
            )
        return name

    def switch(self, option: str) -> bool:
        """Return whether an option is on; the default is on."""
        given = self._options.get(option, True)
        if not isinstance(given, bool):
            raise MemplanError(f"the option {option} of {self._solver} must be True or False")
        return given

    # Budget

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, 0 or more; `None` if there is no time limit."""
        if self._seconds is None:
            return None
        return max(0.0, self._seconds - (perf_counter() - self._began))

    @property
    def nodes_left(self) -> int | None:
        """Nodes left of the budget, 0 or more; `None` if there is no limit."""
        return None if self._limit is None else max(0, self._limit - self._nodes)

    def step(self) -> bool:
        """Count one node and return whether the search may go on; a solver calls this often."""
        if self.nodes_left == 0:
            self.note = self.note or "the nodes are over"
            return False
        self._nodes += 1
        return not self.out_of_time()

    def charge(self, nodes: int) -> None:
        """Count nodes of a search that ran elsewhere, as in a library."""
        self._nodes += nodes

    def out_of_time(self) -> bool:
        """Return whether the deadline is past; call `progress` if it was not called for a while."""
        if self._progress is not None and perf_counter() - self._reported > _HEARTBEAT:
            self._report()
        if self.seconds_left != 0:
            return False
        self.note = self.note or "the time is over"
        return True

    # Results

    @property
    def settled(self) -> bool:
        """Whether the search may end: the question is answered, and proved where it must be."""
        if self._refuted:
            return True
        return self.peak is not None and (not self._minimize or self.peak <= self.bound)

    @property
    def _refuted(self) -> bool:
        capacity = self.problem.capacity
        return capacity is not None and self.bound > capacity

    def offer(self, offsets: Iterable[int] | npt.NDArray[np.int64], note: str) -> None:
        """Take a plan as the incumbent if it is within the capacity and the best so far.

        Offsets are in bytes, one for each row; they are legal, but of any magnitude. The note says
        in a few words what found the plan.
        """
        placed = offsets.tolist() if isinstance(offsets, np.ndarray) else list(offsets)
        sizes = self.problem.size.tolist()
        peak = max((at + size for at, size in zip(placed, sizes, strict=True)), default=0)
        capacity = MAX_BYTES if self.problem.capacity is None else self.problem.capacity
        if peak > capacity:
            self.note = self.note or f"its plan needs {peak} bytes"
        elif self.peak is None or peak < self.peak:
            self._offsets = np.array(placed, dtype=np.int64)
            self.peak = peak
            self.bound = min(self.bound, peak)
            self.note = note
            self._report()

    def learn(self, bound: int) -> None:
        """Raise the lower bound, in bytes, but never above the peak of the incumbent.

        A plan is checked and a claimed bound is not, so the plan decides.
        """
        claimed = bound if self.peak is None else min(bound, self.peak)
        if claimed > self.bound:
            self.bound = claimed
            self._report()

    def plan(self) -> Plan:
        """Return the incumbent as a plan with its status, or a plan without offsets."""
        if self._offsets is None:
            status = Status.INFEASIBLE if self._refuted else Status.UNKNOWN
        else:
            status = Status.FEASIBLE if self._minimize else Status.FITS
            if self.peak == self.bound:
                status = Status.OPTIMAL
        return Plan.of(
            self.problem,
            self._offsets,
            status=status,
            lower_bound=self.bound,
            solver=self._solver,
            stats={
                "solver": self._solver,
                "nodes": self._nodes,
                "restarts": 0,
                "seconds": {self._solver: perf_counter() - self._began},
                "note": self.note,
            },
        )

    def round(self, interrupted: bool) -> Round:
        """Return the whole run as one round of a trace."""
        plan = self.plan()
        ended = "refuted" if plan.status is Status.INFEASIBLE else None
        if plan.status in (Status.OPTIMAL, Status.FITS):
            ended = "plan"
        if ended is None and interrupted:
            ended = "interrupt"
        if ended is None and self.seconds_left == 0:
            ended = "time"
        return Round(
            seconds=perf_counter() - self._began,
            engine=self._solver,
            stage="",
            part="",
            target=self.bound if self._minimize else self.problem.capacity or self.bound,
            lower_bound=self.bound,
            peak=self.peak,
            nodes=self._nodes,
            conflicts=0,
            ended_by=ended or ("nodes" if self.nodes_left == 0 else "end"),
        )

    def _report(self) -> None:
        if self._progress is None:
            return
        self._reported = perf_counter()
        seconds = self._reported - self._began
        off = gap(self.peak, self.bound)
        self._progress(Progress(seconds, self.peak, self.bound, off, self._solver, self._nodes))
