"""The command line of the laboratory: `memplan-lab bench`, `sweep`, `report`, `corpus`, ..."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from memplan.cli import running
from memplan_lab.cli import bench, claims, corpus, learn, report, sweep, trace

__all__ = ["app", "main"]

app = typer.Typer(
    name="memplan-lab",
    cls=running.Group,
    help="Measure and compare memory planners, and report the results.",
    epilog="Exit codes: 0 done, 1 a best known peak or a claim is wrong, 2 bad input.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
running.add_root(app)
for module in (bench, claims, sweep, report, trace):
    running.add_command(app, module)
app.add_typer(learn.app, name=learn.NAME)
app.add_typer(corpus.app, name=corpus.NAME)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    return running.run(app, "memplan-lab", arguments)
