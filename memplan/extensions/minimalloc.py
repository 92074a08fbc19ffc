"""The interface of the Python module minimalloc over the solvers of memplan.

    import memplan.extensions.minimalloc as mm

    problem = mm.from_csv_file("input.csv")
    problem.capacity = 12
    solution = mm.Solver().solve(problem)  # offsets and height, or None

Its sweep and sections are not here. docs/minimalloc.md says where answers differ. As there, a field
takes values of its type only, so that calls of another module of this name do not pass unnoticed.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memplan import _core
from memplan.base.errors import MemplanError, shown
from memplan.base.files import read_text, write_text

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
    "PreorderData",
    "PreorderingComparator",
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
_OTHER: Final = "another module named minimalloc has other arguments (docs/minimalloc.md)"


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__")


def _is_list(value: Any, holds: Callable[[Any], bool]) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str) and all(map(holds, value))


# By the annotation of a field: what it takes, and in words.
_TYPES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "str": (lambda value: isinstance(value, str), "text"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (_is_whole, "a whole number"),
    "int | None": (lambda value: value is None or _is_whole(value), "a whole number or None"),
    "float": (lambda value: isinstance(value, (int, float)), "a number"),
    "Interval": (lambda value: isinstance(value, Interval), "a Lifespan"),
    "Interval | None": (lambda v: v is None or isinstance(v, Interval), "a Window or None"),
    "Duration | float | None": (
        lambda value: value is None or isinstance(value, (int, float, Duration)),
        "a Duration, a number of seconds or None",
    ),
    "list[int]": (lambda value: _is_list(value, _is_whole), "a list of whole numbers only"),
    "list[str]": (
        lambda value: _is_list(value, lambda each: isinstance(each, str)),
        "a list of texts only",
    ),
    "list[Gap]": (
        lambda value: _is_list(value, lambda each: isinstance(each, Gap)),
        "a list of Gaps only",
    ),
    "list[Buffer]": (
        lambda value: _is_list(value, lambda each: isinstance(each, Buffer)),
        "a list of Buffers only",
    ),
}


class _Typed:
    """A data class whose fields are checked when they are set."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __setattr__(self, name: str, value: object) -> None:
        self._check(name, value)
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(self._explain(name), name=name, obj=self)

    def _check(self, name: str, value: object) -> None:
        known = self.__dataclass_fields__.get(name)
        if known is None:
            raise AttributeError(self._explain(name), name=name, obj=self)
        takes, words = _TYPES[known.type]
        if not takes(value):
            raise TypeError(
                f"{type(self).__name__}.{name} is {shown(value)}; it must be {words}: {_OTHER}"
            )

    def _explain(self, name: str) -> str:
        known = ", ".join(self.__dataclass_fields__)
        return f"{type(self).__name__} has no {name}, but {known}: {_OTHER}"


class _Frozen(_Typed):
    """The same, of fields that are set once."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            self._check(name, getattr(self, name))


@dataclass(frozen=True, order=True, slots=True)
class Interval(_Frozen):
    """Half-open: `lower <= x < upper`."""

    lower: int = 0
    upper: int = 0

    def __repr__(self) -> str:
        return f"Interval({self.lower}, {self.upper})"


Lifespan = Window = Interval


@dataclass(slots=True)
class Gap(_Typed):
    """The time in which a buffer holds its window only; nothing without one."""

    lifespan: Interval = field(default_factory=Interval)
    window: Interval | None = None

    def __hash__(self) -> int:
        return hash((self.lifespan, self.window))


@dataclass(slots=True)
class Buffer(_Typed):
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


@dataclass(slots=True)
class Solution(_Typed):
    """The offsets of all buffers, and the largest end. Two are equal if their offsets are."""

    offsets: list[int] = field(default_factory=list)
    height: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return hash(tuple(self.offsets))


@dataclass(slots=True)
class Problem(_Typed):
    """Buffers, and the bytes that there are; `Solver().solve(problem)` places them."""

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


@dataclass(frozen=True, order=True, slots=True)
class Duration(_Frozen):
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

    def __repr__(self) -> str:
        is_endless = self.seconds == float("inf")
        return "Duration.infinite()" if is_endless else f"Duration({self.seconds} seconds)"


@dataclass(slots=True)
class SolverParams(_Typed):
    """The time, which is always read as a Duration, what is asked, and the published switches.

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

    def __setattr__(self, name: str, value: object) -> None:
        _Typed.__setattr__(self, name, value)
        if name == "timeout" and not isinstance(value, Duration):
            seconds = float("inf") if value is None else float(value)  # type: ignore[arg-type]
            object.__setattr__(self, name, Duration(seconds))


