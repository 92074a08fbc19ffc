"""The referee of envelopes: every size of a range, and one plan for all of them.

It knows nothing of how a relation was found or is evaluated. From the pairs that lie one below the
other it makes the lowest offsets at every size, and it looks whether each two buffers that hold
bytes at the same time are ordered by them, directly or through others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memplan.base.errors import PlanError
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.plan import Plan

__all__ = ["Layers", "verify_envelope"]


class Layers(NamedTuple):
    """What is claimed of the sizes of a scenario.

    Attributes
    ----------
    below
        For each relation: pairs of rows, of which the first lies below the second.
    chosen
        At each size, which relation gives the peak; shape (c,).
    peaks, bounds
        At each size: the bytes that are needed, and bytes that any plan needs; shape (c,).
    proved
        Bounds that a solver proved: bytes of all buffers, shape (n,), and what any plan of these
        needs. A size at which no buffer is smaller needs as much; and if alignments leave no rest,
        one at which none is smaller than a share of it needs this share.
    read, said
        The sizes at which the source said the bytes, ascending, shape (k,); and these bytes, shape
        (buffers, k).
    are_least
        Whether all peaks are claimed to be the least that there is. This claim has to be about
        bytes that the source said, as nothing is proved about those that are presumed.
    """

    below: Sequence[Sequence[tuple[int, int]]]
    chosen: Column
    peaks: Column
    bounds: Column
    proved: Sequence[tuple[Column, int]] = ()
    read: Column | None = None
    said: Column | None = None
    are_least: bool = False


def verify_envelope(
    problem: Problem,
    sizes: Iterable[tuple[int, int, Column]],
    layers: Layers,
    fixed: Plan | None = None,
) -> None:
    """Check the claims about every size of a scenario, and a plan with fixed offsets.

    Parameters
    ----------
    problem
        The buffers with their lifetimes, at any of the sizes.
    sizes
        The bytes of all buffers at all sizes, a part at a time: begin, end, and the bytes, shape
        (buffers, end - begin).
    layers
        The relations, and what is claimed.
    fixed
        Offsets that are legal at every size; buffers of other scenarios may be among them.

    Raises
    ------
    PlanError
        One sentence about the first error. Each bound is a load of some moment, or follows from one
        that a solver proved; the latter is not proved again here.
    """
    held = _list_held(problem)
    apart = _find_apart(problem, held)
    orders = [_check_order(problem, apart, pairs) for pairs in layers.below]
    seen = 0
    for begin, end, bytes in sizes:
        if begin != seen:
            raise PlanError(f"the sizes from {seen} to {begin} are missing")
        seen = end
        if end > len(layers.peaks):
            raise PlanError(f"there are {len(layers.peaks)} peaks for {end} sizes or more")
        peaks, bounds = layers.peaks[begin:end], layers.bounds[begin:end]
        for number, order in enumerate(orders):
            mine = layers.chosen[begin:end] == number
            if mine.any():
                needed = _stack(problem, order, layers.below[number], bytes[:, mine])
                _compare(needed, peaks[mine], "the relation of a plan needs {} bytes, not {}")
        low = bounds > peaks
        if low.any():
            at = int(low.argmax())
            raise PlanError(f"the bound {bounds[at]} is above the peak {peaks[at]} of a size")
        _check_premise(layers, begin, bytes)
        least = _find_least(problem, held, bytes, layers.proved)
        _compare(np.minimum(bounds, least), bounds, "only {} of the bound of {} bytes are shown")
        if fixed is not None:
            _check_fixed(problem, apart, bytes, fixed)
    if seen != len(layers.peaks):
        raise PlanError(f"there are {len(layers.peaks)} peaks for {seen} sizes")


def _check_premise(layers: Layers, begin: int, bytes: Column) -> None:
    """Hold bytes against those that the source said; the claim of the least needs all of them."""
    end, count = begin + bytes.shape[1], 0
    if layers.read is not None and layers.said is not None:
        if (np.diff(layers.read) <= 0).any():
            raise PlanError("a size was read twice, or before a smaller one")
        here = np.flatnonzero((layers.read >= begin) & (layers.read < end))
        count = len(here)
        wrong = (bytes[:, layers.read[here] - begin] != layers.said[:, here]).any(axis=0)
        if wrong.any():
            at = layers.read[here[wrong.argmax()]]
            raise PlanError(f"at size number {at}, the source said other bytes")
    if layers.are_least and (layers.peaks[begin:end] > layers.bounds[begin:end]).any():
        raise PlanError("a peak that is above its bound is claimed to be the least")
    if layers.are_least and count < end - begin:
        raise PlanError(
            f"peaks are claimed to be the least, but of {end - begin} sizes, the bytes of only "
            f"{count} were read"
        )


def _list_held(problem: Problem) -> Column:
    """Return when the buffers hold bytes: row, start and end, shape (spans, 3)."""
    if problem.has_windows or problem.has_pins or problem.has_reserved or problem.has_groups:
        raise PlanError("an envelope has no windows, pins, reserved ranges and groups")
    gaps: dict[int, list[tuple[int, int]]] = {}
    columns = (problem.gap_buffer, problem.gap_start, problem.gap_end)
    for row, start, end in zip(*(each.tolist() for each in columns), strict=True):
        gaps.setdefault(row, []).append((start, end))
    pieces = []
    lives = zip(problem.start.tolist(), problem.end.tolist(), strict=True)
    for row, (start, end) in enumerate(lives):
        for since, until in sorted(gaps.get(row, ())):
            pieces.append((row, start, since))
            start = until
        pieces.append((row, start, end))
    return np.array([each for each in pieces if each[1] < each[2]], np.int64).reshape(-1, 3)


def _find_apart(problem: Problem, held: Column) -> npt.NDArray[np.bool_]:
    """Return which buffers may not share addresses, shape (n, n)."""
    apart = np.zeros((len(problem), len(problem)), np.bool_)
    for row, start, end in held.tolist():
        apart[row, held[(held[:, 1] < end) & (held[:, 2] > start), 0]] = True
    for one, other in problem.conflicts.pairs().tolist():
        apart[one, other] = apart[other, one] = True
    np.fill_diagonal(apart, False)
    return apart


def _find_least(
    problem: Problem, held: Column, bytes: Column, proved: Sequence[tuple[Column, int]]
) -> Column:
    """Return what any plan needs at each size: the largest load, or what a solver proved."""
    # Each buffer but the topmost of a moment ends where the next offset can be.
    unit = int(np.gcd.reduce(problem.alignment)) if len(problem) else 1
    ends = bytes + -bytes % unit
    unrounded = (ends - bytes).max(axis=0, initial=0)
    least: Column = bytes.max(axis=0, initial=0)
    for moment in np.unique(held[:, 1]):
        rows = held[(held[:, 1] <= moment) & (held[:, 2] > moment), 0]
        least = np.maximum(least, ends[rows].sum(axis=0) - unrounded)
    for sizes, bound in proved:
        no_smaller = (bytes >= sizes[:, None]).all(axis=0)
        least[no_smaller] = np.maximum(least[no_smaller], bound)
        multiple = int(np.lcm.reduce(problem.alignment, initial=1))
        filled = np.flatnonzero(sizes)
        if len(filled) and not (sizes % multiple).any():
            share = np.divide(bytes[filled], sizes[filled][:, None]).min(axis=0)
            needed = np.ceil(share * bound * (1 - 1e-12)).astype(np.int64)  # never rounded up
            needed += np.where((bytes % multiple).any(axis=0), 0, -needed % multiple)
            least = np.maximum(least, needed)
    return least


def _check_order(
    problem: Problem, apart: npt.NDArray[np.bool_], pairs: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the rows from below to above; each two that are apart must be ordered."""
    count = len(problem)
    above: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for low, high in pairs:
        above[low].append(high)
        waiting[high] += 1
    order = [row for row in range(count) if not waiting[row]]
    reached = np.eye(count, dtype=np.bool_)  # by row: what lies above it
    for row in order:
        for high in above[row]:
            waiting[high] -= 1
            if not waiting[high]:
                order.append(high)
    if len(order) < count:
        row = next(row for row in range(count) if waiting[row])
        raise PlanError(f"{problem.label(row)} lies below itself")
    for row in reversed(order):
        for high in above[row]:
            reached[row] |= reached[high]
    missing = np.argwhere(apart & ~reached & ~reached.T)
    if len(missing):
        one, other = missing[0].tolist()
        raise PlanError(
            f"{problem.label(one)} and {problem.label(other)} live together, but neither is below "
            "the other"
        )
    return order


