"""`memplan-lab learn`: samples of backtracking, a model trained on them, and its evaluation."""

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
app = typer.Typer(help="Learn where the search of telamalloc should backtrack to.")

# The seeds of generated problems. A model must not be evaluated on problems that trained it.
_TRAINING_SEEDS = "1000:1040"
_OTHER_SEEDS = "100:105"

Family = Annotated[
    list[str] | None,
    typer.Option("--family", help="A family of generated problems; default: all. May be repeated."),
]
Data = Annotated[
    list[Path] | None,
    typer.Option("--data", help="A file or folder of more problems or models. May be repeated."),
]
Seeds = Annotated[
    str, typer.Option("--seeds", metavar="FIRST:END", help="Seeds of the generated problems.")
]
Sizes = Annotated[
    str | None,
    typer.Option("--sizes", metavar="N,N,...", help="Numbers of buffers of generated problems."),
]
Steps = Annotated[
    int, typer.Option("--steps", min=1, help="Limit of each search, in placement attempts.")
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
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="The number of searches of each problem.")
    ] = 2,
    steps: Steps = 20_000,
    oracle_nodes: Annotated[
        int,
        typer.Option("--oracle-nodes", min=1, help="Node limit of each call of the exact search."),
    ] = 2_000,
    seed: options.Seed = 0,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="MODEL", help="Search with this model instead of the rule."
        ),
    ] = None,
) -> None:
    """Search problems of known capacity; record where a perfect search would backtrack to."""
    output.check_output(out)

    from memplan.extensions.published import backtracking
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
    trees: Annotated[int, typer.Option("--trees", min=1, help="The number of trees.")] = 100,
    seed: options.Seed = 0,
) -> None:
    """Train a model on samples. Needs the extra `learn`."""
    output.check_output(out, *samples)

    from memplan.problem.formats import write_text
    from memplan_lab import learn

    model = learn.train(learn.join([learn.load(each) for each in samples]), trees=trees, seed=seed)
    write_text(out, model.text())
    output.line(f"{trees:,} trees of {len(model.columns['feature']):,} nodes")


@app.command()
def evaluate(
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="MODEL", help="A model, as published, in place of learned=on."
        ),
    ] = None,
    family: Family = None,
    data: Data = None,
    corpus: Annotated[
        str | None,
        typer.Option("--corpus", help="The problems of a half of the networks: first or second."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Draw so many problems of the corpus.")
    ] = None,
    seeds: Seeds = _OTHER_SEEDS,
    sizes: Sizes = None,
    steps: Steps = 500_000,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Runs of each problem, for the times.")
    ] = 1,
    hard: Annotated[
        int, typer.Option("--hard", min=0, help="A problem with more backtracks is hard.")
    ] = 1_000,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="All rows, as CSV.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Search problems with and without learning; compare solved ones, backtracks and times."""
    output.check_output(out)

    from memplan.extensions.published import backtracking
    from memplan_lab import learn
    from memplan_lab.learn import merit

    instances: Iterator[Instance]
    if corpus is None:
        instances = _instances(family, data, seeds, sizes, small=False)
    else:
        instances = learn.of_corpus(corpus, sample)
    rows = learn.evaluate(
        instances,
        True if model is None else backtracking.read(model),
        steps=steps,
        repeat=repeat,
        on_row=_show if sys.stderr.isatty() else None,
    )
    if out is not None:
        merit.write(rows, out)
    if markdown:
        output.line(merit.table(rows, hard).markdown().rstrip())
    else:
        output.console().print(merit.table(rows, hard).terminal())


@app.command()
def figures(
    problem: Annotated[
        Path, typer.Argument(metavar="PROBLEM", help="A problem or model, for figure 15.")
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the charts go.")
    ],
    percent: Annotated[
        int, typer.Option("--percent", min=1, help="Its capacity, of the least known one.")
    ] = 102,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="A model other than the shipped one."),
    ] = None,
    samples: Annotated[
        str | None,
        typer.Option(
            "--samples", metavar="SAMPLES", help="For figure 17; default: a few are collected."
        ),
    ] = None,
    steps: Steps = 20_000,
) -> None:
    """Draw figures 15 to 17 of TelaMalloc; `report` reads the figures.json beside them.

    Needs the extra `plot` of memplan.
    """
    from memplan.extensions.published import backtracking
    from memplan.view import picture
    from memplan_lab import learn
    from memplan_lab.learn import figures as drawing

    picture.check_installed()
    forest = backtracking.read(model or backtracking.SHIPPED)
    given = next(learn.of_files(problem, [percent])).make()
    seen = (
        learn.load(samples)
        if samples is not None
        else learn.collect(learn.of_seeds("synthetic", range(1000, 1004), small=True), runs=1)
    )
    found = drawing.measure(problem.name, given, forest, seen, steps=steps)
    out.mkdir(parents=True, exist_ok=True)
    drawing.write(found, str(out / "figures.json"))
    for number, chart in drawing.draw(found).items():
        name = out / f"figure-{number}.svg"
        picture.write(chart, name, dpi=150)
        output.line(str(name))


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
        raise typer.BadParameter(f"{text!r} contains no seed", param_hint="'--seeds'")
    return seeds


def _tell(search: Searched) -> None:
    solved = "solved" if search.solved else "not solved"
    output.message(f"{search.instance}: {solved}, {search.impasses:,} backtracks with a label")


def _show(row: Row) -> None:
    output.message(
        f"{row.instance}: {row.plain.backtracks:,} backtracks, "
        f"with learning {row.learned.backtracks:,}"
    )
