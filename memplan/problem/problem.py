"""Problems: buffers with lifetimes and sizes, and the constraints on their offsets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from memplan.base.drawing import find_artist
from memplan.base.errors import ProblemError, quoted, shown
from memplan.problem import checks, dialect, spans
from memplan.problem.buffer import Buffer, Gap, Reserved
from memplan.problem.columns import NONE, Column, filled, frozen, int_column, whole_number
from memplan.problem.conflicts import Conflicts
from memplan.problem.fingerprint import fingerprint
from memplan.problem.groups import (
    GROUP_COLUMNS,
    check_groups,
    list_groups,
    restrict_groups,
    take_groups,
)
from memplan.problem.immutable import Immutable
from memplan.problem.intake import (
    GAP_COLUMNS,
    blank_columns,
    gap_columns,
    restrict_gaps,
    rows_of,
    take_capacity,
    take_conflicts,
    take_gaps,
    take_ids,
    take_reserved,
    take_rows,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Problem"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Problem(Immutable):
    """Buffers to place in one arena, immutable, as columns.

    Two problems are equal if they have the same buffers in the same order, and the same capacity
    and reserved ranges.

    Parameters
    ----------
    buffers
        Any iterable of `Buffer`.
    capacity
        The limit on every `offset + size`, or `None` for no limit.
    reserved
        Disjoint address ranges that no buffer may touch.
    conflicts
        Pairs of ids that may not share an address even if their lifetimes are disjoint, as in
        programs with parallel streams.
    groups
        Lists of ids that are adjacent, in this order.

    Attributes
    ----------
    start, end, size, alignment, pin, hint
        Read-only int64 columns, shape (n,). `pin` and `hint` are -1 where there is none,
        `alignment` is 1.
    gap_buffer, gap_start, gap_end, gap_lower, gap_upper
        Read-only int64 columns, shape (g,), sorted by (buffer, start): row `gap_buffer` holds only
        its window during the gap; `gap_lower` and `gap_upper` are -1 where there is no window.
    capacity
        As given.
    reserved
        Sorted.
    conflicts
        The conflicts beside those of lifetimes, as rows.
    group, lead
        Read-only int64 columns, shape (n,): the number of the group, or -1, and the distance in
        bytes from the first buffer of the group.

    Raises
    ------
    ProblemError
        One sentence that names the buffer and the field, for everything that
        `docs/concepts.md` ("The model, exactly") does not allow.
    """

    start: Column
    end: Column
    size: Column
    alignment: Column
    pin: Column
    hint: Column
    gap_buffer: Column
    gap_start: Column
    gap_end: Column
    gap_lower: Column
    gap_upper: Column
    capacity: int | None
    reserved: tuple[Reserved, ...]
    conflicts: Conflicts
    group: Column
    lead: Column
    _ids: tuple[str, ...] | None  # None: "0", "1", ...

    def __init__(
        self,
        buffers: Iterable[Buffer],
        capacity: int | None = None,
        reserved: Iterable[Reserved | tuple[int, int]] = (),
        conflicts: Iterable[tuple[str, str]] = (),
        groups: Iterable[Iterable[str]] = (),
    ) -> None:
        rows = list(buffers)
        for at, row in enumerate(rows):
            if not isinstance(row, Buffer):
                raise ProblemError(f"number {at} of the buffers is {shown(row)}, not a Buffer")
        made = self.from_arrays(
            [b.start for b in rows],
            [b.end for b in rows],
            [b.size for b in rows],
            ids=[b.id for b in rows],
            alignment=[b.alignment for b in rows],
            pin=[NONE if b.pin is None else b.pin for b in rows],
            hint=[NONE if b.hint is None else b.hint for b in rows],
            gaps=gap_columns(rows),
            capacity=capacity,
            reserved=reserved,
            conflicts=rows_of(conflicts, rows, "conflicts"),
            groups=rows_of(groups, rows, "groups"),
        )
        self.__dict__.update(made.__dict__)

    @classmethod
    def from_arrays(
        cls,
        start: npt.ArrayLike,
        end: npt.ArrayLike,
        size: npt.ArrayLike,
        *,
        ids: Iterable[str] | None = None,
        alignment: npt.ArrayLike | None = None,
        pin: npt.ArrayLike | None = None,
        hint: npt.ArrayLike | None = None,
        gaps: Sequence[npt.ArrayLike] | None = None,
        capacity: int | None = None,
        reserved: Iterable[Reserved | tuple[int, int]] = (),
        conflicts: Conflicts | npt.ArrayLike | None = None,
        groups: Iterable[Iterable[int]] | tuple[Column, Column] | None = None,
    ) -> Problem:
        """Make a problem from columns, without an object per buffer.

        Parameters
        ----------
        start, end, size
            Integers, shape (n,). Read-only int64 arrays are shared, others are copied.
        ids
            n distinct strings; `None` numbers the buffers "0", "1", ...
        alignment, pin, hint
            Shape (n,), or `None` if no buffer has one. -1 stands for no pin and no hint.
        gaps
            Five columns of shape (g,), in any order of rows: buffer (its row), start, end, lower,
            upper; lower = upper = -1 for a gap without a window.
        capacity, reserved
            As in the constructor.
        conflicts
            Pairs of rows, shape (m, 2), or `Conflicts`.
        groups
            Lists of rows, or the columns `group` and `lead` of another problem.

        Raises
        ------
        ProblemError
            As the constructor does.
        """
        problem = cls.__new__(cls)
        new = problem.__dict__  # the one place that writes to a problem
        new["_ids"] = None if ids is None else take_ids(ids)

        def take(values: npt.ArrayLike, name: str) -> Column:
            column = int_column(values, name, problem.label)
            expected = len(new["start"]) if "start" in new else len(column)
            if len(column) != expected:
                raise ProblemError(
                    f"{name} has {len(column)} values for {expected} buffers", field=name
                )
            return column

        new["start"] = take(start, "start")
        new["end"] = take(end, "end")
        new["size"] = take(size, "size")
        count = len(problem)
        if problem._ids is not None and len(problem._ids) != count:
            raise ProblemError(
                f"ids has {len(problem._ids)} values for {count} buffers", field="id"
            )
        new["alignment"] = filled(count, 1) if alignment is None else take(alignment, "alignment")
        new["pin"] = filled(count, NONE) if pin is None else take(pin, "pin")
        new["hint"] = filled(count, NONE) if hint is None else take(hint, "hint")
        new.update(zip(GAP_COLUMNS, take_gaps(gaps, count, problem.label), strict=True))
        new["capacity"] = take_capacity(capacity)
        new["reserved"] = take_reserved(reserved)
        checks.check_columns(problem)
        new["conflicts"] = take_conflicts(conflicts, count)
        new.update(
            zip(GROUP_COLUMNS, take_groups(groups, problem.size, problem.label), strict=True)
        )
        checks.check_gaps(problem)
        checks.check_load(problem)
        checks.check_pins(problem)
        check_groups(problem)
        return problem

    @classmethod
    def of_checked(
        cls,
        ids: tuple[str, ...],
        start: Column,
        end: Column,
        size: Column,
        alignment: Column,
        pin: Column,
        capacity: int | None,
        reserved: tuple[Reserved, ...],
    ) -> Problem:
        """Make a problem of rows that were checked together before; no value is checked again.

        It is for callers that keep rows and change few of them, such as a `Repacker`.

        Parameters
        ----------
        ids
            n distinct strings.
        start, end, size, alignment, pin
            Read-only int64 columns, shape (n,); -1 stands for no pin.
        capacity, reserved
            As attributes of another problem.
        """
        problem = cls.__new__(cls)
        problem.__dict__.update(
            blank_columns(len(ids)),
            _ids=ids,
            start=start,
            end=end,
            size=size,
            alignment=alignment,
            pin=pin,
            capacity=capacity,
            reserved=reserved,
        )
        return problem

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        capacity: int | None = None,
        reserved: Iterable[Reserved | tuple[int, int]] = (),
    ) -> Problem:
        """Make a problem from a pandas or polars frame, or anything that looks like one.

        Parameters
        ----------
        frame
            Has `columns` (names) and `frame[name].to_numpy()`. The columns are those of
            MiniMalloc's CSV: `id`, `lower`/`upper` (half-open) or `start`/`end` or `begin`/`end`
            (`end` inclusive), `size`, and optionally `alignment`, `hint`, `gaps` and `offset` (a
            pin).
        capacity, reserved
            As in the constructor.

        Raises
        ------
        ProblemError
            As the constructor does, and for unknown or missing columns.
        """
        columns, ids = dialect.frame_columns(frame)
        return cls.from_arrays(**columns, ids=ids, capacity=capacity, reserved=reserved)

    # Buffers and properties

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The names of the buffers, in the order of the rows."""
        return tuple(map(str, range(len(self)))) if self._ids is None else self._ids

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids)}

    def index(self, id: str) -> int:
        """Return the row of a buffer.

        Raises
        ------
        ProblemError
            If no buffer has this id.
        """
        row = self._rows.get(id)
        if row is None:
            raise ProblemError(f"no buffer has the id {quoted(str(id))}", field="id")
        return row

    def label(self, row: int) -> str:
        """Return the name of a buffer for error messages: `buffer "b1"`."""
        named = self._ids is not None and row < len(self._ids)
        return f"buffer {quoted(self.ids[row] if named else str(row))}"

    def buffer(self, which: int | str) -> Buffer:
        """Return one buffer, by row or by id."""
        row = self.index(which) if isinstance(which, str) else which
        return self.buffers[row]

    @property
    def buffers(self) -> Sequence[Buffer]:
        """The buffers as objects, in the order of the rows; each is made when it is asked for."""
        return _Buffers(self._make_buffers, range(len(self)))

    def _make_buffers(self, rows: range) -> Iterator[Buffer]:
        at = np.arange(rows.start, rows.stop, rows.step)
        columns = (self.start, self.end, self.size, self.alignment, self.pin, self.hint)
        values = zip(rows, *(column[at].tolist() for column in columns), strict=True)
        for row, start, end, size, unit, pin, hint in values:
            placed = None if pin == NONE else pin, None if hint == NONE else hint
            gaps = self._gaps.get(row, ())
            yield Buffer(self.ids[row], start, end, size, unit, *placed, gaps)

    @cached_property
    def _gaps(self) -> dict[int, tuple[Gap, ...]]:
        gaps: dict[int, tuple[Gap, ...]] = {}
        columns = (getattr(self, name).tolist() for name in GAP_COLUMNS)
        for row, start, end, lower, upper in zip(*columns, strict=True):
            gap = Gap(start, end, None if lower == NONE else (lower, upper))
            gaps[row] = (*gaps.get(row, ()), gap)
        return gaps

    @cached_property
    def has_alignment(self) -> bool:
        """Whether some buffer has an alignment other than 1."""
        return bool((self.alignment != 1).any())

    @cached_property
    def has_pins(self) -> bool:
        """Whether some buffer is pinned."""
        return bool((self.pin != NONE).any())

    @cached_property
    def has_hints(self) -> bool:
        """Whether some buffer has a hint."""
        return bool((self.hint != NONE).any())

    @property
    def has_gaps(self) -> bool:
        """Whether some buffer has a gap, with or without a window."""
        return len(self.gap_buffer) > 0

    @cached_property
    def has_windows(self) -> bool:
        """Whether some buffer holds a part of its bytes in a gap; an empty window is no window."""
        return bool((self.gap_lower < self.gap_upper).any())

    @property
    def has_conflicts(self) -> bool:
        """Whether the problem lists conflicts."""
        return len(self.conflicts) > 0

    @cached_property
    def has_groups(self) -> bool:
        """Whether some buffers are in a group."""
        return bool((self.group != NONE).any())

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The rows of every group, in the order of their addresses."""
        return tuple(map(tuple, list_groups(self)))

    @property
    def has_reserved(self) -> bool:
        """Whether there is a reserved range."""
        return len(self.reserved) > 0

    @cached_property
    def max_load(self) -> int:
        """The most bytes held at one time: a lower bound on the peak (MiniMalloc, equation 1)."""
        return spans.max_load(spans.spans(self))

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:` and 64 digits of everything that decides whether offsets are safe.

        Capacity, hints and the order of the rows are not in it; `memplan.problem.fingerprint`
        documents the bytes.
        """
        return fingerprint(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self.capacity == other.capacity
            and bool(np.array_equal(self.hint, other.hint))
            and self.same_rows(other)
        )

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.capacity))

    def same_rows(self, other: Problem) -> bool:
        """Return whether offsets of one problem are offsets of the other, row by row.

        As in the fingerprint, everything except capacity and hints is compared; but here the
        rows must be in the same order.
        """
        columns = ("start", "end", "size", "alignment", "pin", *GAP_COLUMNS, *GROUP_COLUMNS)
        return (
            self.reserved == other.reserved
            and self.conflicts == other.conflicts
            and all(np.array_equal(getattr(self, c), getattr(other, c)) for c in columns)
            and ((self._ids is None and other._ids is None) or self.ids == other.ids)
        )

    def __repr__(self) -> str:
        limit = "" if self.capacity is None else f", capacity {self.capacity}"
        conflicts = f", {len(self.conflicts)} conflicts" if self.has_conflicts else ""
        groups = f", {len(self.groups)} groups" if self.has_groups else ""
        return f"<Problem: {len(self)} buffers, max load {self.max_load}{conflicts}{groups}{limit}>"

    # Drawings

    def plot(self, *, width: float | None = None) -> Figure:
        """Draw the load over time, with the capacity and the lower bound; extra `plot`.

        Parameters
        ----------
        width
            Millimetres; see `memplan.view.load_plot.draw`, also for what it raises.
        """
        drawn: Figure = find_artist().draw("problem", self, width=width)
        return drawn

    def _repr_html_(self) -> str:
        return find_artist().write_html("problem", self)

    # Changed copies

    def with_capacity(self, capacity: int | None) -> Problem:
        """Return this problem under another capacity, or none; columns are shared."""
        return self._changed(capacity=take_capacity(capacity))

    def with_reserved(self, reserved: Iterable[Reserved | tuple[int, int]]) -> Problem:
        """Return this problem with these reserved ranges in place of its own."""
        return self._changed(reserved=take_reserved(reserved))

    def with_pins(self, pins: Mapping[str, int | None]) -> Problem:
        """Return this problem with these buffers (by id) pinned, or with `None` not pinned."""
        pin = self.pin.copy()
        for id, offset in pins.items():
            row = self.index(id)
            pin[row] = (
                NONE if offset is None else whole_number(offset, f"{self.label(row)}: pin", "pin")
            )
        return self._changed(pin=frozen(pin))

    def with_alignment(self, unit: int) -> Problem:
        """Return this problem with every offset a multiple of `unit` too, in bytes.

        Raises
        ------
        ProblemError
            If the pins or groups of the problem contradict it, or an alignment exceeds 2^62.
        """
        unit = whole_number(unit, "the alignment", "alignment")
        both = [math.lcm(each, unit) for each in self.alignment.tolist()]
        changed = self._changed(alignment=int_column(both, "alignment", self.label))
        checks.check_columns(changed)
        return changed

    def without_hints(self) -> Problem:
        """Return this problem without the hints of its buffers."""
        return self._changed(hint=filled(len(self), NONE))

    def without_names(self) -> Problem:
        """Return this problem with its buffers named "0", "1", ... by row."""
        return self._changed(_ids=None)

    def with_names(self, ids: Iterable[str]) -> Problem:
        """Return this problem with its buffers named so, by row; no two names may be the same."""
        names = tuple(ids)
        if len(names) != len(self) or len(set(names)) != len(names):
            raise ProblemError(f"{len(self)} buffers need as many names, which differ")
        return self._changed(_ids=names)

    def without_alignment(self) -> Problem:
        """Return this problem with every alignment 1, for solvers that know no alignment."""
        return self._changed(alignment=filled(len(self), 1))

    def without_conflicts(self) -> Problem:
        """Return this problem without explicit conflicts, so that only lifetimes decide."""
        return self.with_conflicts([])

    def with_conflicts(self, pairs: Iterable[tuple[int, int]]) -> Problem:
        """Return this problem with these pairs of rows as its explicit conflicts."""
        return self._changed(conflicts=Conflicts.of_pairs(len(self), pairs))

    def subset(self, rows: npt.ArrayLike) -> Problem:
        """Return a problem of these rows only, in this order."""
        chosen = take_rows(rows, len(self))
        ids = self.ids
        return Problem.from_arrays(
            self.start[chosen],
            self.end[chosen],
            self.size[chosen],
            ids=[ids[row] for row in chosen.tolist()],
            alignment=self.alignment[chosen],
            pin=self.pin[chosen],
            hint=self.hint[chosen],
            gaps=restrict_gaps([getattr(self, name) for name in GAP_COLUMNS], chosen),
            capacity=self.capacity,
            reserved=self.reserved,
            conflicts=self.conflicts.subset(chosen),
            groups=restrict_groups(self.group, self.lead, chosen),
        )

    def reversed_in_time(self) -> Problem:
        """Return the mirror image in time, over the same range of times. It has the same plans."""
        if not len(self):
            return self
        about = int(self.start.min()) + int(self.end.max())
        gap_times = about - self.gap_end, about - self.gap_start
        return Problem.from_arrays(
            about - self.end,
            about - self.start,
            self.size,
            ids=self._ids,
            alignment=self.alignment,
            pin=self.pin,
            hint=self.hint,
            gaps=[self.gap_buffer, *gap_times, self.gap_lower, self.gap_upper],
            capacity=self.capacity,
            reserved=self.reserved,
            conflicts=self.conflicts,
            groups=(self.group, self.lead),
        )

    def shuffled(self, seed: int) -> Problem:
        """Return this problem with its rows in another order, the same for the same seed."""
        return self.subset(np.random.default_rng(seed).permutation(len(self)))

    def _changed(self, **changes: object) -> Problem:
        """Return a copy with some attributes replaced; drop cached values that depend on them."""
        copy = Problem.__new__(Problem)
        copy.__dict__.update(self.__dict__, **changes)
        if changes.keys() != {"capacity"}:
            names = ("ids", "_rows") if "_ids" in changes else ()
            for name in ("fingerprint", "has_alignment", "has_pins", "has_hints", *names):
                copy.__dict__.pop(name, None)
        checks.check_pins(copy)
        check_groups(copy)
        return copy


class _Buffers(Sequence[Buffer]):
    """Some rows of a problem, as objects."""

    def __init__(self, make: Callable[[range], Iterator[Buffer]], rows: range) -> None:
        self._make, self._rows = make, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Buffer]:
        return self._make(self._rows)

    @overload
    def __getitem__(self, which: int) -> Buffer: ...

    @overload
    def __getitem__(self, which: slice) -> Sequence[Buffer]: ...

    def __getitem__(self, which: int | slice) -> Buffer | Sequence[Buffer]:
        rows = self._rows[which]
        if isinstance(rows, range):
            return _Buffers(self._make, rows)
        return next(self._make(range(rows, rows + 1)))
