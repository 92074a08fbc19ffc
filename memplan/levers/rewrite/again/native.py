"""Asks the core which operators to run again, and reads its answers."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from memplan import _core
from memplan.levers.rewrite.again.columns import Again
from memplan.levers.rewrite.again.emitted import emit
from memplan.levers.rewrite.order import core_problem
from memplan.problem import (
    GivenOrderBound,
    GivenOrderLeaf,
    OrderProblem,
    RecomputeBound,
    RecomputeFloor,
    RecomputeLeaf,
    RecomputeProblem,
)
from memplan.problem.plan import Status
from memplan.programs.graph import lay_out
from memplan.solvers.stopping import note_interrupt

__all__ = [
    "Found",
    "bound_certificate_of",
    "core_recompute_problem",
    "find_runs",
    "floor_certificate_of",
    "order_certificate_of",
]


@dataclass(frozen=True)
class Found:
    """What was found for a program."""

    runs: tuple[int, ...] | None  # a sequence of the operators of `Again.problem` that fits
    extra: int  # what it costs beyond one run of each operator
    # What is proved of every sequence; its operators are those of `Again.relaxed`.
    proof: _core.RecomputeResult
    nodes: int  # work of all searches


def find_runs(
    question: Again, load: int, size: int, seconds: float | None, states: int | None, order: bool
) -> Found:
    """Return the best sequence that is found to fit into `size` bytes, and bounds on every one.

    An operator with blocks takes several steps. Bounds are of `relaxed`, which counts no more than
    these hold. A sequence found there is taken if its program fits; else the search counts all that
    they touch at one time, which may be more than they hold. `load` is that of the program as it
    is, which is taken if it fits and the searches find nothing.
    """
    begun = time.perf_counter()
    has_blocks = question.relaxed is not question.problem
    half = seconds / 2 if has_blocks and seconds is not None else seconds
    proof = _ask(question.relaxed, size, half, states, order)
    if proof.status == "infeasible" or size < proof.floor:
        return Found(None, 0, proof, proof.nodes)
    runs = question.put_together(proof.runs) if Status(proof.status).has_plan else None
    if not has_blocks:
        return Found(runs, proof.extra, proof, proof.nodes)
    if runs is not None and lay_out(emit(question, runs).graph).problem.max_load <= size:
        return Found(runs, proof.extra, proof, proof.nodes)
    left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - begun))
    found = _ask(question.problem, size, left, states, order)
    nodes = proof.nodes + found.nodes
    if Status(found.status).has_plan:
        return Found(tuple(found.runs), found.extra, proof, nodes)
    as_it_is = tuple(range(len(question.problem))) if load <= size else None
    return Found(as_it_is, 0, proof, nodes)


def _ask(
    problem: RecomputeProblem, size: int, seconds: float | None, states: int | None, order: bool
) -> _core.RecomputeResult:
    found = _core.recompute(core_recompute_problem(problem), size, seconds, states, order, [])
    if found.interrupted:
        note_interrupt()
    return found


def core_recompute_problem(problem: RecomputeProblem) -> _core.RecomputeProblem:
    """Return a question as the core takes it."""
    program: OrderProblem = problem.program
    return _core.RecomputeProblem(
        core_problem(program),
        problem.cost,
        problem.again.view(np.uint8),
        problem.maker,
        problem.move,
    )


def _columns(rows: object, width: int = 3) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def bound_certificate_of(found: _core.RecomputeResult) -> RecomputeBound | None:
    """Return why the bound holds, as the referee takes it; `None` if it is 0."""
    proof = found.certificate
    if proof.op < 0:
        return None
    leaves = tuple(
        RecomputeLeaf(tuple(leaf.decisions), leaf.price, _columns(leaf.flow))
        for leaf in proof.leaves
    )
    return RecomputeBound(proof.op, proof.unit, proof.scale, proof.shift, leaves)


def order_certificate_of(found: _core.RecomputeResult) -> GivenOrderBound | None:
    """Return why the bound for the given order holds; `None` if it needs no reason of its own."""
    proof = found.order_certificate
    if not proof.moments:
        return None
    leaves = tuple(
        GivenOrderLeaf(
            tuple(leaf.decisions), leaf.is_impossible, tuple(leaf.prices), _columns(leaf.needs, 4)
        )
        for leaf in proof.leaves
    )
    return GivenOrderBound(tuple(proof.moments), proof.unit, proof.scale, proof.shift, leaves)


def floor_certificate_of(found: _core.RecomputeResult) -> RecomputeFloor | None:
    """Return why the floor holds, as the referee takes it; `None` if it needs no reason."""
    if found.floor_op < 0 or not found.floor_flow:
        return None
    return RecomputeFloor(found.floor_op, _columns(found.floor_flow))
