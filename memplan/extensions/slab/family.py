"""Derives traces of one program at every size of its inputs from recordings at a few.

In most networks every allocation has `base + slope * batch` bytes: activations grow with the batch,
scratch for weights does not. Two recordings give base and slope, and a third one checks them
(source: MemoMalloc, chapter 7, "symbolic memory planning"). With several dimensions, or more
recordings of one, the bytes are a polynomial: those of attention grow with `tokens**2`.

    allocation             batch 1   batch 2   batch 4
    .conv/aten::empty        4 096     8 192    16 384     0 + 4 096 * batch
    .conv/scratch            2 048     2 048     2 048     2 048 + 0 * batch
    .scores/aten::empty         64       256     1 024     neither: 64 * batch ** 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

from memplan.base.errors import FamilyError, listed
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.polynomials import Polynomials
from memplan.problem.trace import Scope, Trace

__all__ = ["Family", "Misfit", "Point"]

Point = int | tuple[int, ...]  # a batch size, or a value of each dimension
_Key = tuple[Scope, int]
_BATCH: Final = ("batch",)


@dataclass(frozen=True)
class Misfit:
    """An allocation that a family leaves out, and why."""

    id: str  # in `Trace.ids`: module, operators, number
    # Bytes by recorded size of the inputs; `None` where it was not made.
    sizes: Mapping[Point, int | None]
    why: str  # the condition that it breaks, for people
    dims: tuple[str, ...] = _BATCH

    def __str__(self) -> str:
        seen = ", ".join(
            f"{'nothing' if size is None else size} at {point}"
            for point, size in self.sizes.items()
        )
        return f"{self.id} {self.why} (bytes at {_tell_dims(self.dims)}: {seen})"


@dataclass(frozen=True, eq=False)
class Family:
    """What one program allocates, as a function of the size of its inputs."""

    trace: Trace  # the allocations that fit, as recorded at the smallest size
    sizes: Polynomials  # the bytes of each of these, as polynomials of the dimensions
    recorded: tuple[Point, ...]  # the sizes that were recorded, ascending
    # The allocations that were left out. Results are not among them: a plan does not place them, so
    # their sizes do not matter.
    misfits: tuple[Misfit, ...] = ()
    dims: tuple[str, ...] = _BATCH  # the names of the dimensions

    @classmethod
    def derive(
        cls,
        traces: Mapping[int, Trace] | Mapping[tuple[int, ...], Trace],
        sizes: Mapping[str, Sequence[int]] | None = None,
        *,
        strict: bool = True,
    ) -> Family:
        """Find how allocations grow from some recordings, and check that at all others.

        Traces are recordings of one program: by batch size, two or more, of which the two smallest
        give base and slope; or, with `sizes`, by the value of each dimension. `sizes` has by
        dimension the values from whose combinations the polynomials are found; their degree in a
        dimension is one less than its values.

        With `strict`, an allocation that is not made at every size, grows otherwise, or has another
        order in time is an error that names the module, the operator and the sizes; otherwise it is
        left out and listed. Fewer than two traces, sizes below 1 or without a value of each
        dimension, and missing combinations are always errors.
        """
        recorded: tuple[Any, ...] = tuple(sorted(traces))
        points = [_tuple_of(point) for point in recorded]
        if len(recorded) < 2 or min(map(min, points)) < 1:
            raise FamilyError(
                f"traces at {_tell_dims(tuple(sizes or _BATCH))}s {list(recorded)} make no family; "
                "it takes two or more, each at least 1"
            )
        for point in recorded:
            _require_values(point, tuple(sizes or _BATCH))
        grid = {"batch": recorded[:2]} if sizes is None else sizes
        nodes = [tuple(sorted(set(values))) for values in grid.values()]
        for point in product(*nodes):
            if point not in points:
                raise FamilyError(
                    f"there is no recording at {_describe_point(tuple(grid), point)}, from which "
                    "the other sizes are derived"
                )
        given: Mapping[Any, Trace] = traces
        matching = _Matching(recorded, [given[point] for point in recorded], tuple(grid), nodes)
        if strict and matching.misfits:
            raise FamilyError(_explain_refusal(list(matching.misfits.values())))
        return matching.family()

    def at(self, size: Point) -> Trace:
        """Return the trace of this size: recorded lifetimes, bytes as derived.

        A dimension that is missing or below 1 is refused, and so is a size so far from the recorded
        ones that an allocation would be negative or above 2^62.
        """
        point = _tuple_of(size)
        _require_values(size, self.dims)
        if min(point) < 1:
            raise FamilyError(f"the {_tell_dims(self.dims)} is {size}; it must be at least 1")
        # There are no fractions: see `_judge_growth`.
        sizes = [int(value) for value in self.sizes.values(point)]
        for row, bytes in enumerate(sizes):
            if not 0 <= bytes <= MAX_BYTES:
                recorded = listed(list(map(str, self.recorded)), quote=False)
                raise FamilyError(
                    f"{self.trace.ids[row]} would have {bytes} bytes at {_tell_dims(self.dims)} "
                    f"{size}, too far from those that were recorded: {recorded}"
                )
        column = np.array(sizes, dtype=np.int64)
        column.flags.writeable = False
        about = {**self.trace.about, **dict(zip(self.dims, map(str, point), strict=True))}
        return replace(self.trace, size=column, address=None, about=about)


def _tuple_of(point: Point) -> tuple[int, ...]:
    return (point,) if isinstance(point, int) else point


def _require_values(size: Point, dims: tuple[str, ...]) -> None:
    if len(_tuple_of(size)) != len(dims):
        raise FamilyError(
            f"size {size} does not have one value of each of {listed(dims)}; give all of them, in "
            "this order"
        )


def _tell_dims(dims: tuple[str, ...]) -> str:
    """Return what a size is called: "batch size", or "batch, tokens"."""
    return "batch size" if dims == _BATCH else ", ".join(dims)


def _describe_point(dims: Sequence[str], point: Sequence[int]) -> str:
    """Return a size for people: "batch=2, tokens=16"."""
    return ", ".join(f"{name}={value}" for name, value in zip(dims, point, strict=True))


class _Matching:
    """Matches allocations of all traces by module, operators and number, as times differ."""

    def __init__(
        self,
        points: Sequence[Point],
        traces: Sequence[Trace],
        dims: tuple[str, ...],
        nodes: Sequence[tuple[int, ...]],
    ) -> None:
        self._points, self._dims, self._nodes = points, dims, nodes
        self._traces = traces
        self._rows: list[dict[_Key, int]] = [
            {key: row for row, key in enumerate(zip(t.scopes, t.ordinal.tolist(), strict=True))}
            for t in traces
        ]
        self.misfits: dict[_Key, Misfit] = {}
        made = list(
            filter(self._is_made, dict.fromkeys(key for rows in self._rows for key in rows))
        )
        self._fitting = self._judge_growth(made)
        self._agree_on_order()

    def family(self) -> Family:
        rows = self._match_rows()[0]
        first = self._traces[0]
        start, end = _rank_events(first, rows)
        trace = Trace.from_arrays(
            start,
            end,
            first.size[rows],
            [first.scopes[row] for row in rows],
            ordinal=first.ordinal[rows],
            outlives=first.outlives[rows],
            thread=first.thread[rows],
            alignment=first.alignment,
            about=first.about,
        )
        found = self._interpolate(self._fitting)
        return Family(trace, found, tuple(self._points), tuple(self.misfits.values()), self._dims)

    def _is_made(self, key: _Key) -> bool:
        """Return whether an allocation is made at all sizes, or leave it out."""
        rows = [rows.get(key) for rows in self._rows]
        made = [(t, row) for t, row in zip(self._traces, rows, strict=True) if row is not None]
        late = {bool(trace.outlives[row]) for trace, row in made}
        if len(made) == len(rows) and len(late) == 1:
            return True
        if late != {True}:  # a result of every run needs no place
            sizes = "batch sizes" if self._dims == _BATCH else "sizes"
            missing = len(made) < len(rows)
            self._leave(
                key,
                f"is not made at every {sizes[:-1]}"
                if missing
                else f"outlives the run at some {sizes} only",
            )
        return False

    def _judge_growth(self, keys: Sequence[_Key]) -> list[_Key]:
        """Return the allocations that grow as polynomials, and leave out the others."""
        found = self._interpolate(keys)
        seen = [self._bytes_at(at, keys) for at in range(len(self._points))]
        right = found.are_whole
        for point, bytes in zip(self._points, seen, strict=True):
            values = found.values(_tuple_of(point))
            right &= np.array([a == b for a, b in zip(values, bytes, strict=True)], np.bool_)
        first = self._traces[0], self._rows[0]
        for key, is_right in zip(keys, right.tolist(), strict=True):
            if not is_right and not first[0].outlives[first[1][key]]:
                self._leave(key, f"does not grow as {self._tell_growth()}")
        return [key for key, is_right in zip(keys, right.tolist(), strict=True) if is_right]

    def _interpolate(self, keys: Sequence[_Key]) -> Polynomials:
        """Return the polynomials through the recordings at all combinations of the nodes."""
        places = {_tuple_of(point): at for at, point in enumerate(self._points)}
        samples = [self._bytes_at(places[point], keys) for point in product(*self._nodes)]
        return Polynomials.through(self._nodes, samples)

    def _bytes_at(self, at: int, keys: Sequence[_Key]) -> list[int]:
        size, rows = self._traces[at].size, self._rows[at]
        return [int(size[rows[key]]) for key in keys]

    def _tell_growth(self) -> str:
        if self._dims == _BATCH and len(self._nodes[0]) == 2:
            return "base + slope * batch"
        degrees = (
            f"{len(nodes) - 1} in {name}"
            for name, nodes in zip(self._dims, self._nodes, strict=True)
        )
        return f"a polynomial of degree {', '.join(degrees)}"

    def _leave(self, key: _Key, why: str) -> None:
        sizes: dict[Point, int | None] = {}
        for point, trace, rows in zip(self._points, self._traces, self._rows, strict=True):
            row = rows.get(key)
            sizes[point] = None if row is None else int(trace.size[row])
            if row is not None:
                id = trace.ids[row]
        self.misfits[key] = Misfit(id, sizes, why, self._dims)

    def _agree_on_order(self) -> None:
        """Leave out allocations until the rest starts and ends in one order in all traces.

        At the first difference of two traces this leaves out the allocation of either trace, as
        it cannot see which of the two moved.
        """
        while True:
            ranks = [
                np.concatenate(_rank_events(trace, rows))
                for trace, rows in zip(self._traces, self._match_rows(), strict=True)
            ]
            parted = [np.flatnonzero(ranks[0] != other) for other in ranks[1:]]
            apart = next((at for at, rows in enumerate(parted, 1) if rows.size), None)
            if apart is None:
                return
            n = len(self._fitting)
            rows = parted[apart - 1]
            odd = {int(rows[np.argmin(rank[rows])]) % n for rank in (ranks[0], ranks[apart])}
            where = f"{_tell_dims(self._dims)} {self._points[apart]}"
            for row in sorted(odd):
                self._leave(self._fitting[row], f"comes or goes in another order at {where}")
            self._fitting = [self._fitting[row] for row in range(n) if row not in odd]

    def _match_rows(self) -> list[list[int]]:
        """Return the rows of the allocations that fit, in every trace."""
        return [[rows[key] for key in self._fitting] for rows in self._rows]


def _rank_events(trace: Trace, rows: list[int]) -> tuple[Column, Column]:
    """Return starts and ends of some rows, as ranks among these alone."""
    start, end = trace.start[rows], trace.end[rows]
    ranks = np.unique(np.concatenate([start, end]), return_inverse=True)[1].astype(np.int64)
    return ranks[: len(rows)], ranks[len(rows) :]


def _explain_refusal(misfits: list[Misfit]) -> str:
    others = f"; {len(misfits) - 1} more do not fit either" if len(misfits) > 1 else ""
    return (
        f"{misfits[0]}{others}: pass strict=False to leave such allocations to the ordinary "
        "allocator"
    )
