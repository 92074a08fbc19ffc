"""Questions about programs: several in one arena, all sizes, orders, re-runs, and streams."""

from __future__ import annotations

import random
from dataclasses import replace

import memplan as mp
from memplan.base.errors import InfeasibleError, NoPlanError, ProblemError
from memplan.levers.rewrite import recompute, reorder
from memplan.levers.rewrite.again import NoRunsError
from memplan.levers.rewrite.waits import plan_waits
from memplan.programs.sources import of_graph
from memplan.scenarios.envelope import envelope
from memplan.scenarios.together import plan_together
from memplan_lab.claims.choosing import least_apart
from memplan_lab.claims.comparing import compare, must
from memplan_lab.claims.drawing import draw_case, draw_steps, draw_ties
from memplan_lab.claims.placing import Case, Item, find_least
from memplan_lab.claims.plans import MOST, check_plan
from memplan_lab.claims.programs import Streams, least_extra, least_load

__all__ = ["ask_envelope", "ask_order", "ask_recompute", "ask_together", "ask_waits"]


def ask_together(rng: random.Random) -> bool:
    """Ask for one arena of programs that run in turn, of which some tensors are kept."""
    count = rng.randint(2, 3)
    cases = [
        draw_case(rng, draw_ties(rng, 0.15, ("alignment", "gap")), 3, 4, 4) for _ in range(count)
    ]
    names = "pqr"[:count]
    keep = [
        (number, row)
        for number, case in enumerate(cases)
        for row, each in enumerate(case.items)
        if not each.gaps and rng.random() < 0.3
    ]
    overlap = [
        (one, other)
        for one in range(count)
        for other in range(one + 1, count)
        if rng.random() < 0.15
    ]
    items: list[Item] = []
    owner: list[int] = []
    begin, length = 0, sum(_span(case)[1] for case in cases)
    for number, case in enumerate(cases):
        first, times = _span(case)
        for row, each in enumerate(case.items):
            moved = begin - first
            start, end = each.start + moved, each.end + moved
            gaps = tuple((a + moved, b + moved, lo, hi) for a, b, lo, hi in each.gaps)
            if (number, row) in keep:  # its program makes it again, and all others spare it
                gaps = ((begin, start, 0, 0),) if start > begin else ()
                start, end = 0, length
            items.append(replace(each, start=start, end=end, gaps=gaps))
            owner.append(number)
        begin += times
    conflicts = frozenset(
        (one, other)
        for other in range(len(items))
        for one in range(other)
        if (owner[one], owner[other]) in overlap
    )
    joint = Case(tuple(items), conflicts=conflicts)
    true = find_least(joint, MOST)
    assert true is not None
    capacity = max(1, true + rng.randint(-2, 1)) if rng.random() < 0.3 else None
    try:
        found = plan_together(
            [case.problem() for case in cases],
            names=list(names),
            keep=[f"{names[number]}:{row}" for number, row in keep],
            overlap=[(names[one], names[other]) for one, other in overlap],
            capacity=capacity,
        )
    except InfeasibleError as error:
        must(capacity is not None and true > capacity, f"{error}, but {true} bytes are enough")
        return True
    except NoPlanError:
        return False
    check_plan(joint, found.plan, capacity)
    return compare(found, found.peak, found.plan.lower_bound, found.plan.status, true)


def _span(case: Case) -> tuple[int, int]:
    first = min(each.start for each in case.items)
    return first, max(each.end for each in case.items) - first


def ask_envelope(rng: random.Random) -> bool:
    """Ask for the peak at every size of a dimension, and for offsets that hold at each."""
    base = draw_case(rng, draw_ties(rng, 0.15, ("alignment", "gap", "conflict")), 4, 3, 5)
    slopes = [rng.choice((0, 1, 1, 2)) for _ in base.items]
    most = rng.randint(2, 4)

    def grow(d: int) -> Case:
        items = (
            replace(each, size=each.size + slope * (d - 1))
            for each, slope in zip(base.items, slopes, strict=True)
        )
        return replace(base, items=tuple(items))

    found = envelope(lambda d: grow(d).problem(), {"d": range(1, most + 1)})
    is_tight = True
    for d in range(1, most + 1):
        case = grow(d)
        least = find_least(case, MOST)
        assert least is not None
        must(found.bound_at(d=d) <= least <= found.peak_at(d=d), f"{found!r}, {least} at {d}")
        is_tight &= found.peak_at(d=d) == least
        own = found.plan_at(d=d)
        check_plan(case, own)
        compare(own, own.peak, own.lower_bound, own.status, least)
        check_plan(case, mp.Plan.of(case.problem(), found.plan.offsets))
    must(is_tight or str(found.status) != "optimal", f"{found!r} is not the least")
    # Fixed offsets are a plan of all sizes one behind the other; only the largest bytes count.
    fixed = find_least(grow(most), MOST)
    is_least = compare(
        found.plan, found.plan.peak, found.plan.lower_bound, found.plan.status, fixed
    )
    return is_least and str(found.status) == "optimal"


def ask_order(rng: random.Random) -> bool:
    """Ask for the order of operators with the least load."""
    program = draw_steps(rng, 7)
    found = reorder(program.graph())
    return compare(found, found.peak, found.bound, found.status, least_load(program))


def ask_recompute(rng: random.Random) -> bool:
    """Ask which operators run again, so that a program fits at the least cost."""
    program = draw_steps(rng, 5)
    graph = program.graph()
    costs = [rng.randint(0, 5) for _ in program.steps]
    capacity = max(1, reorder(graph).given_peak - rng.randint(0, 8))
    true = least_extra(program, capacity, costs)
    try:
        found = recompute(
            graph, capacity, costs={f"o{at}": cost * 1e-12 for at, cost in enumerate(costs)}
        )
    except NoRunsError as error:
        must(true is None or not error.limits.is_impossible, f"{error}, but {true} is possible")
        return error.limits.is_impossible
    must(found.peak <= capacity, f"{found!r} is above {capacity}")
    return compare(found, found.extra, found.bound, found.status, true)


def ask_waits(rng: random.Random) -> bool:
    """Ask for the waits of streams that cost least within a capacity."""
    count = rng.randint(2, 5)
    reads = tuple(tuple(at for at in range(to) if rng.random() < 0.35) for to in range(count))
    stream = (0, 1, *(rng.randrange(3) for _ in range(count - 2)))
    program = Streams(tuple(rng.randint(1, 6) for _ in range(count)), reads, stream)
    case, penalties = program.ask()
    if len(penalties) > 7:
        raise ProblemError("too many pairs to try all")
    least = find_least(case, MOST)
    assert least is not None
    capacity = max(1, least + rng.randint(-1, 4))
    found = plan_waits(of_graph(program.graph()), capacity=capacity).apart
    true = least_apart(case, capacity, penalties)
    cost = found.cost if found.plan.has_offsets else None
    return compare(found, cost, found.bound, found.status, None if true is None else true[0])
