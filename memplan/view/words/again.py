"""Programs with re-runs and moves, in a terminal: what they cost, and what is proved."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.levers.rewrite import Recomputed, Reordered
from memplan.problem.plan import Status
from memplan.view.units import exact, plural, seconds
from memplan.view.words.parts import (
    GOOD,
    MOST_ROWS,
    OPEN,
    Fact,
    list_facts,
    make_name,
    make_table,
    quote_name,
)

if TYPE_CHECKING:
    from memplan.levers.rewrite.again import Limits

__all__ = ["describe_less", "describe_re_runs", "describe_recomputed", "find_least", "list_lever"]


_MOST_NAMES = 3


def describe_recomputed(found: Recomputed) -> RenderableType:
    """Return loads, costs and bounds, and the operators that run again most dearly."""
    facts: list[Fact] = [
        ("operators", f"{len(found.order):,}"),
        ("load, given order", exact(found.given_peak)),
        ("load, before re-runs", exact(found.ordered.problem.max_load)),
        ("load", f"{exact(found.peak)}, within {exact(found.capacity)}"),
        ("floor", f"{exact(found.floor)}{_name_floor(found)}: {_list_ways(found)} need less"),
        ("run again", describe_re_runs(found)),
        *_list_moves(found),
        ("bound, any order", f"{found.share_of(found.bound):.2%} more work"),
        ("bound, this order", f"{found.share_of(found.order_bound):.2%} more work"),
        ("status", _describe_status(found)),
        ("search", f"{plural(found.states, 'node')}, {seconds(found.seconds)}"),
    ]
    parts: list[RenderableType] = [list_facts(facts)]
    if found.gains_nothing:
        words = "Running operators again gains nothing here: the program needs its floor without."
        parts += [Text(), Text(words, style=GOOD)]
    if found.repeated:
        parts += [Text(), _tabulate(found)]
    return Group(*parts)


def describe_re_runs(found: Recomputed) -> str:
    """Return how many operators run again, and what that costs."""
    if not (found.repeated or found.moved):
        return "nothing; the program fits without"
    runs = [f"{plural(found.repeated, 'run')} more"] if found.repeated else []
    moves = [f"{plural(len(found.moved), 'move')} out and back"] if found.moved else []
    what = " and ".join((*runs, *moves))
    return f"{what}, {found.share:.2%} more work; {_describe_bound(found)}"


def describe_less(found: Recomputed | Limits) -> Text:
    """Return what a tenth less memory costs, as far as a short search knows."""
    what = f"10 % less memory, {exact(found.capacity)},"
    least = found.bound / found.plain if found.plain else 0.0
    if isinstance(found, Recomputed):
        if not found.extra:
            return Text(f"{what} costs no more work: another order is enough.", style=OPEN)
        proved = "proved: no less" if found.bound == found.extra else f"at least {least:.2%}"
        return Text(f"{what} costs {found.share:.2%} more work ({proved}): see `memplan tradeoff`.")
    if found.is_impossible:
        operator = found.floor_operator
        needs = f"operator {quote_name(operator)}" if operator else "what is given or wanted"
        return Text(
            f"{what} is not reached by any order and any re-runs, proved: {needs} needs "
            f"{exact(found.floor)}.",
            style=GOOD,
        )
    return Text(f"No re-runs were found for {what[:-1]}: they add at least {least:.2%} more work.")


def list_lever(found: Reordered | Recomputed) -> tuple[Fact, Fact]:
    """Return what was done to the program before it was planned, and what nothing goes below."""
    if isinstance(found, Recomputed):
        return ("again", describe_re_runs(found)), ("floor, any re-runs", exact(found.floor))
    words = "as given; no better one was found"
    if found.moved:
        less = exact(found.given_peak - found.peak)
        words = f"{plural(len(found.moved), 'operator')} moved, the load is {less} less"
    return ("order", words), ("bound, any order", exact(found.bound))


def find_least(found: Reordered | Recomputed) -> int:
    """Return the load that no other order, or no re-runs, go below."""
    return found.floor if isinstance(found, Recomputed) else found.bound


def _list_moves(found: Recomputed) -> list[Fact]:
    """Return what is moved to the other memory, the first few by name."""
    if not found.moved:
        return []
    names = list(dict.fromkeys(found.moved))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    shown = ", ".join(map(quote_name, names[:_MOST_NAMES])) + more
    hidden = f"{found.hidden / found.moving:.0%}" if found.hidden else "none"
    return [
        ("moved", f"{shown}; at most {exact(found.outside)} are outside"),
        ("moves beside work", f"{hidden} of their time would be hidden, within the capacity"),
    ]


def _list_ways(found: Recomputed) -> str:
    """Return what the bounds are about."""
    moves = (found.problem.move >= 0).any()
    return "no order, no re-runs and no moves" if moves else "no order and no re-runs"


def _describe_bound(found: Recomputed) -> str:
    if found.bound == found.extra:
        return f"proved: {_list_ways(found)} cost less"
    return f"at least {found.share_of(found.bound):.2%} in any order"


def _describe_status(found: Recomputed) -> str:
    if found.status is not Status.OPTIMAL:
        return f"{found.status}: it fits"
    what = _list_ways(found) if found.bound == found.extra else "no re-runs in this order"
    return f"optimal: {what} cost less"


def _name_floor(found: Recomputed) -> str:
    return f", of {quote_name(found.floor_operator)}" if found.floor_operator else ""


def _tabulate(found: Recomputed) -> RenderableType:
    """Return the operators that run again, the dearest first."""
    cost = {op: int(found.problem.cost[at]) for at, op in enumerate(found.order)}
    times = Counter(found.runs)
    again = sorted(
        (op for op in times if times[op] > 1), key=lambda op: -cost[op] * (times[op] - 1)
    )
    table = make_table("runs again", "times", "more work")
    assert found.given.graph is not None
    for op in again[:MOST_ROWS]:
        operator = found.given.graph.operators[op]
        table.add_row(
            make_name(operator.name or operator.type),
            f"{times[op] - 1}",
            f"{found.share_of(cost[op] * (times[op] - 1)):.2%}",
        )
    return table
