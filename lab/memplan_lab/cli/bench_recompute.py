"""`memplan-lab bench-recompute`: what re-runs cost, with a proof, beside the planners of others."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from memplan.base.errors import MemplanError, quoted
from memplan.cli import options, output
from memplan_lab.cli.tables import show_table

NAME = "bench-recompute"


def command(
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM...",
            help="Names, with * for any letters; default: the whole suite. Traced steps of "
            "PyTorch (step-*) only run if they are named.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="FOLDER",
            help="JSON files of Moccasin and Checkmate, which come first.",
        ),
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(
            "--share",
            parser=options.parse_share,
            metavar="SHARE",
            help="Capacity, as a share of what the program needs without re-runs; default: 90%, "
            "80% ... 30%. May be repeated.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0.0,
            help="Seconds for our search of an order, and of re-runs; default: 4, if there is no "
            "limit on states.",
        ),
    ] = None,
    states: Annotated[
        int | None, typer.Option("--states", min=1, help="States of each of our searches.")
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            help="every-kth (Chen), cp-sat (Moccasin), ilp (Checkmate, up to 100 operators). "
            "May be repeated.",
        ),
    ] = None,
    limit: Annotated[
        float, typer.Option("--limit", min=0.0, help="CPU seconds of a peer, for each capacity.")
    ] = 600.0,
    training: Annotated[
        bool,
        typer.Option(
            "--training",
            help="Run training steps of PyTorch instead, beside its own means to save memory: "
            "resnet18, resnet50, bert, gpt. One thread.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each capacity.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Run operators again so that programs fit, with a bound for every order; compare with peers.

    Costs are in per cent of running every operator once, and times are CPU times. Peers start from
    the order from which our search starts. A * says that a peer has proved its answer.
    """
    from memplan_lab.bench import again
    from memplan_lab.bench.again import tables as texts

    if training:
        _train(program, share, seconds=timeout, states=states, as_json=as_json, markdown=markdown)
        return
    rows = []
    for row in again.measure(
        again.cases(program, data),
        shares=share or again.SHARES,
        seconds=4.0 if timeout is None and states is None else timeout,
        states=states,
        peers=peer or [],
        limit=limit,
    ):
        rows.append(row)
        if as_json:
            output.line(json.dumps({**asdict(row), "gains_nothing": row.gains_nothing}))
    if not rows:
        raise MemplanError(f"the suite has no program {' or '.join(map(quoted, program or ['']))}")
    if as_json:
        return
    show_table("Re-runs", texts.headings(rows), texts.lines(rows), markdown=markdown)
    show_table("All", texts.SUMMARY_HEADINGS, texts.summary(rows), markdown=markdown)


def _train(
    names: list[str] | None,
    shares: list[float] | None,
    *,
    seconds: float | None,
    states: int | None,
    as_json: bool,
    markdown: bool,
) -> None:
    """Measure training steps, and print them."""
    from memplan_lab.bench.again import steps

    for name in names or ():
        if name not in steps.STEPS:
            known = ", ".join(steps.STEPS)
            raise MemplanError(f"there is no training step {quoted(name)}; there are {known}")
    rows = []
    for name in names or steps.STEPS:
        for row in steps.measure(name, shares or steps.SHARES, seconds=seconds, states=states):
            rows.append(row)
            if as_json:
                output.line(json.dumps(asdict(row)))
    if not as_json:
        show_table("Training steps", steps.HEADINGS, steps.lines(rows), markdown=markdown)
