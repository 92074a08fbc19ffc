"""The answer to a problem: an offset for every buffer, and what is proved about the plan."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memplan.base.drawing import find_artist
from memplan.base.errors import PlanError, ProblemError, quoted
from memplan.problem import Asked, Problem, problem_of
from memplan.problem.columns import MAX_BYTES, Column, int_column, whole_number
from memplan.problem.immutable import Immutable
from memplan.problem.intake import take_ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Kept", "Plan", "Shared", "Status"]


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeps its bytes until its program runs again: its place in the shared arena."""

    id: str
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class Shared:
    """The arena that the program of a plan shares with others, as `stats` of the plan has it.

    Attributes
    ----------
    program
        The name of the plan's program.
    programs
        The names of all programs in the arena.
    arena
        The bytes of the whole arena; the peak of the plan may be less.
    kept
        What keeps its bytes until the program runs again, other programs in between: buffers of the
        plan, and states, which the plan does not have among its buffers.
    overlap
        The programs that may run at the same time as this one.
    """

    program: str
    programs: tuple[str, ...]
    arena: int
    kept: tuple[Kept, ...] = ()
    overlap: tuple[str, ...] = ()

    @classmethod
    def read(cls, stated: object) -> Shared:
        """Return what `stats` say.

        Raises
        ------
        PlanError
            If they do not say it as `describe` does.
        """
        try:
            found = cls._take(stated) if isinstance(stated, dict) else None
        except (KeyError, TypeError, ValueError):
            found = None
        if found is None or not found._is_sound():
            raise PlanError(
                'its "shared" is not as `memplan plan A B` writes it: program, programs, '
                "arena, kept and overlap"
            )
        return found

    @classmethod
    def _take(cls, stated: Mapping[str, Any]) -> Shared:
        named = {"programs": tuple(stated["programs"]), "overlap": tuple(stated["overlap"])}
        return cls(**{**stated, **named, "kept": tuple(Kept(**each) for each in stated["kept"])})

    def _is_sound(self) -> bool:
        """Whether types are right, numbers are in their ranges, and names are known."""
        ids = [each.id for each in self.kept]
        numbers = [self.arena, *(n for each in self.kept for n in (each.size, each.offset))]
        return (
            all(type(name) is str for name in (self.program, *self.programs, *self.overlap, *ids))
            and all(type(each) is int and 0 <= each <= MAX_BYTES for each in numbers)
            and {self.program, *self.overlap} <= {*self.programs}
            and len({*self.programs}) == len(self.programs)
            and len({*ids}) == len(ids)
            and all(each.offset + each.size <= self.arena for each in self.kept)
        )

    def describe(self) -> dict[str, object]:
        """Return the same for `stats`."""
        return {
            "program": self.program,
            "programs": list(self.programs),
            "arena": self.arena,
            "kept": [asdict(each) for each in self.kept],
            "overlap": list(self.overlap),
        }


class Status(enum.StrEnum):
    """What a solver claims about its answer."""

    OPTIMAL = "optimal"  # proved: the peak equals the lower bound
    FITS = "fits"  # a plan within the capacity; a smaller peak was not asked for
    FEASIBLE = "feasible"  # a plan, not proved to be the best
    INFEASIBLE = "infeasible"  # proved: there is no plan within the capacity
    UNKNOWN = "unknown"  # the budget ran out without a plan

    @property
    def has_plan(self) -> bool:
        """Whether an answer with this status comes with a plan."""
        return self not in (Status.INFEASIBLE, Status.UNKNOWN)


def restate(status: str, may_fit: bool, peak: int | None, lower_bound: int | None) -> str:
    """Return the current name of a status that a file contains.

    Earlier versions called a plan within the capacity `optimal`, even with a peak above its bound.

    Parameters
    ----------
    status
        As it is in the file.
    may_fit
        Whether there is a capacity, so that the plan may be the answer to "does it fit?".
    peak, lower_bound
        In bytes, as they are in the file.
    """
    if status == Status.OPTIMAL and may_fit and (peak or 0) > (lower_bound or 0):
        return Status.FITS
    return status


