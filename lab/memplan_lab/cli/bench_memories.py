"""`memplan-lab bench-memories`: a fast and a slow memory, beside the rules of compilers."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.cli import output
from memplan_lab.cli.tables import show_table

NAME = "bench-memories"


def command(
    problems: Annotated[
        int,
        typer.Option("--problems", min=0, help="Problems of the corpus, beside five networks."),
    ] = 200,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="Partial choices of each search.")
    ] = None,
    worst: Annotated[
        int, typer.Option("--worst", min=0, help="Also print so many runs with the largest gap.")
    ] = 0,
    residency: Annotated[
        bool,
        typer.Option(
            "--residency",
            help="Only let buffers of five networks and five training steps leave the fast memory "
            "between their accesses.",
        ),
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Assign buffers to a fast and a slow memory, and do the same by the rules of compilers.

    The fast memory is 10, 25, 50 and 75 % as large as the load of networks, and 25, 50 and 75 % as
    large as that of problems of the corpus, whose accesses are drawn. Times are CPU times of one
    thread. All takes about ten minutes.
    """
    from memplan_lab.bench import memories
    from memplan_lab.bench import residency as moves

    if residency:
        output.refuse_given({"--worst": worst > 0}, "leave it out, or --residency")
        kinds = {"five networks": memories.NETWORKS, "five training steps": moves.STEPS}
        found = [moves.lines(name, [*moves.measure(each, nodes)]) for name, each in kinds.items()]
        show_table(moves.TITLE, moves.HEADINGS, found, markdown=markdown)
        return
    cases = [*memories.networks(), *(memories.corpus(problems) if problems else ())]
    rows = [memories.measure(case, share, nodes) for case in cases for share in case.shares]
    for row in sorted(rows, key=lambda row: -row.gap)[:worst]:
        gap = f"{100 * row.gap:.3f} % in {row.seconds:.2f} s"
        output.line(f"{row.case.name}, {row.share} %: {gap}")
    lines = memories.summarise(rows)
    show_table(memories.TITLE, memories.HEADINGS, lines, markdown=markdown)
