"""One call of a planner: what is asked, what is left of the budget, and what is known so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter

import numpy as np
import numpy.typing as npt

from memplan.errors import MemplanError
from memplan.plan import Plan, Status, gap
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, Column
from memplan.solvers import native
from memplan.solvers.native import Progress, Round

__all__ = ["Run"]

_HEARTBEAT = 0.5  # seconds between two words to a caller who watches


class Run:
    """What a planner is told, and whom it tells.

    Parameters
    ----------
    problem, solver, minimize, seconds, nodes, seed, options, progress
        As `native.solve` takes them.

    Attributes
    ----------
    problem
        What is asked.
    seed
        For a planner that rolls dice.
    bound
        No plan has a smaller peak, in bytes.
    peak
        Of the best plan within the capacity, in bytes; `None` before there is one.
    note
        What decided the answer.
    """

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
        self._told = self._began
        self._solver = solver
        self._minimize = minimize
        self._seconds = seconds
        self._limit = nodes
        self._nodes = 0
        self._options = options
        self._progress = progress
        self._offsets: Column | None = None
        self.problem = problem
        self.seed = seed
        self.bound = native.lower_bound(problem).bytes
        self.peak: int | None = None
        self.note = "the capacity is below the bound" if self._refuted else ""

    # What is asked

    def choice(self, option: str, values: tuple[str, ...]) -> str:
        """Return which of these an option names; the first where it is not given.

        Raises
        ------
        MemplanError
            If it names none of them.
        """
        given = self._options.get(option, values[0])
        name = given[0] if isinstance(given, list) and len(given) == 1 else given
        if not isinstance(name, str) or name not in values:
            raise MemplanError(
                f"the option {option} of {self._solver} must be one of {', '.join(values)}"
            )
        return name

    def switch(self, option: str) -> bool:
        """Return whether an option is on; it is where it is not given.

        Raises
        ------
        MemplanError
            If it is neither on nor off.
        """
        given = self._options.get(option, True)
        if not isinstance(given, bool):
            raise MemplanError(f"the option {option} of {self._solver} must be True or False")
        return given

    # What is left

    @property
    def seconds_left(self) -> float | None:
        """Until the deadline, 0 or more; `None` where there is none."""
        if self._seconds is None:
            return None
        return max(0.0, self._seconds - (perf_counter() - self._began))

    @property
    def nodes_left(self) -> int | None:
        """Of the budget, 0 or more; `None` where there is no limit."""
        return None if self._limit is None else max(0, self._limit - self._nodes)

    def step(self) -> bool:
        """Count one node, and return whether it is within the budget; to be called often."""
        if self.nodes_left == 0:
            self.note = self.note or "the nodes are over"
            return False
        self._nodes += 1
        return not self.out_of_time()

    def charge(self, nodes: int) -> None:
        """Count nodes that somebody else went through."""
        self._nodes += nodes

    def out_of_time(self) -> bool:
        """Return whether the deadline is past, and let a caller who watches know of the wait."""
        if self._progress is not None and perf_counter() - self._told > _HEARTBEAT:
            self._tell()
        if self.seconds_left != 0:
            return False
        self.note = self.note or "the time is over"
        return True

    # What is known

    @property
    def settled(self) -> bool:
        """Whether nothing that could follow matters."""
        if self._refuted:
            return True
        return self.peak is not None and (not self._minimize or self.peak <= self.bound)

    @property
    def _refuted(self) -> bool:
        capacity = self.problem.capacity
        return capacity is not None and self.bound > capacity

    def offer(self, offsets: Iterable[int] | npt.NDArray[np.int64], note: str) -> None:
        """Take a plan if it is within the capacity and the best so far.

        Parameters
        ----------
        offsets
            In bytes, one for each row; legal, but of any magnitude.
        note
            What made it.
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
            self._tell()

    def learn(self, bound: int) -> None:
        """Raise the bound, in bytes; a plan in hand, before or after, is stronger than a claim."""
        claimed = bound if self.peak is None else min(bound, self.peak)
        if claimed > self.bound:
            self.bound = claimed
            self._tell()

    def plan(self) -> Plan:
        """Return the answer."""
        if self._offsets is None:
            status = Status.INFEASIBLE if self._refuted else Status.UNKNOWN
        else:
            status = Status.OPTIMAL if self.settled else Status.FEASIBLE
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
        """Return all of it as the one round that it is."""
        plan = self.plan()
        ended = {Status.OPTIMAL: "plan", Status.INFEASIBLE: "refuted"}.get(plan.status)
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

    def _tell(self) -> None:
        if self._progress is None:
            return
        self._told = perf_counter()
        seconds = self._told - self._began
        off = gap(self.peak, self.bound)
        self._progress(Progress(seconds, self.peak, self.bound, off, self._solver, self._nodes))
