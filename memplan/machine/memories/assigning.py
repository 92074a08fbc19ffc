"""Assigns the buffers of a program to memories of several speeds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memplan.base.errors import MemplanError, NoPlanError
from memplan.machine.memories.accesses import (
    Access,
    Given,
    Times,
    find_kept,
    list_accesses,
    sum_bytes,
)
from memplan.machine.memories.assigned import Assigned
from memplan.machine.memories.memory import (
    Memory,
    as_number,
    check_allowed,
    check_apart,
    check_memories,
    check_places,
    with_whole_costs,
)
from memplan.machine.memories.moves import can_move, require_times
from memplan.machine.memories.question import Question
from memplan.machine.memories.search import Found, find_assignment
from memplan.problem import Asked, Problem
from memplan.problem.plan import Status
from memplan.solvers.planning import SharedBudget, load_model
from memplan.solvers.stopping import is_stopped, stoppable

__all__ = ["assign", "place"]


def assign(
    model: str | os.PathLike[str] | Asked,
    memories: Sequence[Memory],
    accesses: Mapping[str, Given] | None = None,
    *,
    allowed: Mapping[str, Iterable[str]] | None = None,
    apart: Iterable[tuple[str, str]] = (),
    reads: Mapping[str, Times | Sequence[Times]] | None = None,
    residency: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
) -> Assigned:
    """Assign every buffer to one memory, so that all accesses cost least, and place it there.

    Parameters
    ----------
    model
        A file that `memplan.load` reads, its result, or a problem. All constraints hold in each
        memory: alignments, pins, gaps, conflicts, groups, reserved ranges. Its own capacity says
        nothing here.
    memories
        At least one, the fastest first.
    accesses
        By id: how often all bytes of a buffer are read, and written: 0.5 is half of them. By
        default it is what the operators of the program read and write; without a program, once
        each. For buffers that may move, it is a list of times, each with how often all bytes are
        read and written then.
    allowed
        By id: the names of the memories that the buffer may lie in; by default all of them.
    apart
        Pairs of ids that lie in different memories, as in banks that an operator reads at once.
    reads
        By type of operators: how often their kernels read all bytes of each input, where that is
        not once; or a list with a number for each input, in their order. `{"CONV_2D": (9, 1)}` is
        nine times the picture, and once the weights.
    residency
        Whether a buffer whose home is a slow memory may be in a faster one for some time. Its bytes
        are copied there and back, which costs what reading and writing them costs. Its home is any
        memory with room for all, and keeps its place. Groups, buffers with gaps, listed conflicts
        and what a program keeps from run to run (constants and variables) stay.
    timeout, nodes
        When to stop the search; see `memplan.solve`. By default it stops after a fixed amount of
        work.

    Raises
    ------
    MemplanError
        One sentence: for names that are unknown or of two memories, numbers that are not whole or
        out of range, a memory that costs more than a later one, a base that alignments do not
        divide.
    InfeasibleError
        If it is proved that what must be in a memory does not fit there.
    NoPlanError
        If no assignment was found.
    KeyboardInterrupt
        On Ctrl-C before there is an assignment; after that, the best one is returned.

    Examples
    --------
    >>> import memplan as mp
    >>> from memplan.machine.memories import assign
    >>> buffers = [mp.Buffer("a", 0, 4, 6), mp.Buffer("b", 0, 4, 5), mp.Buffer("c", 0, 4, 5)]
    >>> fast, slow = mp.Memory("sram", 10), mp.Memory("psram", read=8, write=8)
    >>> found = assign(mp.Problem(buffers), [fast, slow])
    >>> found.memory_of("a"), found.memory_of("b"), found.traffic, str(found.status)
    ('psram', 'sram', 116, 'optimal')
    """
    loaded = load_model(model)
    problem = loaded.problem.with_capacity(None)
    kept = find_kept(loaded)
    if residency:
        require_times(problem, kept, accesses or {})
    found = place(
        problem,
        memories,
        list_accesses(loaded, accesses, reads),
        kept,
        allowed=allowed,
        apart=apart,
        residency=residency,
        timeout=timeout,
        nodes=nodes,
    )
    return replace(found, loaded=None if loaded.layout is None else loaded)


def place(
    problem: Problem,
    memories: Sequence[Memory],
    timed: Sequence[Sequence[Access]],
    kept: Sequence[bool],
    *,
    allowed: Mapping[str, Iterable[str]] | None = None,
    apart: Iterable[tuple[str, str]] = (),
    residency: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
) -> Assigned:
    """Assign the buffers of a problem whose accesses are known in bytes; see `assign`.

    Parameters
    ----------
    problem
        Without a capacity.
    timed
        By row: its accesses, by time.
    kept
        By row: whether it stays where it is.
    """
    begun = time.perf_counter()
    given = tuple(memories)
    check_memories(given)
    may = check_allowed(problem, given, allowed)
    check_places(problem, given, may)
    pairs = check_apart(problem, apart)
    if residency and pairs:
        raise MemplanError("buffers that are apart cannot move; leave out apart, or residency")
    accessed = sum_bytes(timed)
    whole, unit = with_whole_costs(given)
    question = Question(problem, whole, accessed, may, pairs)
    with stoppable() as stop:
        if residency:
            moves = zip(timed, can_move(problem), kept, strict=True)
            free = [each if is_free and not stays else () for each, is_free, stays in moves]
            found = _find_moves(question, timeout, nodes, free)
        else:
            found = find_assignment(question, timeout, nodes)
        moved = {each.buffer for each in found.stretches}
        assigned = Assigned(
            memories=given,
            plans=found.plans,
            traffic=as_number(unit * found.traffic),
            bound=as_number(unit * found.bound),
            status=Status.OPTIMAL if found.traffic == found.bound else Status.FEASIBLE,
            problem=problem,
            loaded=None,
            accessed=dict(zip(problem.ids, accessed, strict=True)),
            stretches=found.stretches,
            steps={
                id: [(each.time, each.read, each.written) for each in row]
                for id, row in zip(problem.ids, timed, strict=True)
                if id in moved
            },
            prices=tuple(
                tuple(each._replace(saved=each.saved * float(unit)) for each in prices)
                for prices in found.prices
            ),
            residency=residency,
            allowed=may,
            apart=tuple((problem.ids[one], problem.ids[other]) for one, other in pairs),
        )
        assert found.bound <= found.traffic, "no bound is above what was found"
        assert assigned.verify() == assigned.traffic, "the search counts as the referee"
    return replace(assigned, seconds=time.perf_counter() - begun, interrupted=stop.is_set)


def _find_moves(
    question: Question,
    timeout: float | None,
    nodes: int | None,
    accesses: Sequence[Sequence[Access]],
) -> Found:
    """Return the best of an assignment in which buffers move, and of one in which they stay."""
    budget = SharedBudget(timeout, None)  # each of them has all nodes
    still = find_assignment(question, budget.share(4).seconds, nodes)
    if is_stopped():
        return replace(still, bound=0)
    try:
        moved = find_assignment(question, budget.share(1).seconds, nodes, accesses)
    except NoPlanError:
        return replace(still, bound=0)
    if moved.traffic < still.traffic:
        return moved
    return replace(still, bound=min(still.traffic, moved.bound))
