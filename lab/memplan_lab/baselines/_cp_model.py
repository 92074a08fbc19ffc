"""The placement problem as a model of CP-SAT, in whole units.

    minimise  peak
    stride_i * k_i + size_i <= peak
    stride_i * k_i + size_i <= stride_j * k_j          if below_ij       (`pairs`)
    stride_j * k_j + size_j <= stride_i * k_i          if not below_ij

An offset is a multiple `k` of its alignment; reserved ranges exclude some multiples, and a pin
excludes all but one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.spans import spans
from memplan_lab.baselines._pairs import conflicting_pairs

__all__ = ["MOST_PAIRS", "CpModel", "Refuted", "program_of", "search"]

MOST_PAIRS: Final = 200_000  # a model of this many pairs takes seconds to build

_TICK: Final = 0.02  # seconds between two looks at whether a search is over

Ints = npt.NDArray[np.int64]


class Refuted(Exception):  # noqa: N818 (it is an answer)
    """Raised if no place is left for some buffer, or no number of units for the peak."""


@dataclass(frozen=True, slots=True)
class CpModel:
    """A model and how to read its solutions."""

    model: Any  # of CP-SAT
    multiples: list[Any]  # the variables `k`, one for each buffer
    strides: list[int]  # the bytes by which each multiple counts
    # unit, top: Bytes that divide all amounts, and the greatest peak in these.
    unit: int
    top: int

    def offsets(self, values: list[int]) -> list[int]:
        """Return the offsets in bytes of a solution."""
        return [value * stride for value, stride in zip(values, self.strides, strict=True)]


def program_of(
    cp_model: Any,
    problem: Problem,
    encoding: str,  # `pairs` or `no_overlap`
    *,
    unit: int,  # bytes that divide the offsets of some plan with the least peak (`unit_of`)
    bottom: int,
    top: int,
    start: Ints | None,  # offsets to begin at, in bytes
) -> CpModel | None:
    """Return the model, or `None` if it would have more than `MOST_PAIRS` pairs."""
    pairs = conflicting_pairs(problem, MOST_PAIRS) if encoding == "pairs" else None
    if encoding == "pairs" and pairs is None:
        return None
    model, most = cp_model.CpModel(), top // unit
    least = -(-bottom // unit)
    if least > most:
        raise Refuted
    strides = [unit if each == 1 else each for each in problem.alignment.tolist()]
    size = (problem.size // unit).tolist()
    multiples, offsets = [], []
    peak = model.new_int_var(least, most, "peak")
    for row, stride in enumerate(strides):
        domain = cp_model.Domain.from_intervals(_find_places(problem, row, stride, top))
        multiples.append(model.new_int_var_from_domain(domain, f"k{row}"))
        offsets.append(multiples[row] * (stride // unit))
        model.add(offsets[row] + size[row] <= peak)
        if start is not None:
            model.add_hint(multiples[row], int(start[row]) // stride)
    if pairs is None:
        _separate_by_rectangles(model, problem, offsets, size)
    else:
        _separate_by_pairs(model, pairs, offsets, size)
    model.minimize(peak)
    return CpModel(model, multiples, strides, unit, most)


def _find_places(problem: Problem, row: int, stride: int, top: int) -> list[list[int]]:
    """Return the ranges of `k`, with both ends, in which the buffer ends at or below the top."""
    size, pin = int(problem.size[row]), int(problem.pin[row])
    if pin != NONE:
        return [[pin // stride, pin // stride]]
    if not size:
        return [[0, 0]]
    ranges, lower = [], 0
    for block in sorted(problem.reserved, key=lambda each: each.lower):
        ranges.append((lower, block.lower - size))
        lower = max(lower, block.upper)
    ranges.append((lower, top - size))
    rounded = [[-(-low // stride), min(high, top - size) // stride] for low, high in ranges]
    found = [each for each in rounded if each[0] <= each[1]]
    if not found:
        raise Refuted
    return found


def _separate_by_pairs(
    model: Any, pairs: tuple[Ints, Ints], offsets: list[Any], size: list[int]
) -> None:
    for i, j in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True):
        below = model.new_bool_var(f"below{i},{j}")
        model.add(offsets[i] + size[i] <= offsets[j]).only_enforce_if(below)
        model.add(offsets[j] + size[j] <= offsets[i]).only_enforce_if(~below)


def _separate_by_rectangles(
    model: Any, problem: Problem, offsets: list[Any], size: list[int]
) -> None:
    held = spans(problem)
    events = np.unique(np.concatenate([held.start, held.end]))
    first = np.searchsorted(events, held.start).tolist()
    length = (np.searchsorted(events, held.end) - first).tolist()
    times, addresses = [], []
    for at, row in enumerate(held.buffer.tolist()):
        times.append(model.new_fixed_size_interval_var(first[at], length[at], f"time{at}"))
        addresses.append(model.new_fixed_size_interval_var(offsets[row], size[row], f"address{at}"))
    model.add_no_overlap_2d(times, addresses)


def search(solver: Any, model: Any, is_over: Callable[[], bool], *listeners: Any) -> Any:
    """Run a `CpSolver` in a thread of its own, and return its status.

    This thread asks whether the search is over, and answers Ctrl-C.
    """
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(solver.solve, model, *listeners)
        try:
            while not (answer.done() or is_over()):
                wait([answer], _TICK)
        finally:
            while not answer.done():
                solver.stop_search()  # it has no effect on a search that is about to begin
                wait([answer], _TICK)
    return answer.result()
