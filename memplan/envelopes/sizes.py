"""What a program places at each size: its buffers, and their bytes as polynomials.

A source computes sizes for given dimensions, so it is asked at few of them. In most programs the
bytes of a buffer are a polynomial of the dimensions, rounded up to the alignment of the runtime.
The polynomial is found exactly, in whole numbers, from the largest values of each dimension, and it
is checked at the corners of the range and at further sizes.

    tokens          1022        1023        1024       bytes = 64 * tokens + 4 * tokens**2
    bytes        4243344     4251588     4259840       checked at 2, 1024, 57, 311, ...

Where few sizes are asked for, or the polynomials do not fit, the source is asked at every size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from memplan.envelopes.ranges import Range
from memplan.errors import MemplanError, quoted
from memplan.notes import Note
from memplan.planning import load_model
from memplan.polynomials import Polynomials
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.immutable import Immutable
from memplan.problem.intake import GAP_COLUMNS
from memplan.sources import Loaded, load, of_problem

__all__ = ["Scenario", "find_scenarios"]

_ALWAYS_READ: Final = 64  # sizes; up to so many are all read
_MOST_READ: Final = 1024
_DEGREES: Final = (2, 3, 4)
_CHECKS: Final = 12  # further sizes, beside the corners
_BETWEEN: Final = "the bytes of a buffer between the sizes that were read would be {}"
_CHUNK: Final = 1 << 21  # numbers that are computed at once


@dataclass(frozen=True, eq=False)
class Scenario(Immutable):
    """The sizes at which a program has the same buffers with the same lifetimes.

    Attributes
    ----------
    template
        The buffers at one of the sizes.
    rows
        The sizes, as rows of the range; shape (c,).
    points
        The values of the dimensions at these, shape (c, dimensions).
    bytes
        The bytes of the buffers: polynomials, or all of them, shape (buffers, c).
    unit
        Bytes to which each of the polynomials is rounded up, shape (buffers,).
    """

    template: Problem
    rows: Column
    points: Column
    bytes: Polynomials | Column
    unit: Column

    def sizes(self, begin: int, end: int) -> Column:
        """Return the bytes of every buffer at some of the sizes, shape (buffers, end - begin)."""
        if isinstance(self.bytes, Polynomials):
            return self.sizes_at(self.points[begin:end])
        return self.bytes[:, begin:end]

    def sizes_at(self, points: Column) -> Column:
        """Return what the polynomials say at any points, shape (buffers, points)."""
        assert isinstance(self.bytes, Polynomials)
        try:
            values = self.bytes.at(points)
        except ArithmeticError:
            raise MemplanError(_BETWEEN.format("no whole number")) from None
        if (values < 0).any():
            raise MemplanError(_BETWEEN.format("below 0"))
        unit = self.unit[:, None]
        rounded: Column = values if (unit == 1).all() else -(-values // unit) * unit
        return rounded

    def chunks(self) -> Iterator[tuple[int, int, Column]]:
        """Yield all sizes, a part at a time: begin, end, and the bytes."""
        step = max(1, _CHUNK // max(1, len(self.template)))
        for begin in range(0, len(self.rows), step):
            end = min(begin + step, len(self.rows))
            yield begin, end, self.sizes(begin, end)

    def problem(self, at: int) -> Problem:
        """Return the problem at one of the sizes."""
        return with_sizes(self.template, self.sizes(at, at + 1)[:, 0])


def with_sizes(problem: Problem, size: Column) -> Problem:
    """Return the same buffers with other sizes, without a capacity."""
    return Problem.from_arrays(
        problem.start,
        problem.end,
        size,
        ids=problem.ids,
        alignment=problem.alignment,
        gaps=[getattr(problem, name) for name in GAP_COLUMNS],
        conflicts=problem.conflicts,
    )


def find_scenarios(model: Any, asked: Range) -> tuple[tuple[Scenario, ...], tuple[Note, ...], str]:
    """Return the scenarios of a program, the notes of its reader, and how sizes are known.

    Parameters
    ----------
    model
        A file, a program in memory, or a function that returns a problem for values of the
        dimensions, which are passed by name.
    asked
        The sizes.

    Raises
    ------
    MemplanError
        If the sizes are neither polynomials nor few; if a buffer is tied to an address; and as the
        source does.
    """
    reader = _Reader(model, asked.names)
    largest = tuple(asked.points[-1].tolist())
    notes = reader.loaded(largest).notes
    if len(asked) > _ALWAYS_READ:
        misfit = None
        for degree in _DEGREES:
            try:
                return (_fit(reader, asked, degree),), notes, _tell_fit(reader)
            except _MisfitError as error:
                misfit = error
        if len(asked) > _MOST_READ:
            raise MemplanError(
                f"{misfit}; ask for at most {_MOST_READ:,} sizes, which are read one by one, as "
                f"in {asked.names[0]}=1,2,4 or with a step"
            )
    scenarios = _read_all(reader, asked)
    if len(scenarios) == 1 and not asked.budgets:
        scenarios = (_fit_all(reader, asked, scenarios[0]),)
    return scenarios, notes, "read at every size"


class _MisfitError(Exception):
    """Why sizes are no polynomials of some degree."""


@dataclass(frozen=True, eq=False)
class _Sample:
    problem: Problem
    bytes: Column  # before they are rounded
    unit: Column

    def has_shape_of(self, other: _Sample) -> bool:
        return _shape_of(self) == _shape_of(other)


def _shape_of(sample: _Sample) -> tuple[Any, ...]:
    problem = sample.problem
    gaps = (getattr(problem, name) for name in GAP_COLUMNS)
    columns = (problem.start, problem.end, problem.alignment, sample.unit, *gaps)
    pairs = problem.conflicts.pairs()
    return problem.ids, *(each.tobytes() for each in (*columns, pairs))


class _Reader:
    """Reads a program at given sizes, each once."""

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        self._read = _choose_reader(model)
        self._names = names
        self._samples: dict[tuple[int, ...], _Sample] = {}

    def loaded(self, point: tuple[int, ...]) -> Loaded:
        return self._read(dict(zip(self._names, point, strict=True)))

    def sample(self, point: tuple[int, ...]) -> _Sample:
        if point not in self._samples:
            loaded = self.loaded(point)
            _refuse_tied(loaded.problem)
            self._samples[point] = _Sample(loaded.problem, *_find_bytes(loaded))
        return self._samples[point]

    def __len__(self) -> int:
        return len(self._samples)


def _choose_reader(model: Any) -> Callable[[Mapping[str, int]], Loaded]:
    if isinstance(model, (str, os.PathLike)):
        return lambda dims: load_model(model, dims=dims, pins=False)
    if callable(model) and not hasattr(model, "graph_signature") and not hasattr(model, "forward"):

        def call(dims: Mapping[str, int]) -> Loaded:
            made = model(**dims)
            return made if isinstance(made, Loaded) else of_problem(made)

        return call
    if isinstance(model, (Loaded, Problem)):
        raise MemplanError(
            "a program that was read has one size; pass its file, or a function that returns its "
            "problem for values of the dimensions"
        )
    return lambda dims: load(model, dims=dims, pins=False)


def _refuse_tied(problem: Problem) -> None:
    """Refuse what ties buffers to addresses, which may not suit another size."""
    for has, what in (
        (problem.has_pins, "pins"),
        (problem.has_reserved, "reserved ranges"),
        (problem.has_groups, "groups"),
        (problem.has_windows, "windows"),
    ):
        if has:
            raise MemplanError(f"an envelope of sizes does not support {what}; leave them out")


def _find_bytes(loaded: Loaded) -> tuple[Column, Column]:
    """Return the bytes of every buffer before they are rounded up, and what they are rounded to."""
    problem, layout = loaded.problem, loaded.layout
    if layout is not None and len(layout.rows) == len(problem):
        raw = np.array([layout.storages[row].bytes for row in layout.rows], np.int64)
        if (-(-raw // problem.alignment) * problem.alignment == problem.size).all():
            return raw, problem.alignment
    return problem.size, np.ones(len(problem), np.int64)


def _read_all(reader: _Reader, asked: Range) -> tuple[Scenario, ...]:
    """Return the scenarios of sizes that are all read."""
    found: dict[tuple[Any, ...], list[int]] = {}
    points = [tuple(point) for point in asked.points.tolist()]
    for row, point in enumerate(points):
        found.setdefault(_shape_of(reader.sample(point)), []).append(row)
    return tuple(
        Scenario(
            reader.sample(points[rows[-1]]).problem,
            np.array(rows, np.int64),
            asked.points[rows],
            np.stack([reader.sample(points[row]).problem.size for row in rows], axis=1),
            np.ones(len(reader.sample(points[rows[-1]]).problem), np.int64),
        )
        for rows in found.values()
    )


def _fit_all(reader: _Reader, asked: Range, read: Scenario) -> Scenario:
    """Return polynomials in place of sizes that were all read, if some give exactly these."""
    for degree in (1, *_DEGREES):
        try:
            fitted = _fit(reader, asked, degree)
            same = np.array_equal(fitted.sizes(0, len(asked)), read.sizes(0, len(asked)))
        except (_MisfitError, MemplanError):
            continue
        if same:
            return fitted
    return read


def _fit(reader: _Reader, asked: Range, degree: int) -> Scenario:
    """Return the one scenario of a program whose sizes are polynomials of this degree.

    Raises
    ------
    _MisfitError
        If they are not, or its buffers differ.
    """
    nodes = [axis[-degree - 1 :] for axis in asked.axes]
    if prod(map(len, nodes)) + _CHECKS > _MOST_READ:
        raise _MisfitError(
            f"sizes of {len(nodes)} dimensions are too many to be read as polynomials"
        )
    template = reader.sample(tuple(axis[-1] for axis in asked.axes))
    samples = []
    for point in product(*nodes):
        sample = reader.sample(point)
        if not sample.has_shape_of(template):
            raise _MisfitError(_tell_shape(asked, point, sample, template))
        samples.append(sample.bytes.tolist())
    scenario = _interpolate(nodes, samples, template, asked)
    for point in _choose_checks(asked):
        sample = reader.sample(point)
        if not sample.has_shape_of(template):
            raise _MisfitError(_tell_shape(asked, point, sample, template))
        try:
            size = scenario.sizes_at(np.array([point], np.int64))[:, 0]
        except MemplanError as error:
            raise _MisfitError(str(error)) from None
        wrong = np.flatnonzero(size != sample.problem.size)
        if len(wrong):
            row = int(wrong[0])
            raise _MisfitError(
                f"{sample.problem.label(row)} has {sample.problem.size[row]} bytes at "
                f"{_tell(asked, point)}, which no polynomial of degree {degree} gives"
            )
    return scenario


def _interpolate(
    nodes: Sequence[Sequence[int]],
    samples: Sequence[Sequence[int]],
    template: _Sample,
    asked: Range,
) -> Scenario:
    """Return the scenario whose sizes go through samples at all combinations of the nodes."""
    found = Polynomials.through(nodes, samples)
    bounds = found.bounds([axis[-1] for axis in asked.axes])
    for id, bound, unit in zip(template.problem.ids, bounds, template.unit.tolist(), strict=True):
        if bound + unit > MAX_BYTES:
            raise MemplanError(f"buffer {quoted(id)} is too large in this range: above 2^62")
    rows = np.arange(len(asked), dtype=np.int64)
    return Scenario(template.problem, rows, asked.points, found, template.unit)


def _choose_checks(asked: Range) -> list[tuple[int, ...]]:
    """Return the corners of the range, and further sizes; the same ones each time."""
    corners = list(product(*({axis[0], axis[-1]} for axis in asked.axes)))[:_MOST_READ]
    rows = np.random.default_rng(0).integers(len(asked), size=_CHECKS)
    return [*corners, *map(tuple, asked.points[[0, *rows.tolist(), -1]].tolist())]


def _tell_fit(reader: _Reader) -> str:
    return f"polynomials, checked at {len(reader)} sizes that were read"


def _tell(asked: Range, point: Sequence[int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(asked.names, point, strict=True))


def _tell_shape(asked: Range, point: Sequence[int], sample: _Sample, template: _Sample) -> str:
    ids = set(sample.problem.ids) ^ set(template.problem.ids)
    what = f"buffer {quoted(min(ids))} is there" if ids else "some buffers live"
    return f"the buffers depend on the size: at {_tell(asked, point)}, {what} at other times or not"
