"""`memplan-lab trace`: MiniMalloc's search of a small problem, as counts and as a picture."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from memplan.cli import options, output, reading
from memplan_lab.study.search_tree import Rule

NAME = "trace"


def command(
    input: options.Input,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Draw the tree of partial solutions: .svg, .pdf or .png (extra `plot`).",
        ),
    ] = None,
    lattice: Annotated[
        bool,
        typer.Option("--lattice", help="Draw partial solutions with the same placements as one."),
    ] = False,
    first: Annotated[
        bool, typer.Option("--first", help="Stop at the first solution, as the solver does.")
    ] = False,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="PLAN",
            help="Show only the orders of placing that give the offsets of this plan.",
        ),
    ] = None,
    capacity: options.Capacity = None,
    without: Annotated[
        list[Rule] | None,
        typer.Option("--without", help="Leave out a rule that prunes. May be repeated."),
    ] = None,
) -> None:
    """Show MiniMalloc's search of a problem with at most eight buffers, node by node.

    The capacity is that of the problem or, if it has none, the least peak. All solutions within
    the capacity are found, unless --first or --plan is given.
    """
    from memplan import verify
    from memplan.problem import formats
    from memplan.view import picture
    from memplan_lab.study import search_figure, search_tree

    if figure is not None:
        picture.format_of(figure)
        picture.check_installed()
        output.check_output(figure, input)
    elif lattice:
        raise typer.BadParameter("name a file with --figure", param_hint="'--lattice'")
    if without and Rule.CAPACITY in without:
        raise typer.BadParameter("raise --capacity instead of this", param_hint="'--without'")
    problem = reading.read_input(input, constraints=options.Constraints(capacity)).problem
    limit = problem.capacity
    if limit is None:
        limit = search_tree.find_least_peak(problem)
    rules = [rule for rule in Rule if rule not in (without or ())]
    offsets = None
    if plan is not None:
        wanted = formats.load_plan(plan)
        verify(problem, wanted)
        offsets = [wanted.offset(id) for id in problem.ids]
    root = search_tree.explore(problem, limit, rules, first=first, offsets=offsets)
    nodes = list(root.walk())
    if figure is not None:
        drawn = search_figure.draw(root, problem, lattice=lattice)
        picture.write(drawn, figure, dpi=150)
    pruned = Counter(node.pruned_by for node in nodes if node.pruned_by is not None)
    solutions = len(search_tree.find_solutions(root, problem))
    output.line(f"capacity: {limit:,} bytes")
    output.line(f"partial solutions: {len(nodes):,}")
    output.line(f"solutions: {solutions:,}")
    for rule in Rule:
        if pruned[rule]:
            output.line(f"pruned by {rule}: {pruned[rule]:,}")
