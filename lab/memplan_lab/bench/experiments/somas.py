"""Measures what the tables of SOMAS show, for training steps of its networks.

A network is captured once. Its safe pairs are found by each algorithm, and its tensors placed by
each heuristic: with groups as they are, with every group joined into one buffer, and without them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

import numpy as np

from memplan.problem import Problem
from memplan.programs.graph import Layout, lay_out, unsafe_pairs
from memplan.programs.graph.steps import steps_of
from memplan_lab.bench import worker
from memplan_lab.bench.experiment import Arm, Case, Experiment, Rows, Settings
from memplan_lab.bench.rows import COLUMNS, Outcome, Request, Row
from memplan_lab.bench.tables import Shown

# The suites of the rows.
SAFETY, RIGOROUS, JOINED, FREE = "somas-safety", "somas", "somas-joined", "somas-free"

ALGORITHMS = ("1opt", "2", "memplan")

_SINGLE = tuple(
    f"single_object:sort={sort},fit={fit}"
    for sort in ("breadth", "size", "source", "unsafe")
    for fit in ("best", "first")
)
_MANY = tuple(f"many_objects:sort=size,fit={fit}" for fit in ("best", "first"))
HEURISTICS = (*_SINGLE, *_MANY)

MEASURED = "measured"  # the status of a run that makes no plan

_REPEATS = 3
_SECONDS = 10.0  # of each solve

# By name of the network of `TRAINED`: what the paper calls it. The first ten are in tables 1 to 3.
NETWORKS = {
    "bert_base": "BERT-base",
    "bert_large": "BERT-large",
    "bert_nezha": "BERT-nezha",
    "face_recognition": "FaceRecognition",
    "pangu_2.6b": "PanGu (2.6B)",
    "resnet50": "ResNet-50",
    "tiny_bert": "Tiny-BERT",
    "face_detection": "FaceDetection",
    "transformer": "Transformer",
    "mobilenet_v2": "MobileNetv2",
    "pangu_8b": "PanGu (8B)",
    "pangu_13b": "PanGu (13B)",
}


def measure(name: str, layout: Layout, timeout: float) -> Iterator[Row]:
    """Yield the rows of a network: the time of safe pairs, and plans with a timeout for each."""
    yield from _measure_safety(name, layout)
    problem = layout.problem.without_alignment()
    yield from _solve(RIGOROUS, name, problem, ("bump", *HEURISTICS, "auto"), timeout)
    if problem.has_groups:
        yield from _solve(JOINED, name, join_groups(layout), (*HEURISTICS, "auto"), timeout)
        yield from _solve(FREE, name, remove_groups(problem), (*HEURISTICS, "auto"), timeout)


def join_groups(layout: Layout) -> Problem:
    """Return the problem with one buffer for each group, which is needed whenever a member is.

    It may share memory with another buffer only if all members may.
    """
    problem = layout.problem.without_alignment()
    first = {row: rows[0] for rows in problem.groups for row in rows}
    leader = np.array([first.get(row, row) for row in range(len(problem))])
    kept, row_of = np.unique(leader, return_inverse=True)
    start, end = problem.start[kept].copy(), problem.end[kept].copy()
    size = np.zeros(len(kept), dtype=np.int64)
    np.minimum.at(start, row_of, problem.start)
    np.maximum.at(end, row_of, problem.end)
    np.add.at(size, row_of, problem.size)
    pairs = unsafe_pairs(layout)
    rows = np.repeat(np.arange(len(problem)), np.diff(pairs.row_begin))
    low, high = row_of[rows], row_of[pairs.other]
    beyond = (start[low] >= end[high]) | (start[high] >= end[low])
    found = np.stack((low[beyond], high[beyond]), axis=1)
    found = np.unique(np.sort(found, axis=1), axis=0)
    return Problem.from_arrays(
        start, end, size, ids=[problem.ids[row] for row in kept], conflicts=found
    )


def remove_groups(problem: Problem) -> Problem:
    """Return the problem with its conflicts, and without its groups."""
    return Problem.from_arrays(
        problem.start, problem.end, problem.size, ids=problem.ids, conflicts=problem.conflicts
    )


def _measure_safety(name: str, layout: Layout) -> Iterator[Row]:
    steps = steps_of(layout)
    for algorithm in ALGORITHMS:
        times = []
        for _ in range(_REPEATS):
            gc.collect()
            begin = time.process_time()
            steps.unsafe_pairs(algorithm)
            times.append(time.process_time() - begin)
        outcome = Outcome(MEASURED, wall=tuple(times), cpu=tuple(times))
        yield _row(SAFETY, name, layout.problem, algorithm, outcome, None)


def _solve(
    suite: str, name: str, problem: Problem, solvers: tuple[str, ...], timeout: float
) -> Iterator[Row]:
    for solver in solvers:
        request = Request(solver, "min_peak", timeout, None, 1, 0, 1)
        outcome = worker.answer(problem, request)
        yield _row(suite, name, problem, solver, outcome, timeout)


def _row(
    suite: str, name: str, problem: Problem, solver: str, outcome: Outcome, timeout: float | None
) -> Row:
    return Row.of(
        outcome.columns(),
        max_load=problem.max_load,
        suite=suite,
        case=name,
        n=len(problem),
        solver=solver,
        objective="min_peak",
        wall_min_s=min(outcome.wall, default=None),
        cpu_min_s=min(outcome.cpu, default=None),
        fingerprint=problem.fingerprint,
        timeout_s=timeout,
        seed=0,
    )


def _list_cases(_: Settings) -> Iterator[Case]:
    for network, name in NETWORKS.items():
        yield Case(network, partial(_lay_out, network, name))


def _lay_out(network: str, name: str) -> tuple[str, Layout]:
    """Return what the paper calls a network, and a training step of it on streams."""
    from memplan.extensions.streams.training import training_step
    from memplan_lab.bench.models.training import TRAINED

    return name, lay_out(training_step(*TRAINED[network](), streams="category"))


def _list_arms(settings: Settings) -> Iterator[Arm]:
    timeout = _SECONDS if settings["timeout"] is None else settings["timeout"]
    yield Arm("in turns", lambda made: map(asdict, measure(made[0], made[1], timeout)))


def _make_tables(rows: Rows, _: Settings) -> Iterator[Shown]:
    from memplan_lab.bench import somas_tables

    made = [Row(**{name: row[name] for name in COLUMNS}) for row in rows]
    for make in somas_tables.PARTS.values():
        if (part := make(made)) is not None:
            yield from part[1]


EXPERIMENT = Experiment(
    "somas",
    "safety and offsets of training steps on parallel streams, for tables 1 to 4 of SOMAS",
    figures={"suite": "what was measured", "case": "the network", "solver": "algorithm, heuristic"},
    cases=_list_cases,
    arms=_list_arms,
    tables=_make_tables,
    takes=("case", "limit", "timeout"),
)
