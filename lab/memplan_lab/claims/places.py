"""Questions about several memories: assignments, moves, weights, blocks, and penalties."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import floor, lcm

import memplan as mp
from memplan.base.errors import InfeasibleError, MemplanError, NoPlanError, ProblemError
from memplan.machine.apart import plan_apart
from memplan.machine.blocks import plan_blocks
from memplan.machine.memories import assign
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import of_graph
from memplan_lab.claims.choosing import (
    Place,
    least_apart,
    least_moved,
    least_traffic,
    list_blocks,
)
from memplan_lab.claims.comparing import compare, must
from memplan_lab.claims.drawing import draw_case, draw_memories, draw_ties
from memplan_lab.claims.placing import Case, Item, find_least
from memplan_lab.claims.plans import MOST, check_plan

__all__ = ["ask_assign", "ask_blocks", "ask_penalties", "ask_residency", "ask_weights"]


def _count(size: int, times: float | Fraction) -> int:
    """Return how many bytes are touched; halves are rounded up."""
    return floor(size * Fraction(times) + Fraction(1, 2))


def _measure(memories: Sequence[mp.Memory]) -> tuple[list[Place], int]:
    """Return memories with whole costs, and how many of these are one of the given ones."""
    rates = [Fraction(rate) for each in memories for rate in (each.read, each.write)]
    unit = lcm(*(rate.denominator for rate in rates))
    return [
        Place(
            MOST if each.capacity is None else each.capacity,
            int(Fraction(each.read) * unit),
            int(Fraction(each.write) * unit),
            each.alignment,
        )
        for each in memories
    ], unit


def _settle(found: mp.Assigned | MemplanError, true: int | None, unit: int) -> bool:
    """Compare an assignment, or that there is none, with the least cost in whole units."""
    if isinstance(found, NoPlanError):
        return False
    if isinstance(found, MemplanError):
        must(true is None, f"{found}, but {true} / {unit} is possible")
        return True
    least = None if true is None else float(Fraction(true, unit))
    return compare(found, float(found.traffic), float(found.bound), found.status, least)


def _draw_allowed(rng: random.Random, case: Case, count: int, share: float) -> list[list[int]]:
    """Return in which memories each buffer may lie; those of a group may lie where all may."""
    return [
        sorted(rng.sample(range(count), rng.randint(1, count)))
        if rng.random() < share
        else [*range(count)]
        for _ in case.items
    ]


def ask_assign(rng: random.Random) -> bool:
    """Ask in which memory each buffer lies."""
    case = draw_case(rng, draw_ties(rng, 0.3), 5)
    problem = case.problem()
    memories = draw_memories(rng, rng.randint(1, 3))
    places, unit = _measure(memories)
    touched: list[tuple[float | Fraction, float | Fraction]] = [
        (rng.choice((0, 1, 1, 2, 3, Fraction(1, 2))), rng.choice((0, 1, 1, 2, 0.5)))
        if rng.random() < 0.6
        else (1, 1)
        for _ in case.items
    ]
    may = _draw_allowed(rng, case, len(memories), 0.15)
    costs = [
        [
            _count(each.size, reads) * place.read + _count(each.size, writes) * place.write
            if all(number in may[other] for other in case.find_group(row))
            else None
            for number, place in enumerate(places)
        ]
        for row, (each, (reads, writes)) in enumerate(zip(case.items, touched, strict=True))
    ]
    apart = []
    if len(case.items) > 1 and rng.random() < 0.2:
        one, other = sorted(rng.sample(range(len(case.items)), 2))
        if other not in case.find_group(one):
            apart.append((one, other))
    try:
        found: mp.Assigned | MemplanError = assign(
            problem,
            memories,
            {str(row): both for row, both in enumerate(touched)},
            allowed={
                str(row): [memories[at].name for at in there] for row, there in enumerate(may)
            },
            apart=[(str(one), str(other)) for one, other in apart],
        )
    except (InfeasibleError, NoPlanError) as error:
        found = error
    except ProblemError:
        raise
    except MemplanError as error:  # a pin that no memory has, or a group without a memory
        raise ProblemError(str(error)) from error
    true = least_traffic(case, places, costs, apart)
    if isinstance(found, mp.Assigned):
        for place, plan in zip(places, found.plans, strict=True):
            check_plan(case.subset(int(id) for id in plan.ids), plan, place.capacity)
    return _settle(found, true, unit)


def ask_residency(rng: random.Random) -> bool:
    """Ask when each buffer lies in which memory, if it may move between its accesses."""
    case = draw_case(rng, draw_ties(rng, 0.15, ("alignment", "pin", "reserved")), 3, 4)
    if any(each.size == 0 for each in case.items):
        raise ProblemError("a buffer without bytes stays where it is")
    problem = case.problem()
    memories = draw_memories(rng, rng.choice((1, 2, 2, 3)), aligned=False)
    if all(each.capacity is not None for each in memories):
        raise ProblemError("no memory is a home of all")
    places, unit = _measure(memories)
    accesses: dict[str, list[tuple[int, int, float]]] = {}
    touches = []
    for row, each in enumerate(case.items):
        most = 3 if len(memories) < 3 else 2
        times = rng.sample(range(each.start, each.end), min(each.end - each.start, most))
        given = [
            (time, rng.choice((0, 1, 1, 2, 3)), rng.choice((0, 0, 1, 1, 2, 0.5)))
            for time in sorted(times)
        ]
        given = [one for one in given if one[1] or one[2]]
        accesses[str(row)] = given
        counted = [(t, _count(each.size, r), _count(each.size, w)) for t, r, w in given]
        touches.append(counted)
    roomy = {at for at, each in enumerate(memories) if each.capacity is None}
    may = _draw_allowed(rng, case, len(memories), 0.1)
    may = [there if roomy & {*there} else [*range(len(memories))] for there in may]
    allowed = {str(row): [memories[at].name for at in there] for row, there in enumerate(may)}
    found = assign(problem, memories, accesses, allowed=allowed, residency=True)
    if found.stretches:
        still = assign(problem, memories, accesses, allowed=allowed)
        must(still.traffic > found.traffic, f"{found!r} moves what may stay")
    return _settle(found, least_moved(case, places, may, touches), unit)


def ask_weights(rng: random.Random) -> bool:
    """Ask where the weights, states and tensors of a program lie, in flash, SRAM or between."""
    tensors = [Tensor("in", rng.randint(1, 5), Kind.INPUT)]
    operators: list[Operator] = []
    factor = {each: rng.choice((1, 1, 2, 3)) for each in "AB"}
    for step in range(rng.randint(1, 3)):
        inputs = [len(tensors) - 1]
        for kind, share in ((Kind.CONSTANT, 0.8), (Kind.CONSTANT, 0.2), (Kind.VARIABLE, 0.2)):
            known = [at for at, each in enumerate(tensors) if each.kind is kind]
            if known and rng.random() < 0.2:
                inputs.append(rng.choice(known))
            elif rng.random() < share and len(tensors) < 7:
                tensors.append(Tensor(f"{kind} {len(tensors)}", rng.randint(1, 6), kind))
                inputs.append(len(tensors) - 1)
        tensors.append(Tensor(f"t{step}", rng.randint(1, 5)))
        given = tuple(dict.fromkeys(inputs))
        operators.append(Operator(f"o{step}", rng.choice("AB"), given, (len(tensors) - 1,)))
    last = len(tensors) - 1
    graph = Graph("net", tuple(tensors), tuple(operators), (0,), (last,))
    touched = [[0, 0] for _ in tensors]
    touched[0][1] += tensors[0].bytes
    touched[last][0] += tensors[last].bytes
    spans = [(len(operators), 0) for _ in tensors]
    for time, operator in enumerate(operators):
        for at in operator.inputs:
            touched[at][0] += factor[operator.type] * tensors[at].bytes
        touched[operator.outputs[0]][1] += tensors[operator.outputs[0]].bytes
        for at in (*operator.inputs, *operator.outputs):
            spans[at] = (min(spans[at][0], time), max(spans[at][1], time + 1))
    for at, each in enumerate(tensors):
        if each.kind in (Kind.CONSTANT, Kind.VARIABLE):
            spans[at] = (0, len(operators))
    case = Case(tuple(Item(*span, each.bytes) for span, each in zip(spans, tensors, strict=True)))
    memories = draw_memories(rng, rng.randint(2, 3), aligned=False)
    if all(each.capacity is not None for each in memories):
        raise ProblemError("some memory has to be large enough")
    places, unit = _measure(memories)
    kinds = ("constant", "variable", "input", "output", "intermediate")
    types = {each.type for each in operators}
    found = assign(
        of_graph(graph, include=kinds),
        memories,
        reads={type_: times for type_, times in factor.items() if type_ in types},
    )
    costs = [
        [read * place.read + written * place.write for place in places] for read, written in touched
    ]
    return _settle(found, least_traffic(case, places, costs), unit)


def ask_blocks(rng: random.Random) -> bool:
    """Ask for the fewest blocks below a limit; at times some buffer is above it."""
    ties = draw_ties(rng, 0.2, without="window hint")
    case = draw_case(rng, ties, 6, 5, 5)
    problem = case.problem()
    limit = max(1, max(each.size for each in case.items) + rng.randint(-2, 8))
    ways = list_blocks(case, limit)
    true = min(ways.items(), default=None)
    least = min(ways.values(), default=None)
    if true is not None and rng.random() < 0.3:
        problem = problem.with_capacity(max(1, true[1] - rng.randint(0, 2)))
    capacity = problem.capacity
    try:
        found = plan_blocks(problem, limit)
    except InfeasibleError as error:
        is_within = least is not None and (capacity is None or least <= capacity)
        must(not is_within, f"{error}, but {ways} are possible")
        return True
    except NoPlanError:
        return False
    must(true is not None, f"{found!r}, but nothing fits")
    must(capacity is None or found.total <= capacity, f"{found!r} is above {capacity}")
    assert true is not None
    for plan in found.plans:
        part = case.subset(int(id) for id in plan.ids)
        most = max(sum(part.items[row].size for row, _ in piece) for piece in part.list_pieces())
        check_plan(part, plan, max(limit, most))
    must((found.count, found.total) >= true, f"{found!r}, but {true} is the least")
    must(found.count_bound <= true[0], f"{found!r}, but {true} is possible")
    if found.count == true[0]:
        must(found.total_bound <= true[1], f"{found!r}, but {true} is possible")
    if str(found.status) == "optimal":
        must((found.count, found.total) == true, f"{found!r}, but {true} is possible")
    return str(found.status) == "optimal"


def ask_penalties(rng: random.Random) -> bool:
    """Ask for a plan in which pairs that share addresses cost least."""
    case = draw_case(rng, draw_ties(rng, 0.2, without="window hint"), 5, 4, 5)
    least = find_least(case, MOST)
    if least is None:
        raise ProblemError("nothing fits")
    capacity = max(1, least + rng.randint(-1, 6))
    pairs: dict[tuple[int, int], int] = {}
    for one in range(len(case.items)):
        for other in range(one + 1, len(case.items)):
            held = [{time for time, bits in case.list_held(row) if bits} for row in (one, other)]
            is_together = held[0] & held[1] or (one, other) in case.conflicts
            is_tied = other in case.find_group(one)
            if not is_together and not is_tied and rng.random() < 0.7 and len(pairs) < 7:
                pairs[one, other] = rng.randint(0, 5)
    found = plan_apart(
        case.problem(capacity),
        {(str(one), str(other)): cost for (one, other), cost in pairs.items()},
    )
    true = least_apart(case, capacity, pairs)
    check_plan(case, found.plan, capacity)
    has_plan = found.plan.has_offsets
    cost = found.cost if has_plan else None
    if has_plan and true is not None and found.cost == true[0]:
        must(found.peak_bound <= true[1], f"{found!r}, but a peak of {true[1]} is possible")
    return compare(found, cost, found.bound, found.status, None if true is None else true[0])
