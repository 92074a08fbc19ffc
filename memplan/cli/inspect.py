"""`memplan inspect`: what a problem asks."""

from __future__ import annotations

from memplan.cli import options, output

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
) -> None:
    """Show the load of a problem, when it is greatest and which buffers make it."""
    model = options.Model(dim, include, exclude, in_place)
    loaded = options.read_input(input, capacity, reserve, pin, model)
    problem = loaded.problem

    from memplan import solvers
    from memplan.view import text

    bound = solvers.bound(problem)
    rule = "the max load" if bound.bytes == problem.max_load else f"the rule: {bound.rule}"
    console = output.console()
    console.print(text.inspection(problem, bound.bytes, rule, top, loaded, loaded.figures))
    if loaded.notes:
        console.print(text.notes(loaded))
