"""The referee of programs that share one arena: nothing that must survive is written over.

It knows nothing of the problem that the planner made of them: it looks at the plan of each program,
and at the addresses that must keep their bytes while another program runs. Of a program that is not
at hand, the plan alone says where its buffers are: each of them counts whole, at all times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from memplan.base.errors import PlanError, quoted
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.problem.spans import spans
from memplan.referee.plans import verify

__all__ = ["Tenant", "verify_shared", "verify_together"]


class Tenant(NamedTuple):
    """A program with its plan in the shared arena.

    Attributes
    ----------
    name
        For errors.
    problem, plan
        Its buffers, with their lifetimes in its own run, and their offsets in the arena. The
        problem is `None` if only the plan is known: then the program itself is not checked.
    kept
        The ids of the buffers that keep their bytes from when they are made until the program runs
        again.
    """

    name: str
    problem: Problem | None
    plan: Plan
    kept: Collection[str]


class _Held(NamedTuple):
    lower: int
    upper: int
    name: str
    start: int
    end: int


def verify_together(tenants: Sequence[Tenant], overlap: Iterable[tuple[int, int]] = ()) -> int:
    """Check that programs can share one arena, in any order of their runs.

    Parameters
    ----------
    tenants
        The programs.
    overlap
        Pairs of them, by number, that may run at the same time.

    Returns
    -------
    int
        The bytes that the arena needs.

    Raises
    ------
    PlanError
        One sentence about the first error: as `verify`, or with both buffers and both programs.
    """
    held = []
    for tenant in tenants:
        if tenant.problem is not None:
            try:
                verify(tenant.problem, tenant.plan)
            except PlanError as error:
                raise PlanError(f"{tenant.name}: {error}") from None
        held.append(_list_held(tenant))
    for at, tenant in enumerate(tenants):
        kept = [each for each in held[at] if each.name in tenant.kept]
        for other, theirs in enumerate(held):
            if other != at:
                _refuse_common(kept, theirs, tenant, tenants[other])
        if tenant.problem is None:
            continue
        ends = {each.name: each.end for each in kept}  # the last span of each counts
        for each in kept:  # also when its own program no longer needs it
            later = [one for one in held[at] if one.end > ends[each.name] and one.name != each.name]
            _refuse_common([each], later, tenant, tenant)
    for first, second in overlap:
        _refuse_common(held[first], held[second], tenants[first], tenants[second])
    return max((each.upper for some in held for each in some), default=0)


def verify_shared(plan: Plan) -> None:
    """Check what the plan of one program says of the arena that it shares with others.

    Raises
    ------
    PlanError
        One sentence: if what it keeps has another place or size than in the plan, or if the arena
        ends below the plan's peak.
    """
    shared = plan.shared
    if shared is None:
        return
    sizes = dict(zip(plan.ids, plan.size.tolist(), strict=True))
    for each in shared.kept:
        if each.id in sizes and (each.offset, each.size) != (plan.offset(each.id), sizes[each.id]):
            raise PlanError(
                f"buffer {quoted(each.id)} is kept at {each.offset} with {each.size} bytes, but "
                f"the plan has it at {plan.offset(each.id)} with {sizes[each.id]}"
            )
    if (plan.peak or 0) > shared.arena:
        raise PlanError(f"the shared arena has {shared.arena} bytes, below the peak {plan.peak}")


def _list_held(tenant: Tenant) -> list[_Held]:
    """Return the addresses that each buffer holds, and when."""
    problem, plan = tenant.problem, tenant.plan
    if problem is None:
        whole = zip(plan.ids, plan.size.tolist(), strict=True)
        ranges = ((id, plan.offset(id), size) for id, size in whole if size > 0)
        return [_Held(lower, lower + size, id, 0, 1) for id, lower, size in ranges]
    ids, parts = problem.ids, spans(problem)
    columns = (parts.buffer, parts.lower, parts.upper, parts.start, parts.end)
    found = []
    for row, lower, upper, start, end in zip(*(each.tolist() for each in columns), strict=True):
        offset = plan.offset(ids[row])
        found.append(_Held(offset + lower, offset + upper, ids[row], start, end))
    return found


def _refuse_common(
    one: Sequence[_Held], other: Sequence[_Held], mine: Tenant, theirs: Tenant
) -> None:
    """Refuse an address that is in both lists."""
    highest: _Held | None = None  # of `one`, of those that begin at or below the address
    other_highest: _Held | None = None
    todo = [(each.lower, 0, each) for each in one] + [(each.lower, 1, each) for each in other]
    for lower, side, each in sorted(todo):
        across = other_highest if side == 0 else highest
        if across is not None and across.upper > lower:
            first, second = (each, across) if side == 0 else (across, each)
            raise PlanError(
                f"buffer {quoted(first.name)} of {mine.name} and {quoted(second.name)} of "
                f"{theirs.name} both hold address {lower}, but the first must keep its bytes"
            )
        if side == 0 and (highest is None or each.upper > highest.upper):
            highest = each
        if side == 1 and (other_highest is None or each.upper > other_highest.upper):
            other_highest = each
