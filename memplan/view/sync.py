"""What parallel streams cost, and what synchronisation would save, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from memplan.programs.graph import Graph
from memplan.view.units import exact, human, percent, plural
from memplan.view.words.parts import make_name, unit_of
from memplan.view.words.tables import Column, FittedTable

if TYPE_CHECKING:
    from memplan.analysis.sync import CostOfSafety, Suggestion

__all__ = ["cost_of_safety", "suggestions"]


def cost_of_safety(graph: Graph, cost: CostOfSafety) -> RenderableType:
    """Return what a program needs on one stream and on its own."""
    streams = len({operator.stream for operator in graph.operators})
    rows = (
        ("one stream, lower bound", cost.bound),
        ("one stream, planned", cost.one_stream),
        (f"{plural(streams, 'stream')}, planned", cost.streams),
    )
    columns = [Column("peak", 3), Column("", 1), Column("over one stream", 2)]
    table = FittedTable([Column("Cost of safety"), *columns])
    for name, peak in rows:
        over = percent(peak - cost.one_stream, cost.one_stream) if peak > cost.one_stream else "-"
        table.add_row(name, f"{peak:,}", unit_of(peak), over)
    return table


def suggestions(graph: Graph, found: Sequence[Suggestion]) -> RenderableType:
    """Return which operators should wait for which, what that saves and what it costs."""
    if not found:
        return Text("No synchronisation of two operators saves anything.")
    names = ("saves", "peak then", "fewer may overlap", "longest chain")
    columns = [Column(name, -number) for number, name in enumerate(names)]
    table = FittedTable([Column("Synchronisation, cumulative", least=24), *columns])
    for one in found:
        table.add_row(
            make_name(f"{_name(graph, one.after)} waits for {_name(graph, one.before)}"),
            human(one.saves),
            human(one.peak),
            plural(one.freedom, "pair"),
            f"+{one.chain:,}",
        )
    saved = sum(one.saves for one in found)
    closing = (
        f"Together they save {exact(saved)}. Pairs are of operators that could run at the same "
        "time, and then cannot; the chain is counted in operators."
    )
    return Group(table, Text(closing))


def _name(graph: Graph, index: int) -> str:
    operator = graph.operators[index]
    name = operator.name or f"{operator.type} number {index}"
    return f"{name} (stream {operator.stream})"
