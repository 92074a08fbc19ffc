"""Plans several programs that share one arena, and run one after another in any order.

Firmware runs a wake word, a classifier and a detector in one arena, and what one of them leaves
behind has to be there when the others are done. Their time axes are laid one behind the other, so
that no moment is of two programs, and what is kept lives through the runs of the others:

    program           |----- A -----|----- B -----|--- C ---|
    a scratch of A       |--|
    a kept result of A       |=======================================|   from when it is made
                      |==|   not before: its own program makes it again then

In any sequence of whole runs, each moment is one of a program, and all that is kept of the others
is there. That is a moment of this one problem, and each of its moments occurs; so its best plan is
the best for all sequences. Programs that may run at the same time share no address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import lcm
from typing import Final

import numpy as np

from memplan.base.errors import MemplanError, quoted
from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.intake import GAP_COLUMNS
from memplan.scenarios.together.programs import Program

__all__ = ["join", "stack"]

_MOST_PAIRS: Final = 1 << 24  # of buffers of programs that may run at the same time


def join(
    programs: Sequence[Program], pairs: Iterable[tuple[int, int]], capacity: int | None
) -> Problem:
    """Return all programs as one problem, with their time axes one behind the other.

    Refused are programs that reserve different addresses, and too many buffers that run at the same
    time.
    """
    problems = [each.problem for each in programs]
    reserved = problems[0].reserved
    for each in programs:
        if each.problem.reserved != reserved:
            raise MemplanError(
                f"{quoted(each.name)} reserves other addresses than {quoted(programs[0].name)}; in "
                "one arena all have to reserve the same"
            )
    spans = [int(p.end.max(initial=1)) - int(p.start.min(initial=0)) for p in problems]
    begins = [0, *accumulate(spans)]
    first = [0, *accumulate(map(len, problems))]
    starts, ends, gaps = [], [], []
    for number, problem in enumerate(problems):
        shift = begins[number] - int(problem.start.min(initial=0))
        start, end = problem.start + shift, problem.end + shift
        gaps.append(_shifted_gaps(problem, first[number], shift))
        for row in programs[number].kept:
            made = int(start[row])
            if number > 0 and made > begins[number]:  # it lives before, but not in its own run
                gaps.append(np.array([[first[number] + row, begins[number], made, NONE, NONE]]))
            start[row] = 0 if number > 0 else made
            end[row] = begins[-1]
        starts.append(start)
        ends.append(end)
    return Problem.from_arrays(
        np.concatenate(starts),
        np.concatenate(ends),
        _column(problems, "size"),
        ids=[f"{each.name}/{id}" for each in programs for id in each.problem.ids],
        alignment=_column(problems, "alignment"),
        pin=_column(problems, "pin"),
        hint=_column(problems, "hint"),
        gaps=list(np.concatenate(gaps).T),
        capacity=capacity,
        reserved=reserved,
        conflicts=_join_conflicts(problems, first, pairs),
        groups=[
            [first[number] + row for row in group]
            for number, problem in enumerate(problems)
            for group in problem.groups
        ],
    )


def _column(problems: Sequence[Problem], name: str) -> Column:
    joined: Column = np.concatenate([getattr(each, name) for each in problems])
    return joined


def _shifted_gaps(problem: Problem, first: int, shift: int) -> Column:
    """Return the gaps of a program in the joint problem, shape (g, 5)."""
    table = np.stack([getattr(problem, name) for name in GAP_COLUMNS], axis=1)
    shifted: Column = table + np.array([first, shift, shift, 0, 0])
    return shifted


def _join_conflicts(
    problems: Sequence[Problem], first: Sequence[int], pairs: Iterable[tuple[int, int]]
) -> Column:
    """Return all pairs of rows that share no address, shape (m, 2)."""
    tables = [each.conflicts.pairs() + first[number] for number, each in enumerate(problems)]
    for pair in pairs:
        one, other = (first[each] + np.flatnonzero(problems[each].size) for each in pair)
        if len(one) * len(other) > _MOST_PAIRS:
            raise MemplanError(
                "programs that may run at the same time have too many buffers for one plan; plan "
                "each in an arena of its own, which needs no more than the sum"
            )
        grid = np.meshgrid(one, other, indexing="ij")
        tables.append(np.stack([each.ravel() for each in grid], axis=1))
    return np.concatenate(tables)


def _share_out(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Share the programs out so that those which run at the same time are apart."""
    apart = set(pairs)
    lanes: list[list[int]] = []
    for program in range(count):
        for lane in lanes:
            if not any((other, program) in apart for other in lane):
                lane.append(program)
                break
        else:
            lanes.append([program])
    return lanes


def stack(programs: Sequence[Program], pairs: Iterable[tuple[int, int]]) -> tuple[Column, int, int]:
    """Return what people do by hand: arenas that programs share, and above them what is kept.

    The answer is the offsets of such a plan, the bytes with whole arenas and copies of what is
    kept, and the bytes of these copies alone. What is kept has no second place in the offsets, so
    the bytes by hand are never less than these need. The plan holds if nothing is tied to an
    address.
    """
    offsets = [np.zeros(len(each.problem), np.int64) for each in programs]
    least = whole = 0
    for lane in _share_out(len(programs), pairs):
        unit = lcm(*(int(one) for k in lane for one in np.unique(programs[k].problem.alignment)))
        bottom, whole = _round_up(least, unit), _round_up(whole, unit)
        least = bottom
        for number in lane:
            each, plan = programs[number], programs[number].planned.plan
            assert plan.offsets is not None
            rest = np.setdiff1d(np.arange(each.rows), each.kept)
            offsets[number][rest] = bottom + plan.offsets[rest]
            ends = offsets[number][rest] + each.problem.size[rest]
            least = max(least, int(ends.max(initial=0)))
        whole += max(programs[number].planned.plan.peak or 0 for number in lane)
    kept = [
        (-int(each.problem.alignment[row]), int(each.problem.size[row]), number, row)
        for number, each in enumerate(programs)
        for row in each.kept
    ]
    copies = 0
    for unit, size, number, row in sorted(kept):
        offsets[number][row] = _round_up(least, -unit)
        least = _round_up(least, -unit) + size
        whole = _round_up(whole, -unit) + size
        copies += _round_up(size, -unit)
    return np.concatenate(offsets), whole, copies


def _round_up(bytes: int, unit: int) -> int:
    return -(-bytes // unit) * unit
