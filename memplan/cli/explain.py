"""`memplan explain`: why it does not fit."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan.analysis.explain import Explanation
    from memplan.problem import Problem

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
    limit_factor: options.LimitFactor = 1,
    top: options.Top = 10,
) -> None:
    """Show whether a problem fits; if not, how many bytes are missing, when, and why.

    Exit 0 whenever there is an answer to print, also where the problem does not fit.
    """
    model = options.Model(dim, include, exclude, in_place, strict, limit_factor=limit_factor)
    loaded = options.read_input(input, capacity, reserve, pin, model)
    if loaded.problem.capacity is None:
        raise typer.BadParameter("the file has no capacity; give one", param_hint="'--capacity'")

    from memplan.analysis.explain import DEFAULT_NODES, explain
    from memplan.planning import layouts
    from memplan.view.words import explanations

    best: tuple[Explanation, Problem] | None = None
    possible, begun = layouts(loaded, in_place=in_place), time.perf_counter()
    for place, layout in enumerate(possible):
        left = None
        if timeout is not None:
            elapsed = time.perf_counter() - begun
            left = max(0.0, timeout - elapsed) / (len(possible) - place)
        found = explain(
            layout,
            nodes=DEFAULT_NODES if nodes is None else nodes,
            timeout=left,
            threads=threads,
            seed=seed,
        )
        if best is None or _rank_layout(found) > _rank_layout(best[0]):
            best = found, layout.problem
        if found.fits:
            break
    assert best is not None  # there is at least one layout
    output.console().print(explanations.explanation(best[1], best[0], top))


def _rank_layout(found: Explanation) -> tuple[int, float]:
    """Return a key for layouts of one model: the greatest one fits, or is the nearest to it."""
    required = math.inf if found.required is None else found.required
    return {True: 2, None: 1, False: 0}[found.fits], -required
