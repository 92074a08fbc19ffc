"""Orders of operators in a terminal: what they need, which operators move, and what is proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.levers.rewrite.moves import Cut, Move, Moves, cut_of, explain_moves
from memplan.problem.plan import Status
from memplan.programs.sources.loaded import Beside
from memplan.view.units import exact, percent, plural, seconds
from memplan.view.words.parts import (
    GOOD,
    MOST_ROWS,
    OPEN,
    Fact,
    escape_sentence,
    list_beside,
    list_facts,
    make_name,
    make_sentence,
    make_table,
    quote_name,
    unit_of,
)
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.levers.rewrite import Reordered

__all__ = ["describe_order", "judge_order"]


def describe_order(
    found: Reordered, most: int = MOST_ROWS, beside: Beside | None = None
) -> RenderableType:
    """Return loads and bounds, the operators that move, and what every order needs.

    At most `most` operators, and as many storages, are named. `beside` is what the runtime needs of
    its arena beside the plan, whatever the order.
    """
    facts: list[Fact] = [
        ("operators", f"{len(found.order):,}"),
        ("load, given order", exact(found.given_peak)),
        ("load, best order", f"{exact(found.peak)}{_saving(found)}"),
        ("bound, any order", exact(found.bound)),
        *list_beside(beside),
        ("status", _status(found)),
    ]
    if found.status is not Status.OPTIMAL:
        facts.append(("gap", f"{found.peak / found.bound - 1:.2%}" if found.bound else "-"))
    facts.append(("search", f"{plural(found.states, 'state')}, {seconds(found.seconds)}"))
    parts: list[RenderableType] = [list_facts(facts)]
    moves, cut = explain_moves(found), cut_of(found)
    if moves is not None:
        parts += [Text(), _describe_moves(moves, most)]
    if cut is not None:
        parts += [Text(), _describe_cut(found, cut, most)]
    return Group(*parts)


def judge_order(found: Reordered | str, most: int = MOST_ROWS) -> RenderableType:
    """Return what another order would be worth, or why the operators keep theirs."""
    if isinstance(found, str):
        return Text(f"Other orders were not tried: {escape_sentence(found)}")
    if found.peak < found.given_peak:
        less = exact(found.given_peak - found.peak)
        answer = Text(f"Another order needs {less} less: see `--levers order`.", style=OPEN)
    elif found.status is Status.OPTIMAL:
        answer = Text("The order of the file is a best one: proved.", style=GOOD)
    else:
        bound = exact(found.bound)
        answer = Text(f"No better order was found; every order needs at least {bound}.", style=OPEN)
    cut = cut_of(found)
    return answer if cut is None else Group(answer, _describe_cut(found, cut, most))


def _saving(found: Reordered) -> str:
    less = found.given_peak - found.peak
    return f", {percent(less, found.given_peak)} less" if less else ""


def _status(found: Reordered) -> Text:
    if found.status is Status.OPTIMAL:
        return Text("optimal: no order has a smaller load", style=GOOD)
    begun = "interrupted: " if found.interrupted else ""
    return Text(f"{begun}feasible: a better order is not ruled out", style=OPEN)


def _describe_moves(found: Moves, most: int) -> RenderableType:
    moved = plural(len(found.moves), "operator")
    verb = "moves" if len(found.moves) == 1 else "move"
    name = quote_name(found.operator)
    columns = [Column("from", 5), Column("to", 6), Column("bytes", 4), Column("", 1)]
    made = FittedTable([Column("operator"), *columns, Column("", 3, left=True, least=24)])
    for move in found.moves[:most]:
        amounts = (f"{move.bytes:,}", unit_of(move.bytes)) if move.storages else ("-", "")
        reason = make_sentence(_explain(move))
        made.add_row(make_name(move.operator), f"{move.old}", f"{move.new}", *amounts, reason)
    if len(found.moves) > most:
        made.add_row(f"{len(found.moves) - most:,} more")
    return Group(
        Text(f"{moved} {verb}", style="bold"),
        Text(
            f"The given order has its peak while {name} runs; {exact(found.old)} are live then, "
            f"and {exact(found.new)} in the best order."
        ),
        made,
    )


def _explain(move: Move) -> str:
    if not move.storages:
        return "changes nothing at that peak"
    names = ", ".join(quote_name(each) for each in move.storages[:2])
    more = f" and {len(move.storages) - 2:,} more" if len(move.storages) > 2 else ""
    one = len(move.storages) == 1
    if move.earlier:
        return f"{names}{more} {'is' if one else 'are'} no longer needed then"
    return f"{names}{more} {'is' if one else 'are'} not made yet then"


def _describe_cut(found: Reordered, cut: Cut, most: int) -> RenderableType:
    live = plural(len(cut.storages), "buffer")
    at_least = "these are" if len(cut.storages) != 1 else "this is"
    text = (
        f"Whatever the order, at least {exact(found.bound)} are needed while "
        f"{quote_name(cut.operator)} runs; in the cheapest case {at_least} live, {live}:"
    )
    made = make_table("buffer", "bytes", "")
    for name, size in cut.storages[:most]:
        made.add_row(make_name(name), f"{size:,}", unit_of(size))
    rest = cut.storages[most:]
    if rest:
        size = sum(each for _, each in rest)
        made.add_row(f"{len(rest):,} smaller", f"{size:,}", unit_of(size))
    if cut.workspace:
        made.add_row("its workspace", f"{cut.workspace:,}", unit_of(cut.workspace))
    return Group(Text(text), made)
