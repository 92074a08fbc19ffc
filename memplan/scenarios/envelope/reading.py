"""Finds what a program places at each size: its buffers, and their bytes as polynomials.

A source computes sizes for given dimensions, so it is asked at few of them. In most programs the
bytes of a buffer are a polynomial of the dimensions, rounded up to the alignment of the runtime.
The polynomial is found exactly, in whole numbers, from the largest values of each dimension, and it
is checked at the corners of the range and at further sizes.

    tokens          1022        1023        1024       bytes = 64 * tokens + 4 * tokens**2
    bytes        4243344     4251588     4259840       checked at 2, 1024, 57, 311, ...

Where few sizes are asked for, or the polynomials do not fit, the source is asked at every size; and
where it knows formulas, these give all sizes (`memplan.scenarios.envelope.formulas`).
What was not asked is presumed, and all that follows from it is said with this premise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from memplan.base.errors import MemplanError, quoted
from memplan.base.notes import Note
from memplan.problem import Problem
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.intake import GAP_COLUMNS
from memplan.problem.polynomials import Polynomials
from memplan.programs.sources import Loaded, load, of_problem
from memplan.scenarios.envelope.formulas import compute
from memplan.scenarios.envelope.ranges import Range, Values, describe
from memplan.scenarios.envelope.sizes import Pieces, Scenario
from memplan.solvers.planning import load_model

__all__ = ["find_scenarios"]

_ALWAYS_READ: Final = 64  # sizes; up to so many are all read
_MOST_READ: Final = 1024
_MOST_NUMBERS: Final = 1 << 26  # that are kept of sizes that are all read
_DEGREES: Final = (2, 3, 4)
_PERIODS: Final = (2, 4, 8, 16, 32)
_MOST_WORK: Final = 1 << 16  # polynomials
_CHECKS: Final = 12  # further sizes, beside the corners


def find_scenarios(
    model: Any, asked: Range, *, read_all: bool = False
) -> tuple[tuple[Scenario, ...], tuple[Note, ...], str]:
    """Return the scenarios of a program, the notes of its reader, and how sizes are known.

    The program is a file, in memory, or a function that returns a problem for values of the
    dimensions, which are passed by name. With `read_all`, every size is read, however many there
    are. Sizes that are neither polynomials nor few, and buffers that are tied to an address, are
    refused.
    """
    reader = _Reader(model, asked.names)
    notes = reader.sample(_last(asked)).notes
    if len(asked) > _ALWAYS_READ and not read_all:
        computed = _compute_all(reader, model, asked)
        if computed is not None:
            return computed, notes, "computed at every size by the formulas of the program"
        misfit = None
        for fit in _list_fits(reader, asked):
            try:
                found = fit()
            except _MisfitError as error:
                misfit = misfit or error
            else:
                return (found,), notes, _tell_fit(found)
        if len(asked) > _MOST_READ:
            raise MemplanError(
                f"{misfit}; ask for at most {_MOST_READ:,} sizes, which are read one by one, as "
                f"in {asked.names[0]}=1,2,4 or with a step, or have all of them read "
                "(--read every-size)"
            )
    scenarios = _read_all(reader, asked)
    if len(scenarios) == 1:
        scenarios = (_fit_all(reader, asked, scenarios[0]),)
    return scenarios, notes, "read at every size"


def _list_fits(reader: _Reader, asked: Range) -> Iterator[Callable[[], Scenario]]:
    """Yield ways to find polynomials from few sizes, the simplest first."""
    for degree in _DEGREES:
        yield partial(_fit, reader, asked, degree, _no_periods(asked))
    if len(asked) > _MOST_READ:  # otherwise, to read all is no more work
        yield partial(_fit_pieces, reader, asked, by_lines=True)
        yield partial(_fit_pieces, reader, asked, by_lines=False)


def _no_periods(asked: Range) -> tuple[int, ...]:
    return tuple(1 for _ in asked.axes)


def _fit_pieces(reader: _Reader, asked: Range, *, by_lines: bool) -> Scenario:
    """Return polynomials for each remainder; see `_fit`."""
    return _fit(reader, asked, 2, _find_periods(reader, asked), by_lines=by_lines)


class _MisfitError(Exception):
    """Why sizes are no polynomials of some degree."""


@dataclass(frozen=True, eq=False)
class _Sample:
    problem: Problem
    notes: tuple[Note, ...]
    bytes: Column  # before they are rounded
    unit: Column

    @cached_property
    def shape(self) -> tuple[Any, ...]:
        """All but the bytes, to compare."""
        problem = self.problem
        gaps = (getattr(problem, name) for name in GAP_COLUMNS)
        columns = (problem.start, problem.end, problem.alignment, self.unit, *gaps)
        pairs = problem.conflicts.pairs()
        return problem.ids, *(each.tobytes() for each in (*columns, pairs))


class _Reader:
    """Reads a program at given sizes, each once."""

    def __init__(self, model: Any, names: Sequence[str]) -> None:
        self._read = _choose_reader(model)
        self._names = names
        self._samples: dict[tuple[int, ...], _Sample] = {}

    def sample(self, point: tuple[int, ...], *, keep: bool = True) -> _Sample:
        found = self._samples.get(point)
        if found is None:
            loaded = self._read(dict(zip(self._names, point, strict=True)))
            _refuse_tied(loaded.problem)
            found = _Sample(loaded.problem, loaded.notes, *_find_bytes(loaded))
            if keep:
                self._samples[point] = found
        return found

    def list_said(self, asked: Range) -> tuple[Column, Column]:
        """Return which of the sizes were read, shape (k,), and the bytes, shape (buffers, k)."""
        rows = [
            (row, self._samples[point].problem.size)
            for row, point in enumerate(map(tuple, asked.points.tolist()))
            if point in self._samples
        ]
        return np.array([row for row, _ in rows], np.int64), np.stack([b for _, b in rows], axis=1)


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
    found: dict[tuple[Any, ...], tuple[Problem, list[int], list[Column]]] = {}
    numbers = 0
    for row, point in enumerate(map(tuple, asked.points.tolist())):
        sample = reader.sample(point, keep=row < _MOST_READ)
        problem, rows, bytes = found.setdefault(sample.shape, (sample.problem, [], []))
        rows.append(row)
        bytes.append(sample.problem.size)
        numbers += len(problem)
        if numbers > _MOST_NUMBERS:
            raise MemplanError(
                f"the bytes of all buffers at all {len(asked):,} sizes take too much memory; ask "
                "for fewer sizes"
            )
    return tuple(
        _make_scenario(asked, problem, np.array(rows, np.int64), np.stack(bytes, axis=1))
        for problem, rows, bytes in found.values()
    )


def _compute_all(reader: _Reader, model: Any, asked: Range) -> tuple[Scenario, ...] | None:
    """Return the scenarios of a program whose reader has formulas; `None` for others.

    Some sizes are read, too, and have to be as the formulas say.
    """
    if callable(model) and not hasattr(model, "graph_signature"):
        return None
    if len(asked) * len(reader.sample(_last(asked)).problem) > _MOST_NUMBERS:
        return None
    computed = compute(model, asked, lambda point: reader.sample(point).problem)
    if computed is None:
        return None
    found: dict[tuple[Any, ...], list[tuple[Column, Column]]] = {}
    problems = {}
    for problem, rows, bytes in computed:
        shape = reader.sample(tuple(asked.points[rows[0]].tolist())).shape
        problems[shape] = problem
        found.setdefault(shape, []).append((rows, bytes))
    scenarios = []
    for shape, parts in found.items():
        rows = np.concatenate([rows for rows, _ in parts])
        order = np.argsort(rows)
        bytes = np.concatenate([bytes for _, bytes in parts], axis=1)[:, order]
        scenarios.append(_make_scenario(asked, problems[shape], rows[order], bytes))
    for point in _choose_rows(asked):
        sample, row = reader.sample(point), asked.index(dict(zip(asked.names, point, strict=True)))
        mine = next(each for each in scenarios if row in each.rows)
        at = int(np.searchsorted(mine.rows, row))
        same = sample.shape == reader.sample(tuple(mine.points[0].tolist())).shape
        if not same or (sample.problem.size != mine.said[:, at]).any():
            return None
    if len(scenarios) == 1:
        return (_fit_all(reader, asked, scenarios[0]),)
    return tuple(scenarios)


def _make_scenario(asked: Range, template: Problem, rows: Column, bytes: Column) -> Scenario:
    """Return a scenario whose bytes are all known."""
    every = np.arange(len(rows), dtype=np.int64)
    return Scenario(template, rows, asked.points[rows], bytes, every, bytes)


def _fit_all(reader: _Reader, asked: Range, read: Scenario) -> Scenario:
    """Return polynomials in place of sizes that were all read, if some give exactly these."""
    plain = (partial(_fit, reader, asked, degree, _no_periods(asked)) for degree in (1, *_DEGREES))
    pieces = (partial(_fit_pieces, reader, asked, by_lines=by_lines) for by_lines in (True, False))
    for fit in (*plain, *pieces):
        try:
            fitted = fit()
            same = np.array_equal(fitted.sizes(0, len(asked)), read.sizes(0, len(asked)))
        except (_MisfitError, MemplanError):
            continue
        if same:
            return replace(fitted, read=read.read, said=read.said)
    return read


def _fit(
    reader: _Reader,
    asked: Range,
    degree: int,
    periods: tuple[int, ...],
    *,
    by_lines: bool = False,
) -> Scenario:
    """Return the one scenario of a program whose sizes are polynomials of this degree.

    Degree and period are those of each dimension. With `by_lines`, only lines through the largest
    size are read, as if each dimension multiplied all bytes; otherwise all combinations of the
    nodes are. A `_MisfitError` says that sizes are no such polynomials, or that buffers differ.
    """
    pieces = [
        _split(axis, period, degree) for axis, period in zip(asked.axes, periods, strict=True)
    ]
    template = _read(reader, asked, _largest(asked))
    counts = [sum(map(len, each.values())) for each in pieces]
    work = prod(map(len, pieces)) * len(template.bytes)
    if (sum(counts) if by_lines else prod(counts)) > _MOST_READ or work > _MOST_WORK:
        raise _MisfitError("polynomials would have to be read at too many sizes")
    multiply = _multiply if by_lines else _take
    parts = []
    for remainder in product(*pieces):
        nodes = [each[rest] for each, rest in zip(pieces, remainder, strict=True)]
        samples = [multiply(reader, asked, point) for point in product(*nodes)]
        parts.append((remainder, _interpolate(nodes, samples, template, asked)))
    found = Pieces(periods, tuple(parts), template.unit)
    _check(reader, asked, found, _choose_checks(asked))
    rows = np.arange(len(asked), dtype=np.int64)
    return Scenario(template.problem, rows, asked.points, found, *reader.list_said(asked))


def _last(asked: Range) -> tuple[int, ...]:
    return tuple(asked.points[-1].tolist())


def _largest(asked: Range) -> tuple[int, ...]:
    return tuple(axis[-1] for axis in asked.axes)


def _read(reader: _Reader, asked: Range, point: tuple[int, ...]) -> _Sample:
    """Read a point; where conditions may leave it out, an error is a reason to read others."""
    try:
        return reader.sample(point)
    except MemplanError as error:
        if asked.conditions:
            raise _MisfitError(str(error)) from None
        raise


def _take(reader: _Reader, asked: Range, point: tuple[int, ...]) -> list[int]:
    """Read the bytes at a point; the buffers must be those of the largest size."""
    sample, template = (_read(reader, asked, each) for each in (point, _largest(asked)))
    if sample.shape != template.shape:
        both = f"{_tell(asked, point)} and {_tell(asked, _largest(asked))}"
        ids = set(sample.problem.ids) ^ set(template.problem.ids)
        what = f"only one of {both} has buffer {quoted(min(ids))}" if ids else f"{both} differ"
        raise _MisfitError(f"the buffers depend on the size, as {what}")
    bytes: list[int] = sample.bytes.tolist()
    return bytes


def _multiply(reader: _Reader, asked: Range, point: tuple[int, ...]) -> list[int]:
    """Return the bytes at a point if each dimension multiplies those of the largest size."""
    corner = _largest(asked)
    base = _take(reader, asked, corner)
    lines = [
        _take(reader, asked, (*corner[:axis], value, *corner[axis + 1 :]))
        for axis, value in enumerate(point)
    ]
    made = []
    for most, *each in zip(base, *lines, strict=True):
        value, rest = divmod(prod(each), most ** (len(each) - 1) or 1)
        if rest:
            raise _MisfitError("the bytes are no product of what each dimension makes of them")
        made.append(value)
    return made


def _find_periods(reader: _Reader, asked: Range) -> tuple[int, ...]:
    """Return the period of each dimension, as it is seen on a line through the largest size."""
    found, corner = [], _largest(asked)
    for axis, values in enumerate(asked.axes):
        single: list[Values] = [*corner]
        single[axis] = values
        line = Range.of(dict(zip(asked.names, single, strict=True)))
        for period in (1, *_PERIODS):
            periods = tuple(period if at == axis else 1 for at in range(len(corner)))
            try:
                _fit(reader, line, 2, periods)
            except _MisfitError as error:
                misfit = error
            else:
                found.append(period)
                break
        else:
            raise misfit
    return tuple(found)


def _split(axis: Sequence[int], period: int, degree: int) -> dict[int, tuple[int, ...]]:
    """Return by remainder the largest values of a dimension, from which polynomials are found."""
    found: dict[int, tuple[int, ...]] = {}
    for value in axis:
        found[value % period] = (*found.get(value % period, ())[-degree:], value)
    return found


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


def _check(reader: _Reader, asked: Range, found: Pieces, points: Sequence[tuple[int, ...]]) -> None:
    """Check polynomials at further sizes."""
    for point in points:
        _take(reader, asked, point)
        problem = reader.sample(point).problem
        try:
            size = found.at(np.array([point], np.int64))[:, 0]
        except MemplanError as error:
            raise _MisfitError(str(error)) from None
        wrong = np.flatnonzero(size != problem.size)
        if len(wrong):
            row = int(wrong[0])
            raise _MisfitError(
                f"{problem.label(row)} has {problem.size[row]} bytes at {_tell(asked, point)}, "
                "which no polynomial of the dimensions gives"
            )


def _choose_checks(asked: Range) -> list[tuple[int, ...]]:
    """Return the corners of the range, and further sizes; the same ones each time."""
    corners = list(product(*({axis[0], axis[-1]} for axis in asked.axes)))[:_MOST_READ]
    return [*corners, *_choose_rows(asked)]


def _choose_rows(asked: Range) -> list[tuple[int, ...]]:
    """Return the first and the last size, and some between them; the same ones each time."""
    rows = np.random.default_rng(0).integers(len(asked), size=_CHECKS)
    return list(map(tuple, asked.points[[0, *rows.tolist(), -1]].tolist()))


def _tell_fit(found: Scenario) -> str:
    assert isinstance(found.bytes, Pieces)
    periods = dict.fromkeys(period for period in found.bytes.periods if period > 1)
    several = f", one for each remainder of {' and '.join(map(str, periods))}" if periods else ""
    return f"polynomials{several}, which {len(found.read)} sizes that were read agree with"


def _tell(asked: Range, point: Sequence[int]) -> str:
    return describe(dict(zip(asked.names, point, strict=True)))
