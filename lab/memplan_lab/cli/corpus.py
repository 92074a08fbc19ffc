"""`memplan-lab corpus build`: problems of real networks as one file."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import output
from memplan_lab.cli import corpus_best

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memplan_lab.corpus import Built

NAME = "corpus"
app = typer.Typer(help="Build the corpus of problems for benchmarks and studies.")
app.add_typer(corpus_best.app, name=corpus_best.NAME)

_CLEAR = "\r\x1b[K"


@app.command()
def build(
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The corpus, as Parquet.")
    ] = "corpus.parquet",
    family: Annotated[
        list[str] | None,
        typer.Option("--family", help="A family of networks; default: all. May be repeated."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="The maximum number of recipes, spread evenly."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="The number of processes.")] = 1,
) -> None:
    """Build problems of real networks from their shapes alone; nothing is downloaded.

    The same versions of the libraries build the same file. Recipes that a library cannot build are
    listed and left out. Needs the extra `corpus`.
    """
    output.check_output(out)

    from memplan_lab import corpus

    built = corpus.build(family, limit, workers, on_made=_tell if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
    checksum = corpus.write(built, out)
    output.console().print(_table(built))
    for failure in built.failures:
        output.message(f"left out: {failure.name}: {failure.reason}")
    for name, same in built.duplicates.items():
        output.message(f"left out: {name} is the same problem as {same}")
    output.line(f"{out}: {len(built.records):,} problems, {checksum}")


@app.command()
def orders(
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The graphs, as Parquet.")
    ] = "orders.parquet",
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="The maximum number of recipes, spread evenly."),
    ] = None,
) -> None:
    """Record the operators of real networks and what each waits for, for the suite `orders`.

    The same versions of the libraries record the same file; it takes minutes. Needs the extra
    `corpus`.
    """
    output.check_output(out)

    from memplan_lab.bench.orders import write
    from memplan_lab.corpus.building import origin
    from memplan_lab.corpus.orders import record_all

    made, failures = record_all(limit, _tell if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
    write(made, out, origin())
    for failure in failures:
        output.message(f"left out: {failure.name}: {failure.reason}")
    output.line(f"{out}: {len(made):,} graphs")


def _tell(done: int, count: int, name: str) -> None:
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write(_CLEAR + f"{done:,} of {count:,}  {name}"[:width])
    sys.stderr.flush()


def _table(built: Built) -> RenderableType:
    """Return by family how many problems there are, of what sizes, and with a proved peak."""
    from statistics import median

    from memplan_lab.bench.tables import Shown

    rows = []
    for family in dict.fromkeys(record.family for record in built.records):
        own = [record for record in built.records if record.family == family]
        sizes = [len(record.problem) for record in own]
        rows.append(
            (
                family,
                f"{len(own):,}",
                f"{min(sizes):,}",
                f"{median(sizes):,.0f}",
                f"{max(sizes):,}",
                f"{sum(record.best_proved for record in own):,}",
            )
        )
    headings = ("family", "problems", "min n", "median n", "max n", "proved")
    return Shown("corpus", headings, rows).terminal()
