"""What a program allocated while it ran: every request, its time, and the operator that made it.

A trace comes from a recorder (`memplan.extensions.slab.record`, or a snapshot of the CUDA caching
allocator). It has an entry for every allocation, in the order of their starts. Every allocation
and every release is one step of time:

    event     0      1      2      3      4      5
              a+     b+     a-     c+     b-     c-         a lives in [0, 2), b in [1, 4), ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Self

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, MAX_TIME, Column, int_column
from memplan.problem.immutable import Immutable

__all__ = ["Scope", "Trace", "format_scope"]

# A call of a module or an operator, and how many calls of that name came before it inside the
# call around it. Names of modules have a leading dot (".layer1.0.conv1"; "." is the model itself),
# names of operators are those of the framework ("aten::convolution"). On a thread other than the
# one that called the program, the outermost call is ("thread", k).
Scope = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Immutable):
    """The allocations of one run, immutable, as columns in the order of their starts.

    Attributes
    ----------
    start, end
        Lifetimes `[start, end)` in events, shape (n,). An allocation that was never released ends
        after the last event.
    size
        Bytes as requested, shape (n,).
    outlives
        Whether it was still live when the run returned (mostly results), shape (n,), bool. The
        runtime gives such an allocation ordinary memory, and a plan leaves it out.
    scopes
        The modules and operators inside which it was requested, outermost first; n of them.
        Together with `ordinal` they identify an allocation in every run. They contain no address
        and no time, so the order in which operators run does not change them.
    ordinal
        How many allocations of the same scope came before it, shape (n,).
    thread
        The thread that requested it, shape (n,); 0 is the one that called the program.
    address
        Its address in the recorded run, shape (n,), or `None` if unknown.
    alignment
        The alignment of every allocation, in bytes.
    about
        Facts about the recording for people: model, library, input shapes.
    """

    start: Column
    end: Column
    size: Column
    outlives: npt.NDArray[np.bool_]
    scopes: tuple[Scope, ...]
    ordinal: Column
    thread: Column
    address: npt.NDArray[np.uint64] | None = None
    alignment: int = 64
    about: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def from_arrays(
        cls,
        start: npt.ArrayLike,
        end: npt.ArrayLike,
        size: npt.ArrayLike,
        scopes: Iterable[Scope],
        *,
        ordinal: npt.ArrayLike | None = None,
        outlives: Sequence[bool] | npt.NDArray[np.bool_] | None = None,
        thread: npt.ArrayLike | None = None,
        address: npt.ArrayLike | None = None,
        alignment: int = 64,
        about: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a trace from columns.

        Ordinals that are left out are counted, `outlives` is false, threads are 0, and addresses
        are unknown.

        Raises
        ------
        ProblemError
            For columns of different lengths, lifetimes that end before they start, numbers that
            are negative or above 2^62, allocations that are not in the order of their starts, and
            two of one scope with the same ordinal; one sentence that names the row.
        """
        paths = tuple(scopes)
        zeros = np.zeros(len(paths), dtype=np.int64)
        late = np.array(zeros if outlives is None else outlives, dtype=np.bool_)
        where = None if address is None else np.array(address, dtype=np.uint64)
        trace = cls(
            start=int_column(start, "start", _label),
            end=int_column(end, "end", _label),
            size=int_column(size, "size", _label),
            outlives=late,
            scopes=paths,
            ordinal=int_column(
                _count_ordinals(paths) if ordinal is None else ordinal, "ordinal", _label
            ),
            thread=int_column(zeros if thread is None else thread, "thread", _label),
            address=where,
            alignment=alignment,
            about=MappingProxyType(dict(about or {})),
        )
        for column in (late, where):
            if column is not None:
                column.flags.writeable = False
        trace._check()
        return trace

    def _check(self) -> None:
        n = len(self)
        if not 1 <= self.alignment <= MAX_BYTES:
            raise ProblemError(
                f"alignment is {self.alignment}; it must be between 1 and 2^62", field="alignment"
            )
        for name in ("start", "end", "size", "outlives", "ordinal", "thread", "address"):
            column = getattr(self, name)
            if column is not None and column.shape != (n,):
                raise ProblemError(
                    f"{name} has shape {column.shape}; it must be ({n},), as there are {n} scopes",
                    field=name,
                )
        wrong = (self.start < 0) | (self.end <= self.start) | (self.end > MAX_TIME)
        for row in np.flatnonzero(wrong | (self.size < 0) | (self.size > MAX_BYTES)).tolist():
            raise ProblemError(
                f"{_label(row)} has {self.size[row]} bytes from {self.start[row]} to "
                f"{self.end[row]}; it must start at 0 or later, end after it starts, and have a "
                "size of at least 0; nothing may be above 2^62",
                row=row,
            )
        for row in np.flatnonzero(np.diff(self.start) < 0).tolist():
            raise ProblemError(
                f"{_label(row + 1)} starts at {self.start[row + 1]}, before the one that it "
                "follows; allocations are in the order of their starts",
                row=row + 1,
                field="start",
            )
        seen: dict[tuple[Scope, int], int] = {}
        for row, key in enumerate(zip(self.scopes, self.ordinal.tolist(), strict=True)):
            if seen.setdefault(key, row) != row:
                raise ProblemError(
                    f"{_label(row)} has the scope and the ordinal of {_label(seen[key])}; "
                    "together they must be its own",
                    row=row,
                    field="ordinal",
                )

    def __len__(self) -> int:
        return len(self.scopes)

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind}: {len(self)} allocations, {len(self.planned)} to be planned>"

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """A name for every allocation: its modules, its operators, and a number."""
        names = tuple(
            f"{name}#{k}"
            for name, k in zip(map(format_scope, self.scopes), self.ordinal.tolist(), strict=True)
        )
        if len(set(names)) == len(names):
            return names
        # A module may have any name, so two ids can be equal; then all get the number of the row.
        return tuple(f"{row}:{name}" for row, name in enumerate(names))

    @cached_property
    def planned(self) -> Column:
        """The rows that a plan places: those that hold memory and do not outlive the run."""
        return np.flatnonzero((self.size > 0) & ~self.outlives)

    def problem(self, *, capacity: int | None = None, ids: Sequence[str] | None = None) -> Problem:
        """Return the problem of placing the allocations: a buffer for every row of `planned`.

        Parameters
        ----------
        capacity
            The limit on the arena in bytes, or `None`.
        ids
            Names for all allocations, if not `Trace.ids`.

        Raises
        ------
        ProblemError
            If more than 2^62 bytes are live at some time.
        """
        rows = self.planned
        names = self.ids if ids is None else ids
        return Problem.from_arrays(
            self.start[rows],
            self.end[rows],
            self.size[rows],
            ids=[names[row] for row in rows],
            alignment=np.full(len(rows), self.alignment),
            capacity=capacity,
        )


def format_scope(scope: Scope) -> str:
    """Return a scope as text: `.layer1.conv/aten::conv2d:1`; the number 0 is left out.

    A module is left out if the name of the next one begins with its name.
    """
    steps = []
    for depth, (name, at) in enumerate(scope, start=1):
        inner = scope[depth][0] if depth < len(scope) else ""
        inside = name.startswith(".") and inner.startswith(f"{name.rstrip('.')}.")
        if at or not inside:
            steps.append(f"{name}:{at}" if at else name)
    return "/".join(steps)


def _label(row: int) -> str:
    return f"allocation {row}"


def _count_ordinals(scopes: Iterable[Scope]) -> list[int]:
    """Return for each allocation how many of the same scope come before it."""
    seen: dict[Scope, int] = {}
    numbers = []
    for scope in scopes:
        numbers.append(seen.get(scope, 0))
        seen[scope] = numbers[-1] + 1
    return numbers
