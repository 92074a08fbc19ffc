"""Finds what a program places at each size: its buffers, and their bytes as polynomials.

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

from memplan.envelopes.ranges import Range, describe
from memplan.envelopes.sizes import Pieces, Scenario
from memplan.errors import MemplanError, quoted
from memplan.notes import Note
from memplan.planning import load_model
from memplan.polynomials import Polynomials
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.intake import GAP_COLUMNS
from memplan.sources import Loaded, load, of_problem

__all__ = ["find_scenarios"]

_ALWAYS_READ: Final = 64  # sizes; up to so many are all read
_MOST_READ: Final = 1024
_DEGREES: Final = (2, 3, 4)
_PERIODS: Final = (2, 4, 8, 16, 32)
_CHECKS: Final = 12  # further sizes, beside the corners


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
        for degree, periods in _list_forms(asked):
            try:
                return (_fit(reader, asked, degree, periods),), notes, _tell_fit(reader, periods)
            except _MisfitError as error:
                misfit = misfit or error
        if len(asked) > _MOST_READ:
            raise MemplanError(
                f"{misfit}; ask for at most {_MOST_READ:,} sizes, which are read one by one, as "
                f"in {asked.names[0]}=1,2,4 or with a step"
            )
    scenarios = _read_all(reader, asked)
    if len(scenarios) == 1 and not asked.conditions:
        scenarios = (_fit_all(reader, asked, scenarios[0]),)
    return scenarios, notes, "read at every size"


def _list_forms(asked: Range) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield degrees of polynomials and periods of the dimensions, the simplest first."""
    plain = tuple(1 for _ in asked.axes)
    for degree in _DEGREES:
        yield degree, plain
    if len(asked) <= _MOST_READ:
        return  # to read all is no more work
    for period in _PERIODS:
        for at in range(len(plain)):
            yield 2, (*plain[:at], period, *plain[at + 1 :])
        if len(plain) > 1:
            yield 2, tuple(period for _ in plain)


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
        )
        for rows in found.values()
    )


def _fit_all(reader: _Reader, asked: Range, read: Scenario) -> Scenario:
    """Return polynomials in place of sizes that were all read, if some give exactly these."""
    for degree in (1, *_DEGREES):
        try:
            fitted = _fit(reader, asked, degree, tuple(1 for _ in asked.axes))
            same = np.array_equal(fitted.sizes(0, len(asked)), read.sizes(0, len(asked)))
        except (_MisfitError, MemplanError):
            continue
        if same:
            return fitted
    return read


def _fit(reader: _Reader, asked: Range, degree: int, periods: tuple[int, ...]) -> Scenario:
    """Return the one scenario of a program whose sizes are polynomials of this degree.

    Raises
    ------
    _MisfitError
        If they are not, or its buffers differ.
    """
    pieces = [
        _split(axis, period, degree) for axis, period in zip(asked.axes, periods, strict=True)
    ]
    if prod(sum(map(len, each.values())) for each in pieces) + _CHECKS > _MOST_READ:
        raise _MisfitError("polynomials would have to be read at too many sizes")
    template = reader.sample(tuple(axis[-1] for axis in asked.axes))
    parts = []
    for remainder in product(*pieces):
        nodes = [each[rest] for each, rest in zip(pieces, remainder, strict=True)]
        samples = []
        for point in product(*nodes):
            sample = reader.sample(point)
            _require_shape(asked, point, sample, template)
            samples.append(sample.bytes.tolist())
        parts.append((remainder, _interpolate(nodes, samples, template, asked)))
    found = Pieces(periods, tuple(parts), template.unit)
    _check(reader, asked, found, template)
    rows = np.arange(len(asked), dtype=np.int64)
    return Scenario(template.problem, rows, asked.points, found)


def _split(axis: Sequence[int], period: int, degree: int) -> dict[int, tuple[int, ...]]:
    """Return by remainder the largest values of a dimension, from which polynomials are found."""
    found: dict[int, tuple[int, ...]] = {}
    for value in axis:
        found[value % period] = (*found.get(value % period, ())[-degree:], value)
    return found


def _require_shape(
    asked: Range, point: tuple[int, ...], sample: _Sample, template: _Sample
) -> None:
    if sample.has_shape_of(template):
        return
    both = f"{_tell(asked, point)} and {_tell(asked, [axis[-1] for axis in asked.axes])}"
    ids = set(sample.problem.ids) ^ set(template.problem.ids)
    what = f"only one of {both} has buffer {quoted(min(ids))}" if ids else f"{both} differ"
    raise _MisfitError(f"the buffers depend on the size, as {what}")


def _interpolate(
    nodes: Sequence[Sequence[int]],
    samples: Sequence[Sequence[int]],
    template: _Sample,
    asked: Range,
) -> Polynomials:
    """Return the polynomials through samples at all combinations of the nodes."""
    found = Polynomials.through(nodes, samples)
    bounds = found.bounds([axis[-1] for axis in asked.axes])
    for id, bound, unit in zip(template.problem.ids, bounds, template.unit.tolist(), strict=True):
        if bound + unit > MAX_BYTES:
            raise _MisfitError(f"buffer {quoted(id)} is too large in this range: above 2^62")
    return found


def _check(reader: _Reader, asked: Range, found: Pieces, template: _Sample) -> None:
    """Check polynomials at further sizes."""
    for point in _choose_checks(asked):
        sample = reader.sample(point)
        _require_shape(asked, point, sample, template)
        try:
            size = found.at(np.array([point], np.int64))[:, 0]
        except MemplanError as error:
            raise _MisfitError(str(error)) from None
        wrong = np.flatnonzero(size != sample.problem.size)
        if len(wrong):
            row = int(wrong[0])
            raise _MisfitError(
                f"{sample.problem.label(row)} has {sample.problem.size[row]} bytes at "
                f"{_tell(asked, point)}, which no polynomial of the dimensions gives"
            )


def _choose_checks(asked: Range) -> list[tuple[int, ...]]:
    """Return the corners of the range, and further sizes; the same ones each time."""
    corners = list(product(*({axis[0], axis[-1]} for axis in asked.axes)))[:_MOST_READ]
    rows = np.random.default_rng(0).integers(len(asked), size=_CHECKS)
    return [*corners, *map(tuple, asked.points[[0, *rows.tolist(), -1]].tolist())]


def _tell_fit(reader: _Reader, periods: Sequence[int]) -> str:
    several = f", one for each remainder of {max(periods)}" if max(periods) > 1 else ""
    return f"polynomials{several}, which {len(reader)} sizes that were read agree with"


def _tell(asked: Range, point: Sequence[int]) -> str:
    return describe(dict(zip(asked.names, point, strict=True)))
