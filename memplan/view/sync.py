"""What parallel streams cost, and what synchronisation would save, in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from memplan.analysis.sync import CostOfSafety, Suggestion
from memplan.graph import Graph
from memplan.view.units import exact, human, percent, plural

__all__ = ["cost_of_safety", "suggestions"]


def cost_of_safety(graph: Graph, cost: CostOfSafety) -> RenderableType:
    """Return what a program needs on one stream and on its own."""
    streams = len({operator.stream for operator in graph.operators})
    rows = (
        ("one stream, lower bound", cost.bound),
        ("one stream, planned", cost.one_stream),
        (f"{plural(streams, 'stream')}, planned", cost.streams),
    )
    table = _table("Cost of safety", "peak", "", "over one stream")
    for name, peak in rows:
        over = percent(peak - cost.one_stream, cost.one_stream) if peak > cost.one_stream else "-"
        table.add_row(name, f"{peak:,}", human(peak), over)
    return table


def suggestions(graph: Graph, found: Sequence[Suggestion]) -> RenderableType:
    """Return which operators should wait for which, what that saves and what it costs."""
    if not found:
        return Text("No synchronisation of two operators saves anything.")
    table = _table(
        "Synchronisation, each on top of those above",
        *("saves", "peak then", "fewer may overlap", "longest chain"),
    )
    for one in found:
        table.add_row(
            Text(f"{_name(graph, one.after)} waits for {_name(graph, one.before)}"),
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


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _name(graph: Graph, index: int) -> str:
    operator = graph.operators[index]
    name = operator.name or f"{operator.type} number {index}"
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    return f"{printable} (stream {operator.stream})"