@dataclass(slots=True)
class PreorderData(_Typed):
    """What a heuristic compares, of one buffer."""

    area: int = 0
    lower: int = 0
    overlaps: int = 0
    sections: int = 0
    size: int = 0
    total: int = 0
    upper: int = 0
    width: int = 0
    buffer_idx: int = 0


class PreorderingComparator:
    """Whether a buffer comes before another one, by the letters of a heuristic.

    For each letter in turn, the greater number comes first; at last, the lower index. A letter that
    names nothing has no effect.
    """

    _FIELDS: ClassVar[dict[str, str]] = {
        "A": "area",
        "C": "sections",
        "L": "lower",
        "O": "overlaps",
        "T": "total",
        "U": "upper",
        "W": "width",
        "Z": "size",
    }

    def __init__(self, heuristic: str) -> None:
        self._names = [self._FIELDS[letter] for letter in heuristic if letter in self._FIELDS]

    def __call__(self, lhs: PreorderData, rhs: PreorderData) -> bool:
        """Return whether the first comes before the second."""
        for name in self._names:
            one, other = getattr(lhs, name), getattr(rhs, name)
            if one != other:
                return bool(one > other)
        return lhs.buffer_idx < rhs.buffer_idx


def _published_search(switches: dict[str, bool], orders: Sequence[str]) -> _core.Outside:
    try:
        import memplan._published as _published
    except ModuleNotFoundError:
        raise MemplanError(
            "the published search needs the module memplan._published, which is not installed: "
            "leave SolverParams.published off"
        ) from None
    return _published.compat_solver(switches, orders)


class Solver:
    """Finds offsets within the capacity, or the least height within it."""

    def __init__(self, params: SolverParams | None = None) -> None:
        params = SolverParams() if params is None else params
        if not isinstance(params, SolverParams):
            raise TypeError(f"params is {shown(params)}; it must be SolverParams: {_OTHER}")
        assert isinstance(params.timeout, Duration)
        seconds = params.timeout.seconds
        others = {"timeout", "preordering_heuristics", "published"}
        names = {each.name for each in fields(params)} - others
        switches = {name: bool(getattr(params, name)) for name in names}
        orders = params.preordering_heuristics
        published = _published_search(switches, orders) if params.published else None
        self._solver = _core.CompatSolver(seconds, switches, orders, published)
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
        """Return the nodes of the last search, at least 1 where it proved that nothing fits."""
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
    if not _is_whole(value):
        raise TypeError(f"{shown(value)} is no whole number")
    if not -_LARGEST <= value <= _LARGEST:
        raise MemplanError(f"{value} is out of range: numbers have 64 bits")
    return int(value)


def _pair(interval: Interval) -> tuple[int, int]:
    return _number(interval.lower), _number(interval.upper)


def _row(buffer: Buffer) -> _Row:
    """Return a buffer as the core takes it."""
    Buffer(gaps=buffer.gaps)  # which checks what was added to the list, too
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
    if not isinstance(problem, Problem):
        raise TypeError(f"{shown(problem)} is no Problem: {_OTHER}")
    Problem(problem.buffers)  # which checks what was added to the list, too
    return list(map(_row, problem.buffers))


def _buffer(row: _Row) -> Buffer:
    id, lifespan, size, alignment, gaps, offset, hint = row
    held = [Gap(Interval(a, b), window and Interval(*window)) for a, b, window in gaps]
    return Buffer(id, Interval(*lifespan), size, alignment, held, offset, hint)
