"""The interface of the Python module minimalloc over the solvers of memplan.

    import memplan.compat.minimalloc as mm

    problem = mm.from_csv_file("input.csv")
    problem.capacity = 12
    solution = mm.Solver().solve(problem)  # offsets and height, or None

Its sweep, sections and preorderings are not here. docs/minimalloc.md says where answers differ.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from memplan import _core
from memplan.errors import MemplanError
from memplan.files import read_text, write_text

__all__ = [
    "Area",
    "Buffer",
    "BufferIdx",
    "Capacity",
    "Duration",
    "Gap",
    "Interval",
    "Lifespan",
    "Offset",
    "Problem",
    "Solution",
    "Solver",
    "SolverParams",
    "TimeValue",
    "ValidationResult",
    "Window",
    "from_csv",
    "from_csv_file",
    "to_csv",
    "to_csv_file",
    "validate",
]

Area = BufferIdx = Capacity = Offset = TimeValue = int

_GapRow = tuple[int, int, tuple[int, int] | None]
_Row = tuple[str, tuple[int, int], int, int, Sequence[_GapRow], int | None, int | None]
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, order=True)
class Interval:
    """Half-open: `lower <= x < upper`."""

    lower: int = 0
    upper: int = 0


Lifespan = Window = Interval


@dataclass(frozen=True)
class Gap:
    """The time in which a buffer holds its window only; nothing without one."""

    lifespan: Interval = field(default_factory=Interval)
    window: Interval | None = None


@dataclass
class Buffer:
    """What has to be placed. Two are equal if all but their hints are; a hint has no effect."""

    id: str = ""
    lifespan: Interval = field(default_factory=Interval)
    size: int = 0
    alignment: int = 1
    gaps: list[Gap] = field(default_factory=list)
    offset: int | None = None
    hint: int | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.id, self.lifespan, self.size, self.alignment))

    def area(self) -> int:
        """Return the size times the lifespan."""
        return self.size * (self.lifespan.upper - self.lifespan.lower)

    def effective_size(self, other: Buffer) -> int | None:
        """Return the bytes to the offset of one that lies above; `None` if the two never meet."""
        return _core.compat_effective_size(_row(self), _row(other))


@dataclass
class Solution:
    """The offsets of all buffers, and the largest end. Two are equal if their offsets are."""

    offsets: list[int] = field(default_factory=list)
    height: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return hash(tuple(self.offsets))


@dataclass
class Problem:
    """Buffers, and the bytes that there are."""

    buffers: list[Buffer] = field(default_factory=list)
    capacity: int = 0

    def __hash__(self) -> int:
        return hash((self.capacity, tuple(self.buffers)))

    def strip_solution(self) -> Solution | None:
        """Move the pins of all buffers to a solution; `None` if a buffer has none."""
        offsets = [each.offset for each in self.buffers if each.offset is not None]
        if len(offsets) < len(self.buffers):
            return None
        for buffer in self.buffers:
            buffer.offset = None
        return Solution(offsets)


@dataclass(frozen=True, order=True)
class Duration:
    """A time in seconds."""

    seconds: float = 0.0

    @staticmethod
    def from_seconds(seconds: float) -> Duration:
        """Return so many seconds."""
        return Duration(seconds)

    @staticmethod
    def from_milliseconds(milliseconds: float) -> Duration:
        """Return so many milliseconds."""
        return Duration(milliseconds / 1e3)

    @staticmethod
    def from_microseconds(microseconds: float) -> Duration:
        """Return so many microseconds."""
        return Duration(microseconds / 1e6)

    @staticmethod
    def infinite() -> Duration:
        """Return a time that never ends."""
        return Duration(float("inf"))

    def to_seconds(self) -> float:
        """Return the seconds."""
        return self.seconds


@dataclass
class SolverParams:
    """The time, what is asked, and the switches of the published search.

    The switches and the heuristics count with `published` only: memplan has searches of its own.
    """

    timeout: Duration | float | None = None
    canonical_only: bool = True
    section_inference: bool = True
    dynamic_ordering: bool = True
    check_dominance: bool = True
    unallocated_floor: bool = True
    static_preordering: bool = True
    dynamic_decomposition: bool = True
    monotonic_floor: bool = True
    hatless_pruning: bool = True
    minimize_capacity: bool = False
    preordering_heuristics: list[str] = field(default_factory=lambda: ["WAT", "TAW", "TWA"])
    published: bool = False


class Solver:
    """Finds offsets within the capacity, or the least height within it."""

    def __init__(self, params: SolverParams | None = None) -> None:
        params = SolverParams() if params is None else params
        seconds = Duration.infinite() if params.timeout is None else params.timeout
        if isinstance(seconds, Duration):
            seconds = seconds.seconds
        names = {each.name for each in fields(params)} - {"timeout", "preordering_heuristics"}
        switches = {name: bool(getattr(params, name)) for name in names}
        self._solver = _core.CompatSolver(seconds, switches, params.preordering_heuristics)
        self._nodes = 0

    def solve(self, problem: Problem) -> Solution | None:
        """Return a solution; `None` if there is none, or none was found in time.

        Raises
        ------
        MemplanError
            For numbers that have no 64 bits.
        """
        found = self._solver.solve(_rows(problem), _number(problem.capacity))
        code, _, offsets, height, self._nodes = found
        return Solution(offsets, height) if code == 0 else None

    def compute_irreducible_infeasible_subset(self, problem: Problem) -> list[int] | None:
        """Return buffers that do not fit together, but do without any of them.

        All buffers of a problem with a solution; `None` if the time ran out.
        """
        found = self._solver.find_infeasible(_rows(problem), _number(problem.capacity))
        code, _, rows, self._nodes = found
        return rows if code == 0 else None

    def get_backtracks(self) -> int:
        """Return the work of the last search: its nodes."""
        return self._nodes

    def cancel(self) -> None:
        """End the search that another thread waits for."""
        self._solver.cancel()


class ValidationResult(enum.IntEnum):
    """What is wrong with a solution."""

    GOOD = 0
    BAD_SOLUTION = 1
    BAD_FIXED = 2
    BAD_OFFSET = 3
    BAD_OVERLAP = 4
    BAD_ALIGNMENT = 5
    BAD_HEIGHT = 6


def validate(problem: Problem, solution: Solution) -> ValidationResult:
    """Check a solution, without any code of a solver."""
    offsets = list(map(_number, solution.offsets))
    rows, capacity = _rows(problem), _number(problem.capacity)
    return ValidationResult(
        _core.compat_validate(rows, capacity, offsets, _number(solution.height))
    )


def from_csv(input: str) -> Problem | None:
    """Read a table, which ends at an empty line; `None` if it is not well formed."""
    code, _, rows = _core.compat_read(input)
    return Problem([_buffer(row) for row in rows]) if code == 0 else None


def to_csv(problem: Problem, solution: Solution | None = None, old_format: bool = False) -> str:
    """Write a table; in the old format with the last time in place of the end."""
    offsets = None
    if solution is not None:
        offsets = list(map(_number, solution.offsets))
        if len(offsets) != len(problem.buffers):
            raise MemplanError("the solution must have one offset for each buffer")
    return _core.compat_write(_rows(problem), offsets, old_format)


def from_csv_file(path: str | os.PathLike[str]) -> Problem | None:
    """Read a table from a file, as `from_csv` does."""
    return from_csv(read_text(path))


def to_csv_file(
    path: str | os.PathLike[str], problem: Problem, solution: Solution | None = None
) -> None:
    """Write a table to a file, or leave the old file as it was."""
    write_text(path, to_csv(problem, solution))


def _number(value: int) -> int:
    if not -_LARGEST <= value <= _LARGEST:
        raise MemplanError(f"{value} is out of range: numbers have 64 bits")
    return int(value)


def _pair(interval: Interval) -> tuple[int, int]:
    return _number(interval.lower), _number(interval.upper)


def _row(buffer: Buffer) -> _Row:
    """Return a buffer as the core takes it."""
    return (
        buffer.id,
        _pair(buffer.lifespan),
        _number(buffer.size),
        _number(buffer.alignment),
        [
            (*_pair(gap.lifespan), None if gap.window is None else _pair(gap.window))
            for gap in buffer.gaps
        ],
        None if buffer.offset is None else _number(buffer.offset),
        None if buffer.hint is None else _number(buffer.hint),
    )


def _rows(problem: Problem) -> list[_Row]:
    return list(map(_row, problem.buffers))


def _buffer(row: _Row) -> Buffer:
    id, lifespan, size, alignment, gaps, offset, hint = row
    held = [Gap(Interval(a, b), window and Interval(*window)) for a, b, window in gaps]
    return Buffer(id, Interval(*lifespan), size, alignment, held, offset, hint)
