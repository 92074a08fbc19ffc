"""Repacking after small changes compared with fresh solves of the same problems, in one process.

Every family and capacity has the same sequence of steps: some buffers leave, others arrive from a
pool, and all must fit. The capacity is a share of the greatest least peak in the sequence.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean, median
from typing import Any, NamedTuple

from memplan.base.errors import MemplanError
from memplan.machine.repack.repacker import Repacker
from memplan.problem import Buffer, Problem
from memplan.referee import verify
from memplan.solvers import solve
from memplan_lab.bench import generators
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Rows,
    Setting,
    Settings,
    Table,
    read_count,
    read_list,
    tell,
)
from memplan_lab.bench.suites import parse_factor

FAMILIES: dict[str, Callable[[int, int], Problem]] = {
    "nn": generators.nn_like,
    "training": generators.training_like,
}
LEAST = "least peak"


class Turnover(NamedTuple):
    """The buffers that leave and that arrive, and all buffers after the step."""

    gone: tuple[str, ...]
    new: tuple[Buffer, ...]
    inside: tuple[Buffer, ...]


Sequences = list[tuple[tuple[Buffer, ...], list[Turnover], int]]  # with the greatest least peak


def _list_cases(settings: Settings) -> Iterator[Case]:
    buffers, changed = settings["buffers"], settings["changed"]
    if not 0 < changed <= buffers:
        raise MemplanError(f"changed is {changed}; it must be from 1 to buffers ({buffers})")
    for name, family in FAMILIES.items():
        numbers = (buffers, changed, settings["steps"])
        yield Case(name, partial(_make, family, *numbers, settings["seeds"]))


def _make(
    family: Callable[[int, int], Problem], buffers: int, changed: int, steps: int, seeds: int
) -> Sequences:
    made = [_make_sequence(family, buffers, changed, steps, seed) for seed in range(seeds)]
    return [
        (first, turns, max(solve(turn.inside).peak or 1 for turn in turns)) for first, turns in made
    ]


def measure(sequences: Sequences, percents: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Repack and solve afresh, with a capacity and for the least peak; every plan is verified."""
    for percent in (*percents, None):
        runs = [
            _measure(first, steps, None if percent is None else -(-top * percent // 100))
            for first, steps, top in sequences
        ]
        names = ("repack", "fresh", "with_problem", "moved", "replanned")
        parts = (sum(part, ()) for part in zip(*runs, strict=True))
        capacity = LEAST if percent is None else f"{percent} %"
        yield {"capacity": capacity, **dict(zip(names, parts, strict=True))}


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


def _mean_of_first(steps: list[Sequence[float]]) -> float:
    return mean(steps[0])


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f} µs"


def _of(name: str, reduce: Callable[[Sequence[float]], float]) -> Callable[[Rows], str]:
    return lambda rows: _micro(reduce(rows[0][name]))


def _ratio(over: str, reduce: Callable[[Sequence[float]], float]) -> Callable[[Rows], str]:
    return lambda rows: f"{reduce(rows[0][over]) / reduce(rows[0]['repack']):.1f} x"


TABLE = Table(
    "CPU time of a repack and of a fresh solve, and buffers moved",
    (
        Column("family", "{case}"),
        Column("capacity", "{capacity}"),
        Column("repack", _of("repack", mean)),
        Column("median", _of("repack", median)),
        Column("fresh", _of("fresh", mean)),
        Column("median", _of("fresh", median)),
        Column("fresh with its problem", _of("with_problem", mean)),
        Column("median", _of("with_problem", median)),
        Column("fresh / repack", _ratio("fresh", sum)),
        Column("of medians", _ratio("fresh", median)),
        Column("with its problem", _ratio("with_problem", sum)),
        Column("of medians", _ratio("with_problem", median)),
        Column("moved", tell("{:.1f}", _mean_of_first, "moved")),
        Column("replanned", tell("{:.0%}", _mean_of_first, "replanned")),
    ),
)

EXPERIMENT = Experiment(
    "repack",
    "repairs of a plan after small changes, beside fresh solves",
    figures={
        "capacity": "in per cent of the greatest least peak of all steps, or the least peak as "
        "objective",
        "repack": "by step: CPU seconds of one thread from buffers as objects to the answer",
        "fresh": "by step: of `memplan.solve` of a problem that is there",
        "with_problem": "by step: the same with the making of the problem from objects",
        "moved": "by step: buffers that were moved",
        "replanned": "by step: 1 if everything was planned again",
    },
    cases=_list_cases,
    arms=lambda settings: [Arm("memplan", partial(measure, percents=settings["capacity-factor"]))],
    tables=lambda rows, _: [TABLE],
    own={
        "buffers": Setting(500, "the number of buffers", read_count),
        "changed": Setting(25, "buffers that are replaced at each step", read_count),
        "steps": Setting(50, "steps of a sequence", read_count),
        "seeds": Setting(3, "sequences of each family", read_count),
        "capacity-factor": Setting(
            (100, 102, 105, 110),
            "capacities as 1,1.05: ratios of the largest least peak",
            read_list(parse_factor),
        ),
    },
)
