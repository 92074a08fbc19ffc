"""`memplan inspect`: what a problem asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from rich.console import Console

    from memplan.sources import Loaded

NAME = "inspect"


def command(
    input: options.Input,
    capacity: options.Capacity = None,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    dim: options.Dim = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    in_place: options.InPlace = False,
    top: options.Top = 10,
    why: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--why",
            metavar="A B",
            help="Only say why these two tensors of a program may share memory, or may not.",
        ),
    ] = None,
    suggest_sync: Annotated[
        bool,
        typer.Option(
            "--suggest-sync",
            help="Also say which waiting between streams of a program would save most memory.",
        ),
    ] = False,
) -> None:
    """Show the load of a problem, when it is greatest and which buffers make it."""
    model = options.Model(dim, include, exclude, in_place)
    loaded = options.read_input(input, capacity, reserve, pin, model)
    if why is not None:
        output.line(_why(loaded, *why))
        return
    problem = loaded.problem

    from memplan import solvers
    from memplan.view import text

    bound = solvers.bound(problem)
    rule = "the max load" if bound.bytes == problem.max_load else f"the rule: {bound.rule}"
    console = output.console()
    console.print(text.inspection(problem, bound.bytes, rule, top, loaded, loaded.figures))
    _print_streams(loaded, console, suggest_sync, in_place)
    if loaded.notes:
        console.print(text.notes(loaded))


def _print_streams(loaded: Loaded, console: Console, suggest: bool, in_place: bool) -> None:
    """Show what the streams of a program cost, and what would make it less."""
    from memplan.errors import MemplanError

    graph, layout = loaded.graph, loaded.layout
    if graph is None or layout is None:
        if suggest:
            raise MemplanError(
                f"a {loaded.source} file does not tell operators: --suggest-sync is for programs"
            )
        return
    if len({operator.stream for operator in graph.operators}) < 2:
        if suggest:
            raise MemplanError("the program has one stream only; there is nothing to synchronise")
        return

    from memplan import sync
    from memplan.view import sync as view

    console.print()
    console.print(view.cost_of_safety(graph, sync.cost_of_safety(layout)))
    if suggest:
        console.print()
        found = sync.suggest_sync(graph, in_place=in_place)
        console.print(view.suggestions(graph, found))


def _why(loaded: Loaded, a: str, b: str) -> str:
    from memplan.errors import MemplanError
    from memplan.graph import why

    if loaded.layout is None:
        raise MemplanError(f"a {loaded.source} file does not tell operators: --why is for programs")
    return str(why(loaded.layout, a, b))
