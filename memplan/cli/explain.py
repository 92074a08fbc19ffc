"""`memplan explain`: why it does not fit."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import options, output

NAME = "explain"


def command(
    input: options.Input,
    capacity: options.Capacity = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", min=1, help="Search nodes for each question; 1,000,000 if left out."
        ),
    ] = None,
    timeout: options.Timeout = None,
    threads: options.Threads = None,
    seed: options.Seed = 0,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    dim: options.Dim = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    in_place: options.InPlace = False,
    strict: options.Strict = False,
    top: options.Top = 10,
) -> None:
    """Say whether a problem fits into a capacity, and if not: by how much, when, whose fault.

    Exit 0 whenever there is an answer to print, also where the problem does not fit.
    """
    model = options.Model(dim, include, exclude, in_place, strict)
    problem = options.read_problem(input, capacity, reserve, pin, model)
    if problem.capacity is None:
        raise typer.BadParameter("the file has no capacity; give one", param_hint="'--capacity'")

    from memplan.explain import DEFAULT_NODES, explain
    from memplan.view.words import explanations

    limit = DEFAULT_NODES if nodes is None else nodes
    found = explain(problem, nodes=limit, timeout=timeout, threads=threads, seed=seed)
    output.console().print(explanations.explanation(problem, found, top))
