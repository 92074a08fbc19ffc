"""What sharing costs, in a terminal."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.base.errors import listed
from memplan.problem.plan import Status
from memplan.programs.graph import Graph
from memplan.view.units import exact, plural, seconds
from memplan.view.words.parts import list_facts, make_name, make_table

if TYPE_CHECKING:
    from memplan.levers.rewrite.waits import Waits
    from memplan.solvers.apart import Apart

__all__ = ["describe_apart"]

_SHOWN: Final = 20  # lines of a table


def describe_apart(found: Apart, waits: Waits | None = None) -> RenderableType:
    """Return what a plan costs, which pairs share, and which operators wait."""
    plan, capacity = found.plan, found.problem.capacity or 0
    if not plan.has_offsets:
        proved = found.status is Status.INFEASIBLE
        text = f"no plan fits into {exact(capacity)}" if proved else "no plan was found"
        text = f"proved: {text}, at any cost" if proved else text
        together = f"; together do not fit: {listed(plan.conflict)}" if plan.conflict else ""
        return Text(text + together)
    proved = found.status is Status.OPTIMAL
    bound = "proved: no plan costs less" if proved else f"at least {found.bound:,}"
    peak = plan.peak or 0
    least = peak == found.peak_bound
    lower = "proved: none at this cost is lower"
    facts = [
        ("cost", f"{found.cost:,}; {bound}"),
        ("shared", f"{len(found.met):,} of {plural(len(found.penalties), 'pair')}"),
        ("peak", f"{exact(peak)}; {lower if least else f'at least {exact(found.peak_bound)}'}"),
        ("capacity", exact(capacity)),
        ("search", seconds(found.seconds)),
    ]
    if waits is not None:
        lost = plural(waits.lost, "pair")
        facts[2:2] = [
            ("waits", f"{len(waits.arcs):,}; {lost} of operators can no longer run at once"),
            ("longest chain", f"{plural(waits.chain, 'operator')} more"),
        ]
    parts: list[RenderableType] = [list_facts(facts)]
    if waits is not None and waits.arcs and waits.loaded.graph is not None:
        parts += [Text(), _list_waits(waits.loaded.graph, waits)]
    elif found.met:
        parts += [Text(), _list_pairs(found)]
    return Group(*parts)


def _list_pairs(found: Apart) -> RenderableType:
    """Return the dearest pairs that share."""
    table = make_table("share addresses", "cost")
    dearest = sorted(found.met, key=lambda pair: -found.penalties[pair])
    for pair in islice(dearest, _SHOWN):
        table.add_row(make_name(" and ".join(pair)), f"{found.penalties[pair]:,}")
    return _with_rest(table, len(dearest))


def _list_waits(graph: Graph, waits: Waits) -> RenderableType:
    table = make_table("waits", "for")
    for before, after in waits.arcs[:_SHOWN]:
        table.add_row(make_name(_name(graph, after)), make_name(_name(graph, before)))
    return _with_rest(table, len(waits.arcs))


def _with_rest(table: RenderableType, count: int) -> RenderableType:
    rest = Text(f"... and {count - _SHOWN:,} more") if count > _SHOWN else Text()
    return Group(table, rest) if count > _SHOWN else table


def _name(graph: Graph, index: int) -> str:
    operator = graph.operators[index]
    name = operator.name or f"{operator.type} number {index}"
    return f"{name} (stream {operator.stream})"
