"""Runs: for how long a buffer whose home is a slow memory can be in a faster one.

A run goes from one access of the buffer to a later one, and all accesses between them are in the
faster memory. Its bytes are copied from the home before, unless all of them are written before one
is read or copied back; they are copied back after it if they were changed, and are read again
later. Two runs of a buffer never share a moment, so the moment of an access is held once. A run
saves what its accesses cost less, minus its copies; a run over all accesses saves the copy back
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memplan.base.errors import MemplanError, quoted
from memplan.machine.memories.accesses import Access, Given, is_timed
from memplan.machine.memories.memory import Memory
from memplan.problem import Problem
from memplan.problem.columns import NONE

__all__ = ["Run", "can_move", "list_runs", "most_saved", "require_times"]


@dataclass(frozen=True, slots=True)
class Run:
    """A buffer is in a faster memory from one access to a later one."""

    row: int  # the buffer
    home: int  # from which memory to which one, by number
    memory: int
    number: int  # of its first access, from 1
    start: int  # the bytes are there during `[start, end)`
    end: int
    fetched: bool  # whether they are copied from the home before, and back after it
    stored: bool


def can_move(problem: Problem) -> list[bool]:
    """Return which rows can leave their home: not groups, buffers with gaps, listed conflicts.

    The bytes of a gap are lost, a group is in one memory, and streams have no common time.
    """
    stays = problem.group != NONE
    stays[problem.gap_buffer] = True
    stays[problem.conflicts.pairs().ravel()] = True
    found: list[bool] = (~stays & (problem.size > 0)).tolist()
    return found


def require_times(problem: Problem, kept: Sequence[bool], accesses: Mapping[str, Given]) -> None:
    """Refuse accesses without times of buffers that may move."""
    may_move = can_move(problem)
    for id, given in accesses.items():
        row = problem.index(id)
        if may_move[row] and not kept[row] and not is_timed(given):
            raise MemplanError(
                f"{quoted(id)} may move, so its accesses need times: a list of (time, reads, "
                "writes)"
            )


def list_runs(
    problem: Problem,
    row: int,
    accesses: Sequence[Access],
    memories: Sequence[Memory],
    at_home: int,
    in_fast: int,
) -> Iterator[tuple[Run, int]]:
    """Yield each run of a buffer that saves something, with what it saves.

    A run over a whole life without copies is left out, because the faster memory is its home then.
    """
    size, start, end = (int(each[row]) for each in (problem.size, problem.start, problem.end))
    home, fast = memories[at_home], memories[in_fast]  # whose costs are whole numbers
    fetch, store = int(size * (home.read + fast.write)), int(size * (fast.read + home.write))
    less_read, less_written = int(home.read - fast.read), int(home.write - fast.write)
    saved = np.cumsum(
        [0] + [each.read * less_read + each.written * less_written for each in accesses]
    )
    for first, access in enumerate(accesses):
        # What is written first may be read in the same step.
        is_new = first == 0 and start == access.time and access.written > 0
        reads = False if is_new else None  # whether bytes from before are read, if that is known
        is_changed = False
        for last in range(first, len(accesses)):
            is_changed |= accesses[last].written > 0
            if reads is None and accesses[last].read > 0:
                reads = True
            elif reads is None and accesses[last].written >= size:
                reads = False
            stored = is_changed and _is_needed(accesses[last + 1 :], size, end, accesses[-1].time)
            fetched = stored if reads is None else reads
            worth = int(saved[last + 1] - saved[first]) - fetch * fetched - store * stored
            times = access.time, accesses[last].time + 1
            is_home = times == (start, end) and not (fetched or stored)
            if worth > 0 and not is_home:
                yield Run(row, at_home, in_fast, first + 1, *times, fetched, stored), worth


def most_saved(runs: Iterable[tuple[Run, int]]) -> int:
    """Return the most that runs of one buffer save which share no moment."""
    best: dict[int, int] = {}  # by end, rising: the most that is saved until then
    for run, worth in sorted(runs, key=lambda each: (each[0].end, each[0].start)):
        before = max((saved for end, saved in best.items() if end <= run.start), default=0)
        best[run.end] = max(best.get(run.end, 0), before + worth)
    return max(best.values(), default=0)


def _is_needed(later: Sequence[Access], size: int, end: int, last: int) -> bool:
    """Return whether bytes are read after this, or live beyond the last access."""
    for access in later:
        if access.read > 0:
            return True
        if access.written >= size:
            return False
    return end > last + 1
