"""`memplan-lab learn`: samples of backtracking, a model made of them, and what it is worth."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output

if TYPE_CHECKING:
    from memplan_lab.learn import Instance, Row
    from memplan_lab.learn.collecting import Searched

NAME = "learn"
app = typer.Typer(help="Learn where the search of telamalloc should go back to.")

# Problems are generated from these seeds. A model must not have seen those that it is judged on.
_TRAINING_SEEDS = "1000:1040"
_OTHER_SEEDS = "100:105"

Family = Annotated[
    list[str] | None,
    typer.Option("--family", help="Generated problems; all families if left out. May be repeated."),
]
Data = Annotated[
    list[Path] | None,
    typer.Option("--data", help="A file or folder of problems or models, too. May be repeated."),
]
Seeds = Annotated[
    str, typer.Option("--seeds", metavar="FIRST:END", help="Of the generated problems.")
]
Sizes = Annotated[
    str | None,
    typer.Option("--sizes", metavar="N,N,...", help="Numbers of buffers, where generated."),
]
Steps = Annotated[
    int, typer.Option("--steps", min=1, help="Limit of each search, in placements tried.")
]


@app.command()
def collect(
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The samples, as .npz.")
    ],
    family: Family = None,
    data: Data = None,
    seeds: Seeds = _TRAINING_SEEDS,
    sizes: Sizes = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Searches of each problem.")] = 2,
    steps: Steps = 20_000,
    oracle_nodes: Annotated[
        int, typer.Option("--oracle-nodes", min=1, help="Limit of a question to the exact search.")
    ] = 2_000,
    seed: options.Seed = 0,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Search with it, in place of the rule."),
    ] = None,
) -> None:
    """Search problems of known capacity, and write down where a perfect search would go back to."""
    output.check_output(out)

    from memplan.solvers import backtracking
    from memplan_lab import learn

    samples = learn.collect(
        _instances(family, data, seeds, sizes, small=True),
        runs=runs,
        steps=steps,
        oracle_nodes=oracle_nodes,
        seed=seed,
        model=None if model is None else backtracking.read(model),
        about=_about(family, data, seeds, sizes),
        on_search=_tell if sys.stderr.isatty() else None,
    )
    samples.save(out)
    output.line(f"{len(samples):,} targets of {len(samples.length):,} major backtracks")


@app.command()
def train(
    samples: Annotated[
        list[str], typer.Argument(metavar="SAMPLES...", help="From `memplan-lab learn collect`.")
    ],
    out: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The model, as JSON.")],
    trees: Annotated[int, typer.Option("--trees", min=1)] = 100,
    seed: options.Seed = 0,
) -> None:
    """Train a model on samples. Needs the extra `learn`."""
    output.check_output(out, *samples)

    from memplan.formats import write_text
    from memplan_lab import learn

    model = learn.train(learn.join([learn.load(each) for each in samples]), trees=trees, seed=seed)
    write_text(out, model.text())
    output.line(f"{trees:,} trees of {len(model.columns['feature']):,} nodes")


@app.command()
def evaluate(
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="In place of the one that is shipped."),
    ] = None,
    family: Family = None,
    data: Data = None,
    seeds: Seeds = _OTHER_SEEDS,
    sizes: Sizes = None,
    steps: Steps = 500_000,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs of each, for times.")] = 1,
    hard: Annotated[
        int, typer.Option("--hard", min=0, help="Backtracks that make a problem a hard one.")
    ] = 1_000,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="All rows, as CSV.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Search problems without and with a model, and compare backtracks and solved problems."""
    output.check_output(out)

    from memplan.solvers import backtracking
    from memplan_lab import learn
    from memplan_lab.learn import merit

    rows = learn.evaluate(
        _instances(family, data, seeds, sizes, small=False),
        backtracking.read(model or backtracking.SHIPPED),
        steps=steps,
        repeat=repeat,
        on_row=_show if sys.stderr.isatty() else None,
    )
    if out is not None:
        merit.write(rows, out)
    if markdown:
        output.line(merit.markdown(rows, hard).rstrip())
    else:
        output.console().print(merit.table(rows, hard))


def _instances(
    families: Sequence[str] | None,
    data: Sequence[Path] | None,
    seeds: str,
    sizes: str | None,
    *,
    small: bool,
) -> Iterator[Instance]:
    from memplan_lab import learn

    counts = None if sizes is None else options.parse_counts(sizes, "--sizes")
    chosen = families if families or data else list(learn.FAMILIES)
    generated = (
        learn.of_seeds(family, _range(seeds), counts, small=small) for family in chosen or ()
    )
    return chain(*generated, *map(learn.of_files, data or ()))


def _about(
    families: Sequence[str] | None, data: Sequence[Path] | None, seeds: str, sizes: str | None
) -> dict[str, object]:
    """Return what a recipe says of instances; files without folders, which differ elsewhere."""
    from memplan_lab import learn

    chosen = families if families or data else list(learn.FAMILIES)
    about: dict[str, object] = {"families": chosen or [], "seeds": seeds}
    if sizes is not None:
        about["sizes"] = sizes
    if data:
        about["data"] = [path.name for path in data]
    return about


def _range(text: str) -> range:
    first, _, end = text.partition(":")
    if not (first.isascii() and first.isdecimal() and end.isascii() and end.isdecimal()):
        raise typer.BadParameter(f"{text!r} is not FIRST:END", param_hint="'--seeds'")
    seeds = range(int(first), int(end))
    if not seeds:
        raise typer.BadParameter(f"{text!r} has no seed in it", param_hint="'--seeds'")
    return seeds


def _tell(search: Searched) -> None:
    solved = "solved" if search.solved else "not solved"
    output.message(f"{search.instance}: {solved}, {search.impasses:,} backtracks with a label")


def _show(row: Row) -> None:
    output.message(
        f"{row.instance}: {row.plain.backtracks:,} backtracks, "
        f"with the model {row.learned.backtracks:,}"
    )
