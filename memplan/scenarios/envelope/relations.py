"""Which buffer lies below which: what a plan says about all sizes of its program.

A plan orders all buffers that may not share addresses. At any size, each is put on top of those
which the order has below it. So one plan gives legal offsets at every size, and the peak is a
longest chain (MACHINE: "max/plus over columns").

    at batch 8      at batch 2      the order: a below b, a below c, b below d
    | d |           |d|
    | b | c |       |b|c|
    |   a   |       | a |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.interference import find_edges
from memplan.scenarios.envelope.sizes import with_sizes

__all__ = ["Relation", "carry_bound", "find_pairs", "measure_loads", "relate"]

_MOST_PAIRS = 1 << 24
_BELOW = 1 - 1e-12  # keeps the rounding of floating point on the safe side
_MOST_REDUCED = 2048  # buffers of which those are left out that others imply


@dataclass(frozen=True, eq=False)
class Relation:
    """Which buffers lie below which."""

    order: tuple[int, ...]  # the buffers, each behind all that are below it; shape (n,)
    # For each of these, in that order: the buffers that are directly below it.
    below: tuple[tuple[int, ...], ...]

    def offsets(self, sizes: Column, alignment: Column) -> Column:
        """Return the lowest offsets, shape (buffers, points), for sizes of that shape.

        An empty buffer holds nothing, so its offset is 0.
        """
        found = self._stack(sizes, alignment)
        found[sizes == 0] = 0
        return found

    def _stack(self, sizes: Column, alignment: Column) -> Column:
        found = np.zeros_like(sizes)
        for row, rows in zip(self.order, self.below, strict=True):
            unit = int(alignment[row])
            for other in rows:
                np.maximum(found[row], found[other] + sizes[other], out=found[row])
            if unit > 1 and rows:
                found[row] = -(-found[row] // unit) * unit
        return found

    def peaks(self, sizes: Column, alignment: Column) -> Column:
        """Return the bytes that are needed at each point, shape (points,)."""
        ends: Column = self._stack(sizes, alignment) + sizes
        peaks: Column = np.where(sizes > 0, ends, 0).max(axis=0, initial=0)
        return peaks


def find_pairs(problem: Problem) -> npt.NDArray[np.bool_]:
    """Return which buffers may not share addresses if both hold bytes, shape (n, n)."""
    edges = find_edges(with_sizes(problem, np.ones(len(problem), np.int64)), _MOST_PAIRS)
    pairs = np.zeros((len(problem), len(problem)), np.bool_)
    pairs[edges.first, edges.second] = pairs[edges.second, edges.first] = True
    return pairs


def relate(
    pairs: npt.NDArray[np.bool_], offsets: Sequence[int] | Column, sizes: Column
) -> Relation:
    """Return the relation of a plan; `pairs` says which buffers may not share addresses.

    Offsets and sizes have shape (n,). A buffer that is empty there lies above all others, where it
    raises none of them.
    """
    order = np.lexsort((np.asarray(offsets), sizes == 0))
    under = np.triu(pairs[np.ix_(order, order)], 1)
    if len(order) <= _MOST_REDUCED:
        count = under.astype(np.float32)
        under = under & ~(count @ count > 0.5)  # what lies between two of them implies the third
    return Relation(
        tuple(order.tolist()),
        tuple(tuple(order[np.flatnonzero(column)].tolist()) for column in under.T),
    )


def measure_loads(problem: Problem, sizes: Column) -> Column:
    """Return the most bytes that are held at one moment, at each point: a bound on any plan.

    Sizes have shape (buffers, points); buffers hold all of their bytes except in gaps.
    """
    unit = gcd(*problem.alignment.tolist())
    whole = sizes if unit == 1 else -(-sizes // unit) * unit
    rest = (whole - sizes).max(axis=0, initial=0)  # the topmost buffer of a moment ends unrounded
    best: Column = np.zeros(sizes.shape[1], np.int64)
    load = np.zeros_like(best)
    for _, change, row in sorted(_list_events(problem)):
        if change < 0:
            load -= whole[row]
        else:
            load += whole[row]
            np.maximum(best, load, out=best)
    largest: Column = np.maximum(best - rest, sizes.max(axis=0, initial=0))
    return largest


def carry_bound(problem: Problem, bound: int, sizes: Column) -> Column:
    """Return what any plan needs at each point, if `bound` is what any plan of the problem needs.

    If no buffer is smaller than `factor` times its size in the problem, neither is the peak. Where
    sizes do not fill the alignment this holds for a factor of 1 only, as the rest does not grow.
    Sizes have shape (buffers, points).
    """
    held = problem.size > 0
    unit = lcm(*problem.alignment.tolist())
    found: Column = np.where((sizes >= problem.size[:, None]).all(axis=0), bound, 0)
    if held.any() and not (problem.size % unit).any():
        factor = (sizes[held] / problem.size[held, None]).min(axis=0)
        scaled = np.ceil(bound * factor * _BELOW).astype(np.int64)
        whole = (sizes % unit == 0).all(axis=0)  # then all peaks are multiples of it too
        scaled[whole] = -(-scaled[whole] // unit) * unit
        found = np.maximum(found, scaled)
    return found


def _list_events(problem: Problem) -> list[tuple[int, int, int]]:
    """Return when each buffer begins to hold bytes (1), and ends to (-1)."""
    found = []
    for row, (start, end) in enumerate(
        zip(problem.start.tolist(), problem.end.tolist(), strict=True)
    ):
        found += [(start, 1, row), (end, -1, row)]
    columns = (problem.gap_buffer, problem.gap_start, problem.gap_end)
    for row, start, end in zip(*(each.tolist() for each in columns), strict=True):
        found += [(start, -1, row), (end, 1, row)]
    return found
