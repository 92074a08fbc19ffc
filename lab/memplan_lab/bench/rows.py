"""What is asked of one run and what it leaves behind: one row for each case and solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any

from memplan.problem.plan import Status

SOLVED = frozenset(status.value for status in Status if status.has_plan)


@dataclass(frozen=True, slots=True)
class Request:
    """What to run; `timeout` (seconds) and `nodes` are None where there is no limit."""

    solver: str
    objective: str
    timeout: float | None
    nodes: int | None
    threads: int
    seed: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one solver did on one problem.

    Attributes
    ----------
    status
        A plan's status (`optimal`, `fits`, `feasible`, ...), or what kept it away:
        `unsupported` (a constraint that the solver does not have), `error` (it raised or
        crashed), `failed` (a peer's non-zero exit), `invalid` (the plan breaks the problem),
        `killed` (far beyond its time), `skipped` (a library is missing that has the problem).
    peak, lower_bound
        Bytes, or None where there is none.
    wall, cpu
        Seconds of each run, user and system time of all threads together in `cpu`. Short ones are
        repeated, so that there may be more than were asked for.
    peak_rss_mib
        The largest resident memory of the whole process, in MiB, or None where unknown.
    nodes, restarts, backtracks
        As the solver counts them, or None.
    error
        One sentence, or empty.
    """

    status: str
    peak: int | None = None
    lower_bound: int | None = None
    wall: tuple[float, ...] = ()
    cpu: tuple[float, ...] = ()
    peak_rss_mib: float | None = None
    nodes: int | None = None
    restarts: int | None = None
    backtracks: int | None = None
    error: str = ""

    @property
    def wall_s(self) -> float | None:
        """Seconds of the median run, or None where there was none."""
        return median(self.wall) if self.wall else None

    @property
    def cpu_s(self) -> float | None:
        """As `wall_s`, of `cpu`."""
        return median(self.cpu) if self.cpu else None

    def columns(self) -> dict[str, Any]:
        """Return what rows and tables have of it, by name: runs as their median."""
        return {name: getattr(self, name) for name in _MEASURED}

    def with_status(self, status: str, error: str) -> Outcome:
        """Return the same measurements with another status and error."""
        return replace(self, status=status, error=error)


_MEASURED = (
    *("status", "peak", "lower_bound", "nodes", "restarts", "backtracks"),
    *("wall_s", "cpu_s", "peak_rss_mib", "error"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the results; the fields are the columns of the files, in this order.

    Attributes
    ----------
    suite, case, n
        The problem, and its number of buffers. Of a sweep the suite says the capacity, too, where
        it is a share of something: `corpus at 110 % of the best peak`.
    solver, objective
        Which solver was asked for what (`fit` or `min_peak`).
    status, peak, error, nodes, restarts, backtracks, peak_rss_mib
        See `Outcome`.
    max_load, lower_bound, ratio
        Bytes; the best bound known to this run; `peak / lower_bound`.
    wall_s, cpu_s, wall_min_s, cpu_min_s
        Median and minimum over the repetitions, of solving alone: not of starting Python,
        reading the problem or checking the plan.
    fingerprint
        Of the problem; empty in files of older releases.
    timeout_s, seed, node_limit
        Of the solve; None where there was no limit, and in files of older releases.
    """

    suite: str
    case: str
    n: int
    solver: str
    objective: str
    status: str
    peak: int | None = None
    max_load: int | None = None
    lower_bound: int | None = None
    ratio: float | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    wall_min_s: float | None = None
    cpu_min_s: float | None = None
    peak_rss_mib: float | None = None
    nodes: int | None = None
    restarts: int | None = None
    error: str = ""
    backtracks: int | None = None
    fingerprint: str = ""
    timeout_s: float | None = None
    seed: int | None = None
    node_limit: int | None = None

    @classmethod
    def of(cls, measured: Mapping[str, Any], *, max_load: int, bound: int = 0, **named: Any) -> Row:
        """Return the row of a run.

        Parameters
        ----------
        measured
            At least what `Outcome.columns` has.
        max_load
            Of the problem, in bytes: a bound on every peak.
        bound
            Another one, that was known beforehand.
        named
            All other fields that are known.
        """
        bound = max(max_load, bound, measured["lower_bound"] or 0)
        peak = measured["peak"]
        values = {name: measured[name] for name in _MEASURED} | {
            "lower_bound": bound,
            "ratio": None if peak is None else divide(peak, bound),
        }
        return cls(**values, max_load=max_load, **named)

    @property
    def base(self) -> str:
        """The suite alone, without a capacity behind it."""
        return self.suite.partition(" at ")[0]

    @property
    def step_s(self) -> float | None:
        """CPU seconds a node, or None where one of them is unknown or 0."""
        return self.cpu_s / self.nodes if self.cpu_s is not None and self.nodes else None

    @property
    def solved(self) -> bool:
        """Whether there is a plan that passed the referee."""
        return self.status in SOLVED


COLUMNS = tuple(f.name for f in fields(Row))


def divide(peak: int, bound: int) -> float:
    """Return a peak over a bound; 1 where nothing needs memory."""
    return peak / bound if bound else 1.0


def last_line(text: str) -> str:
    """Return the last line that says anything: where programs put their reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"
