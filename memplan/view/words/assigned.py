"""Buffers in several memories, in a terminal: what is where, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.base.errors import listed
from memplan.machine.memories.copies import list_copies
from memplan.machine.memories.memory import Cost, as_number
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.view.units import exact, lifetime, percent, plural, seconds
from memplan.view.words.parts import (
    GOOD,
    escape_sentence,
    list_facts,
    make_name,
    make_table,
)

if TYPE_CHECKING:
    from memplan.machine.memories import Assigned, Memory

__all__ = ["describe_assigned", "describe_valid", "tell_both"]

_HOMES = ", with homes that have room for all"  # others are not tried, where buffers move
_MOST_NAMES = 3


def describe_assigned(found: Assigned, most: int) -> RenderableType:
    """Return what each memory holds, what that costs, and what lies in slow memories."""
    table = make_table("memory", "buffers", "used", "of", "read", "written")
    rows = zip(found.memories, found.plans, found.count_bytes(), strict=True)
    for memory, plan, (read, written) in rows:
        size = "no limit" if memory.capacity is None else f"{memory.capacity:,}"
        amounts = (f"{plan.peak or 0:,}", size, f"{read:,}", f"{written:,}")
        table.add_row(make_name(memory.name), f"{len(plan.ids):,}", *amounts)
    proved = found.status is Status.OPTIMAL
    least = "proved: no assignment costs less" if proved else f"at least {_count(found.bound)}"
    if found.residency:
        least += _HOMES
    facts = [
        ("costs", _tell_costs(found.memories)),
        ("traffic", f"{_count(found.traffic)}, each byte times its cost; {least}"),
        *([("moves", _tell_moves(found))] if found.stretches else []),
        ("search", seconds(found.seconds)),
    ]
    return Group(
        table, Text(), list_facts(facts), Text(), Text(tell_both(found)), *_list_slow(found, most)
    )


def _count(traffic: Cost) -> str:
    """Return a number, with two decimals if it is not whole."""
    number = as_number(traffic)
    return f"{number:,}" if isinstance(number, int) else f"{number:,.2f}"


def _tell_costs(memories: Sequence[Memory]) -> str:
    """Return what a byte costs in each memory, and whether that was said."""
    costs = []
    for memory in memories:
        read, write = (f"{as_number(cost):.6g}" for cost in (memory.read, memory.write))
        both = read if read == write else f"{read} to read and {write} to write"
        costs.append(f"{both} in {memory.name}")
    guessed = [memory.name for memory in memories if memory.assumed]
    which = "" if len(guessed) == len(memories) else f" for {listed(guessed, quote=False)}"
    known = f" (assumed{which}: no cost was given)" if guessed else ""
    return f"a byte costs {', '.join(costs)}{known}"


def _tell_moves(found: Assigned) -> str:
    """Return how many buffers move, and how many copies run beside operators."""
    copies = list_copies(found)
    bytes = sum(int(found.problem.size[found.problem.index(c.stretch.buffer)]) for c in copies)
    hidden = sum(each.done > each.start for each in copies)
    moved = plural(len({each.buffer for each in found.stretches}), "buffer")
    return (
        f"{moved} in {plural(len(found.stretches), 'piece')}; {exact(bytes)} are copied, {hidden} "
        f"of {len(copies)} copies beside operators"
    )


def describe_valid(
    problem: Problem, memories: Sequence[Memory], plans: Sequence[Plan], traffic: float
) -> Text:
    """Return what the check of valid plans says, on one line."""
    used = ", ".join(
        f"{exact(plan.peak or 0)} of {memory.name}"
        for memory, plan in zip(memories, plans, strict=True)
    )
    count = plural(len(problem), "buffer")
    return Text.assemble(("OK", GOOD), f": {count}, {used}, traffic {_count(traffic)}")


def tell_both(found: Assigned) -> str:
    """Return two sentences: what is where, and what it costs."""
    places, costs = [], []
    counted = found.count_bytes()
    pieces = {each.copy for each in found.stretches}
    for number, (memory, plan) in enumerate(zip(found.memories, found.plans, strict=True)):
        if number and not plan.ids:
            places.append(f"{memory.name} holds nothing")
            continue
        moved = len(pieces & {*plan.ids})
        count = plural(len(plan.ids) - moved, "buffer")
        names, others = "", f" and {plural(moved, 'piece')} of others" if moved else ""
        if number:
            if ids := _sort_by_size(found, plan):
                names = f" ({listed(ids[:_MOST_NAMES], quote=False)}{', ...' * (len(ids) > 3)})"
            read, written = (exact(amount) for amount in counted[number])
            costs.append(f"reads {read} and writes {written} in {memory.name}")
        places.append(f"{memory.name} holds {count}{names}{others} in {exact(plan.peak or 0)}")
    share = percent(sum(map(sum, counted[1:])), sum(map(sum, counted)))
    run = f"A run {', '.join(costs)}, {share} of all that it touches"
    if not costs:
        run = f"A run touches only {found.memories[0].name}"
    least = "proved: no other assignment costs less"
    if found.status is not Status.OPTIMAL:
        least = f"another assignment saves at most {found.gap:.2%}"
    if found.residency:
        least += _HOMES
    if any(memory.assumed for memory in found.memories):
        least += f" if {_tell_costs(found.memories)}"
    return escape_sentence(f"{'; '.join(places)}. {run}; {least}.")


def _list_slow(found: Assigned, most: int) -> list[RenderableType]:
    """Return the buffers outside of the fastest memory, those with most traffic first."""
    table = make_table("buffer", "lifetime", "size", "offset", "memory", "traffic")
    rows, counted = [], found.count_by_buffer()
    for number, (memory, plan) in list(enumerate(zip(found.memories, found.plans, strict=True)))[
        1:
    ]:
        for id in found.accessed.keys() & {*plan.ids}:
            read, written = counted[number, id]
            rows.append((read * memory.read + written * memory.write, id, memory.name, plan))
    rows.sort(key=lambda row: (-row[0], row[1]))
    for traffic, id, name, plan in rows[:most]:
        row = found.problem.index(id)
        when = lifetime(int(found.problem.start[row]), int(found.problem.end[row]))
        amounts = (f"{found.problem.size[row]:,}", f"{plan.offset(id):,}", name, _count(traffic))
        table.add_row(make_name(id), when, *amounts)
    if not rows:
        return []
    more = f" (the first {most} of {len(rows)})" if len(rows) > most else ""
    return [Text(), Text(f"In slower memories{more}", style="bold"), table]


def _sort_by_size(found: Assigned, plan: Plan) -> list[str]:
    problem = found.problem
    ids = [id for id in plan.ids if id in found.accessed]
    return sorted(ids, key=lambda id: -int(problem.size[problem.index(id)]))
