"""`memplan-lab claims`: what memplan claims of random questions, against brute force."""

from __future__ import annotations

from typing import Annotated

import typer

from memplan.base.errors import MemplanError, listed
from memplan.cli import output

NAME = "claims"
EXAMPLES = (
    "memplan-lab claims --count 1000",
    "memplan-lab claims --kind assign --kind residency --seed 5000",
)

_WRONG = 1


def command(
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="A kind of question; by default all. May be repeated."),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, help="Questions of each kind that are answered.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first question.")] = 0,
) -> None:
    """Ask small random questions of every kind, and try all answers, by code of its own.

    Plans have to be legal, and no bound, `optimal`, `infeasible` or printed sentence may be untrue.
    Exit code 1 if one is. What is left open is no claim, and is counted.
    """
    from memplan_lab.claims import KINDS, ask_many

    for each in kind or ():
        if each not in KINDS:
            raise MemplanError(f"no kind of question is {each!r}; there are {listed([*KINDS])}")
    rows = []
    for each in kind or KINDS:
        *_, found = ask_many(each, seed, count)
        for claim in found.wrong:
            output.line(f"false: {claim}")
        output.line(
            f"{each}: {found.asked:,} asked, {found.asked - found.open:,} proved, "
            f"{len(found.wrong):,} false, {found.seconds:.1f} s"
        )
        rows.append(found)
    wrong = sum(len(found.wrong) for found in rows)
    asked = sum(found.asked for found in rows)
    output.line(f"in all: {asked:,} asked, {wrong:,} false")
    if wrong:
        raise typer.Exit(_WRONG)
