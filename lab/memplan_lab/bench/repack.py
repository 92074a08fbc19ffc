"""Repacking after small changes compared with fresh solves of the same problems, in one process.

Every family and capacity has the same sequence of steps: some buffers leave, others arrive from a
pool, and all must fit. The capacity is a share of the greatest least peak in the sequence.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from memplan.base.errors import MemplanError
from memplan.problem import Buffer, Problem
from memplan.referee import verify
from memplan.repack.repacker import Repacker
from memplan.solvers import solve
from memplan_lab.bench import generators, tables

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["FAMILIES", "Row", "markdown", "run", "terminal"]

FAMILIES: dict[str, Callable[[int, int], Problem]] = {
    "nn": generators.nn_like,
    "training": generators.training_like,
}
LEAST = "least peak"

_HEADINGS = (
    *("family", "capacity", "repack", "median", "fresh", "median"),
    *("fresh with its problem", "median", "fresh / repack", "of medians"),
    *("with its problem", "of medians", "moved", "replanned"),
)
_TITLE = "CPU time of a repack and of a fresh solve, and buffers moved"


class Turnover(NamedTuple):
    """The buffers that leave and that arrive, and all buffers after the step."""

    gone: tuple[str, ...]
    new: tuple[Buffer, ...]
    inside: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence of repackings, and a fresh solve for each; CPU time in seconds."""

    # family, buffers, changed, steps: The family, the number of buffers, the number that change in
    # a step, and the steps.
    family: str
    buffers: int
    changed: int
    steps: int
    # In per cent of the greatest least peak, or `LEAST` for the least peak as objective.
    capacity: str
    repack: tuple[float, ...]  # by step: from buffers as objects to the answer
    fresh: tuple[float, ...]  # by step: `memplan.solve` of an existing `Problem`
    # By step: the same with the construction of the `Problem` from objects.
    with_problem: tuple[float, ...]
    # moved, replanned: On average, the buffers that a step moves, and the share of steps with a
    # full solve.
    moved: float
    replanned: float


def run(
    families: Sequence[str],  # names of `FAMILIES`
    *,
    buffers: int = 500,
    changed: int = 25,
    steps: int = 50,
    percents: Sequence[int] = (100, 102, 105, 110),
    seeds: int = 3,
    on_row: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """Measure; every plan is verified."""
    for family in families:
        if family not in FAMILIES:
            raise MemplanError(f"there is no family {family!r}; choose from {', '.join(FAMILIES)}")
    if not 0 < changed <= buffers:
        raise MemplanError(f"changed is {changed}; it must be from 1 to buffers ({buffers})")
    rows = []
    for family in families:
        sequences = [
            _make_sequence(FAMILIES[family], buffers, changed, steps, s) for s in range(seeds)
        ]
        tops = [max(solve(step.inside).peak or 1 for step in each[1]) for each in sequences]
        for percent in (*percents, None):
            limits = [None if percent is None else -(-top * percent // 100) for top in tops]
            runs = [_measure(*each, limit) for each, limit in zip(sequences, limits, strict=True)]
            repack, fresh, problem, moved, replanned = (
                sum(part, ()) for part in zip(*runs, strict=True)
            )
            rows.append(
                Row(
                    *(family, buffers, changed, steps * seeds),
                    LEAST if percent is None else f"{percent} %",
                    *(repack, fresh, problem),
                    sum(moved) / len(moved),
                    sum(replanned) / len(replanned),
                )
            )
            on_row(rows[-1])
    return rows


def _make_sequence(
    family: Callable[[int, int], Problem], buffers: int, changed: int, steps: int, seed: int
) -> tuple[tuple[Buffer, ...], list[Turnover]]:
    """Return the first buffers, and the steps."""
    pool = [
        Buffer(f"{half}/{each.id}", each.start, each.end, each.size)
        for half in (0, 1)
        for each in family(buffers, 2 * seed + half).buffers
    ]
    chance = random.Random(seed)
    inside, outside = pool[:buffers], pool[buffers:]
    first = tuple(inside)
    made = []
    for _ in range(steps):
        chance.shuffle(inside)
        chance.shuffle(outside)
        gone, new = inside[:changed], outside[:changed]
        inside, outside = inside[changed:] + new, outside[changed:] + gone
        made.append(Turnover(tuple(each.id for each in gone), tuple(new), tuple(inside)))
    return first, made


def _measure(
    first: tuple[Buffer, ...], steps: Sequence[Turnover], limit: int | None
) -> tuple[tuple[float, ...], ...]:
    """Return for every step: repack, fresh, with its problem, moved, and 1 if planned in full.

    Each kind runs all steps in a row, as in a compiler. A second pass verifies the plans, so that
    this costs no measured time.
    """
    warm = [seconds for seconds, _ in _repack(first, steps, limit)]
    moved, replanned = [], []
    for _, repacker in _repack(first, steps, limit):
        moved.append(float(repacker.moved))
        replanned.append(float(repacker.found_by != "repack"))
        verify(repacker.problem(), repacker.plan())
    problems = [Problem(step.inside, limit) for step in steps]
    fresh = [_time(partial(solve, problem, threads=1)) for problem in problems]
    with_problem = [
        _time(lambda: solve(Problem(step.inside, limit), threads=1))  # noqa: B023 called at once
        for step in steps
    ]
    return tuple(warm), tuple(fresh), tuple(with_problem), tuple(moved), tuple(replanned)


def _repack(
    first: tuple[Buffer, ...], steps: Sequence[Turnover], limit: int | None
) -> Iterator[tuple[float, Repacker]]:
    """Yield after each step how long it took."""
    repacker = Repacker(first, limit, threads=1)
    repacker.plan("min_peak")
    for step in steps:
        begin = time.thread_time()
        repacker.remove(*step.gone)
        repacker.add(*step.new)
        found = repacker.plan() if limit is None else repacker.fits()
        seconds = time.thread_time() - begin
        assert found
        yield seconds, repacker


def _time(action: Callable[[], object]) -> float:
    begin = time.thread_time()
    action()
    return time.thread_time() - begin


def _lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return [
        (
            row.family,
            row.capacity,
            *_times(row.repack),
            *_times(row.fresh),
            *_times(row.with_problem),
            *_ratios(row.fresh, row.repack),
            *_ratios(row.with_problem, row.repack),
            f"{row.moved:.1f}",
            f"{row.replanned:.0%}",
        )
        for row in rows
    ]


def _ratios(over: Sequence[float], under: Sequence[float]) -> tuple[str, str]:
    return f"{sum(over) / sum(under):.1f} x", f"{median(over) / median(under):.1f} x"


def _times(seconds: Sequence[float]) -> tuple[str, str]:
    return _micro(sum(seconds) / len(seconds)), _micro(median(seconds))


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f} µs"


def terminal(rows: Sequence[Row]) -> RenderableType:
    """Return the rows as a table for a terminal."""
    return tables.terminal(_TITLE, _HEADINGS, _lines(rows), (0,))


def markdown(rows: Sequence[Row]) -> str:
    """Return the same table in Markdown."""
    return tables.markdown(_HEADINGS, _lines(rows), (0,))