class Plan(Immutable):
    """Offsets for the buffers of a problem, immutable, with what was proved about them.

    Solvers and peers use `Plan.of`; this constructor is for readers of files, which have no
    problem at hand. Neither checks that the plan is safe; `memplan.verify` does.

    Parameters
    ----------
    ids, size
        The buffers that the plan was made for, shape (n,).
    offsets
        In bytes, shape (n,); `None` for a plan without offsets.
    status
        What the solver claims.
    peak
        `max(offset + size)` as claimed; `None` computes it.
    lower_bound
        Proved: no plan has a smaller peak. 0 if no bound is known.
    capacity
        The limit that the solver was given, or `None`.
    solver
        The name of the solver that made it.
    stats
        What the solver did: nodes, restarts, seconds by phase.
    conflict
        Ids of buffers that cannot be placed together, for an infeasible problem; may be empty.
    fingerprint
        Of the problem that the plan was made for, or `None` if a file does not have it.
    start, end
        The lifetimes that the plan was made for, if a file has these but no fingerprint.

    Raises
    ------
    PlanError
        For columns of different lengths, values that are not whole numbers, and offsets that are
        negative or so large that `offset + size` is beyond 2^62.
    """

    def __init__(
        self,
        *,
        ids: Iterable[str],
        size: npt.ArrayLike,
        offsets: npt.ArrayLike | None,
        status: Status = Status.FEASIBLE,
        peak: int | None = None,
        lower_bound: int = 0,
        capacity: int | None = None,
        solver: str = "",
        stats: Mapping[str, object] | None = None,
        conflict: Iterable[str] = (),
        fingerprint: str | None = None,
        start: npt.ArrayLike | None = None,
        end: npt.ArrayLike | None = None,
    ) -> None:
        with _as_plan_error():
            self.__dict__.update(problem=None, ids=take_ids(ids), fingerprint=fingerprint)
        for field, values in (("size", size), ("start", start), ("end", end)):
            self.__dict__[field] = None if values is None else self._take_column(values, field)
        self._set_answer(offsets, status, peak, lower_bound, capacity, solver, stats, conflict)

    @classmethod
    def of(
        cls,
        problem: Problem,
        offsets: npt.ArrayLike | None,
        *,
        status: Status = Status.FEASIBLE,
        lower_bound: int = 0,
        solver: str = "",
        stats: Mapping[str, object] | None = None,
        conflict: Iterable[str] = (),
    ) -> Plan:
        """Make a plan of a problem; its peak is computed, and its capacity is the problem's.

        Parameters
        ----------
        problem
            The problem that the offsets belong to.
        offsets
            In the order of the problem's rows, shape (n,); `None` for a plan without offsets.
        status, lower_bound, solver, stats, conflict
            As in the constructor.

        Raises
        ------
        PlanError
            As the constructor does.
        """
        plan = cls._for(problem)
        capacity = problem.capacity
        plan._set_answer(offsets, status, None, lower_bound, capacity, solver, stats, conflict)
        return plan

    @classmethod
    def of_checked(
        cls,
        problem: Problem,
        offsets: Column | None,
        *,
        status: Status,
        peak: int | None,
        lower_bound: int,
        capacity: int | None,
        solver: str,
        stats: Mapping[str, object],
        conflict: Iterable[str] = (),
    ) -> Plan:
        """Make a plan from the answer of the core; no value is checked again.

        Parameters
        ----------
        problem
            The problem that the offsets belong to.
        offsets
            A read-only int64 column in the order of the problem's rows, shape (n,), each from 0 to
            2^62 - size; `None` for a plan without offsets.
        peak
            `max(offset + size)`; `None` for a plan without offsets.
        status, lower_bound, capacity, solver, stats, conflict
            As in the constructor.
        """
        plan = cls._for(problem)
        plan._hold(offsets, status, peak, lower_bound, capacity, solver, stats, conflict)
        return plan

    @classmethod
    def _for(cls, problem: Problem) -> Plan:
        """Return a plan of a problem that has no answer yet."""
        plan = cls.__new__(cls)
        plan.__dict__.update(
            problem=problem, size=problem.size, start=problem.start, end=problem.end
        )
        return plan

    # Only the constructor, `of` and `of_checked` set these.
    problem: Problem | None  # the problem of the plan; `None` for a plan from a file
    size: Column
    start: Column | None
    end: Column | None
    offsets: Column | None
    status: Status
    peak: int | None
    lower_bound: int
    capacity: int | None
    solver: str
    stats: Mapping[str, object]
    conflict: tuple[str, ...]

    def _set_answer(
        self,
        offsets: npt.ArrayLike | None,
        status: Status,
        peak: int | None,
        lower_bound: int,
        capacity: int | None,
        solver: str,
        stats: Mapping[str, object] | None,
        conflict: Iterable[str],
    ) -> None:
        placed = None if offsets is None else self._take_offsets(offsets)
        if placed is not None and peak is None:
            peak = int((placed + self.size).max()) if len(placed) else 0
        if placed is None and peak is not None:
            raise PlanError(f"a plan without offsets cannot have a peak ({peak})")
        with _as_plan_error():
            bound = whole_number(lower_bound, "lower_bound", "lower_bound")
        own = dict(stats or {})
        self._hold(placed, Status(status), peak, bound, capacity, solver, own, conflict)

    def _hold(
        self,
        offsets: Column | None,
        status: Status,
        peak: int | None,
        lower_bound: int,
        capacity: int | None,
        solver: str,
        stats: Mapping[str, object],
        conflict: Iterable[str],
    ) -> None:
        """Set the answer as it is given."""
        self.__dict__.update(
            offsets=offsets,
            status=status,
            peak=peak,
            lower_bound=lower_bound,
            capacity=capacity,
            solver=solver,
            stats=MappingProxyType(stats),
            conflict=tuple(conflict),
        )

    def _take_offsets(self, offsets: npt.ArrayLike) -> Column:
        column = self._take_column(offsets, "offset")
        bad = (column < 0) | (column > MAX_BYTES - self.size)
        if bad.any():
            row = int(bad.argmax())
            raise PlanError(
                f"{self._label(row)}: offset is {column[row]}; "
                f"its {self.size[row]} bytes must lie between 0 and 2^62",
                row=row,
                field="offset",
            )
        return column

    def _take_column(self, values: npt.ArrayLike, field: str) -> Column:
        with _as_plan_error():
            column = int_column(values, field, self._label)
        count = len(self.ids) if self.problem is None else len(self.problem)
        if len(column) != count:
            raise PlanError(f"{field} has {len(column)} values for {count} buffers")
        return column

    def _label(self, row: int) -> str:
        if self.problem is not None:
            return self.problem.label(row)
        return f"buffer {quoted(self.ids[row]) if row < len(self.ids) else row}"

    def with_stats(self, **said: object) -> Plan:
        """Return this plan, which says more: each of these in `stats`, in place of what was."""
        copy = Plan.__new__(Plan)
        stats = MappingProxyType({**self.stats, **said})
        copy.__dict__.update({**self.__dict__, "stats": stats})
        return copy

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Plan is immutable; cannot set {name}")

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The buffers, in the order of `offsets`."""
        assert self.problem is not None  # the constructor sets the ids of a plan without one
        return self.problem.ids

    @cached_property
    def fingerprint(self) -> str | None:
        """The fingerprint of the problem that the plan was made for, if it is known."""
        assert self.problem is not None  # otherwise the constructor has set it
        return self.problem.fingerprint

    @property
    def has_offsets(self) -> bool:
        """Whether the plan has offsets, and can be used."""
        return self.offsets is not None

    @cached_property
    def shared(self) -> Shared | None:
        """The arena that several programs share, if this is the plan of one of them.

        Raises
        ------
        PlanError
            If `stats` do not say it as `memplan.scenarios.together.plan_together` does. Whether
            what they say is true of the plan is a question for `memplan.referee.verify_shared`.
        """
        return Shared.read(self.stats["shared"]) if "shared" in self.stats else None

    @property
    def gap(self) -> float | None:
        """How far the peak may be above the least possible one, `peak / lower_bound - 1`.

        `None` if there is no peak or no bound; 0.0 if both are 0. If the status is `fits`, the gap
        says nothing about the solver, which did not look for a smaller peak.
        """
        return gap(self.peak, self.lower_bound)

    def __len__(self) -> int:
        return len(self.size)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids)}

    def offset(self, id: str) -> int:
        """Return the offset of one buffer, in bytes.

        Raises
        ------
        PlanError
            If the plan does not place it.
        """
        if self.offsets is None:
            raise PlanError(f"the plan has no offsets (its status is {self.status})")
        row = self._rows.get(id)
        if row is None:
            raise PlanError(f"the plan has no buffer {quoted(str(id))}")
        return int(self.offsets[row])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        scalars = ("status", "peak", "lower_bound", "capacity", "solver", "stats", "conflict")
        return (
            all(getattr(self, name) == getattr(other, name) for name in scalars)
            and self.has_offsets == other.has_offsets
            and (self.offsets is None or np.array_equal(self.offsets, other.offsets))  # type: ignore[arg-type]
            and np.array_equal(self.size, other.size)
            and self.ids == other.ids
            and self.fingerprint == other.fingerprint
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        peak = "no offsets" if self.peak is None else f"peak {self.peak}"
        return f"<Plan: {self.status}, {peak}, lower bound {self.lower_bound}, {len(self)} buffers>"

    def describe_conflict(self) -> str:
        """Return how many buffers cannot be placed together, in words."""
        if len(self.conflict) == 1:
            return "1 buffer alone cannot be placed"
        return f"{len(self.conflict):,} buffers cannot be placed together"

    def summary(self) -> str:
        """Return the outcome in a few lines of plain text."""
        lines = [("status", str(self.status)), ("buffers", f"{len(self):,}")]
        if self.peak is not None:
            lines.append(("peak", f"{self.peak:,} bytes"))
        bound = f"{self.lower_bound:,} bytes"
        lines.append(
            ("lower bound", bound if self.gap is None else f"{bound} (gap {gap_text(self)})")
        )
        if self.capacity is not None:
            lines.append(("capacity", f"{self.capacity:,} bytes"))
        if self.solver:
            lines.append(("solver", self.solver))
        if self.conflict:
            lines.append(("conflict", self.describe_conflict()))
        return "\n".join(f"{name:<12} {value}" for name, value in lines)

    # Drawings; their modules are imported on use because they need extras

    def plot(
        self,
        problem: Asked | None = None,
        *,
        width: float | None = None,
        classes: Sequence[str] | None = None,
        load: bool = False,
    ) -> Figure:
        """Draw the plan, time by addresses; extra `plot`.

        Parameters
        ----------
        problem
            The problem of the plan; not needed if the plan has it, as those of `memplan.solve` do.
        width, classes, load
            See `memplan.view.plot.draw`, also for what else it raises.

        Raises
        ------
        PlanError
            If the plan comes from a file, and no problem is given.
        """
        asked = self.problem if problem is None else problem_of(problem)
        if asked is None:
            raise PlanError("a plan from a file has no lifetimes to draw; call plot(problem)")
        drawn: Figure = find_artist().draw(
            "plan", self, problem=asked, width=width, classes=classes, load=load
        )
        return drawn

    def _repr_html_(self) -> str:
        return find_artist().write_html("plan", self)


def gap(peak: int | None, lower_bound: int) -> float | None:
    """Return `peak / lower_bound - 1`: `None` if there is no peak or no bound, 0.0 for 0 / 0."""
    if peak is None or (peak > 0 and lower_bound <= 0):
        return None
    return peak / lower_bound - 1 if peak else 0.0


def gap_text(plan: Plan) -> str | None:
    """Return `plan.gap` as text; for a fit, it adds that no smaller peak was asked for."""
    if plan.gap is None:
        return None
    least = ", at most: a smaller peak was not asked for" if plan.status is Status.FITS else ""
    return f"{plan.gap:.2%}{least}"


@contextmanager
def _as_plan_error() -> Iterator[None]:
    """Turn errors of the checks that plans share with problems into errors of the plan."""
    try:
        yield
    except ProblemError as error:
        raise PlanError(str(error), row=error.row, field=error.field) from None
