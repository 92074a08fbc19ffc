"""`memplan inspect`: what a problem asks."""

from __future__ import annotations

from memplan.cli import options, output

NAME = "inspect"


def command(
    input: options.Input,
    capacity: options.Capacity = None,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    top: options.Top = 10,
) -> None:
    """Show the load of a problem, when it is greatest and which buffers make it."""
    problem = options.read_problem(input, capacity, reserve, pin)

    from memplan import solvers
    from memplan.view import text

    bound = solvers.bound(problem)
    rule = "the max load" if bound.bytes == problem.max_load else f"the rule: {bound.rule}"
    output.console().print(text.inspection(problem, bound.bytes, rule, top))