def _stack(
    problem: Problem, order: Sequence[int], pairs: Sequence[tuple[int, int]], bytes: Column
) -> Column:
    """Return the bytes that are needed at each size if each buffer lies as low as it may."""
    above: dict[int, list[int]] = {}
    for low, high in pairs:
        above.setdefault(low, []).append(high)
    lowest = np.zeros_like(bytes)
    peak = np.zeros(bytes.shape[1], np.int64)
    for row in order:
        unit = problem.alignment[row]
        end = lowest[row] + (-lowest[row] % unit) + bytes[row]
        peak = np.maximum(peak, np.where(bytes[row] > 0, end, 0))
        for high in above.get(row, ()):
            lowest[high] = np.maximum(lowest[high], end)
    return peak


def _compare(found: Column, claimed: Column, text: str) -> None:
    wrong = np.flatnonzero(found != claimed)
    if len(wrong):
        raise PlanError(text.format(found[wrong[0]], claimed[wrong[0]]))


def _check_fixed(problem: Problem, apart: npt.NDArray[np.bool_], bytes: Column, plan: Plan) -> None:
    """Check fixed offsets at some sizes: no two buffers that hold bytes together may overlap."""
    offset = np.array([plan.offset(id) for id in problem.ids], np.int64)
    if (offset % problem.alignment).any():
        row = int((offset % problem.alignment > 0).argmax())
        raise PlanError(f"{problem.label(row)}: offset {offset[row]} is not aligned")
    most = bytes.max(axis=1, initial=0)
    if len(offset) and (offset + most).max() > (plan.peak or 0):
        raise PlanError(f"a size needs more than the {plan.peak} bytes of the plan for all sizes")
    close = apart & (offset[:, None] <= offset) & (offset[:, None] + most[:, None] > offset)
    for low, high in np.argwhere(close).tolist():
        hit = (bytes[low] > offset[high] - offset[low]) & (bytes[high] > 0)
        if hit.any():
            raise PlanError(
                f"{problem.label(low)} and {problem.label(high)} overlap at a size at which the "
                f"first has {bytes[low][hit][0]} bytes"
            )
