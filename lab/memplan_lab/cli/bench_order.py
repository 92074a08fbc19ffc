"""`memplan-lab bench-order`: the least peak over all orders, with proof, beside other orders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated

import typer

from memplan.base.errors import MemplanError, quoted
from memplan.cli import output
from memplan_lab.cli.tables import show_table

NAME = "bench-order"


def command(
    graph: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GRAPH...", help="Names, with * for any letters; default: the whole suite."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FOLDER", help="JSON files of Moccasin, which come last."),
    ] = None,
    largest: Annotated[
        int | None,
        typer.Option("--largest", min=1, help="The maximum number of operators of a graph."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="The maximum number of graphs.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.0, help="Seconds for each search.")
    ] = None,
    states: Annotated[
        int | None, typer.Option("--states", min=1, help="States of each search.")
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            help="lpmf, bfs or dfs of PyTorch; xla, onnxruntime, tflite-tools; cp-sat for graphs "
            "of up to 60 operators. May be repeated.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="RULE", help="Also search without this rule; `all`: each of them."
        ),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Print a line for each graph.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each graph.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Find the best orders of the graphs of the suite `orders`, one thread each.

    CPU time is that of the search. Peers see the same columns; their peaks are multiples of the
    best one.
    """
    from memplan_lab.bench import orders
    from memplan_lab.bench.orders import tables as lines

    rules = list(orders.RULES) if without == ["all"] else without or []
    chosen = (
        case
        for case in orders.cases(data)
        if (graph is None or any(fnmatchcase(case.name, each) for each in graph))
        and (largest is None or len(case.problem) <= largest)
    )
    rows = []
    for row in orders.measure(
        islice(chosen, limit),
        seconds=timeout,
        states=states,
        peers=peer or [],
        without=rules,
    ):
        rows.append(row)
        if as_json:
            output.line(json.dumps({**asdict(row), "proved": row.proved}))
    if not rows:
        raise MemplanError(f"the suite has no graph {' or '.join(map(quoted, graph or ['']))}")
    if as_json:
        return
    whole = [row for row in rows if not row.without]
    parts: list[tuple[str, tuple[str, ...], Iterator[tuple[str, ...]]]]
    parts = [("Orders", lines.SUMMARY_HEADINGS, lines.summary(whole))]
    if details:
        parts.insert(0, ("Graphs", lines.graph_headings(whole), lines.graphs(whole)))
    if peer:
        parts.append(("Orders of others", lines.PEER_HEADINGS, lines.peers(whole)))
    if rules:
        parts.append(("Rules", lines.RULE_HEADINGS, lines.rules(rows)))
    for title, headings, made in parts:
        show_table(title, headings, made, markdown=markdown)
