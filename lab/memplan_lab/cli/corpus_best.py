"""`memplan-lab corpus best`: the least peaks that are known, checked and improved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import output

if TYPE_CHECKING:
    from memplan_lab.bench.best_update import Claim

NAME = "best"
app = typer.Typer(help="Check and improve the best known peaks of the corpus.")

Corpus = Annotated[
    Path | None,
    typer.Option("--corpus", metavar="FILE", help="A corpus other than the shipped one."),
]
Known = Annotated[
    Path | None,
    typer.Option("--known", metavar="FILE", help="Best known peaks other than the shipped ones."),
]


@app.command()
def check(corpus: Corpus = None, known: Known = None) -> None:
    """Verify every best known peak: check the stored plans and repeat the searches."""
    from memplan_lab.bench import best_known, best_update, records

    wrong = total = 0
    for finding in best_update.check(records.corpus(corpus), best_known.read(known)):
        total += 1
        if finding.wrong:
            wrong += 1
            output.line(f"{finding.name}: {finding.wrong}")
    output.line(f"{total - wrong:,} of {total:,} best known peaks are confirmed")
    if wrong:
        raise typer.Exit(output.INFEASIBLE)


@app.command()
def update(
    results: Annotated[
        list[str],
        typer.Argument(metavar="RESULTS...", help="Folders of `memplan-lab sweep --suite corpus`."),
    ],
    corpus: Corpus = None,
    known: Known = None,
) -> None:
    """Adopt better peaks and new proofs from sweeps, after solving and verifying them again."""
    from memplan_lab.bench import best_known, best_update, records

    where = str(known or best_known.path())
    output.check_output(where)
    made = best_update.update(
        records.corpus(corpus), best_known.read(known), _claims(results), on_claim=_tell
    )
    if made.improved:
        best_known.write(made.bests, where)
    for best in made.improved:
        output.line(f"{best.name}: {best.peak:,} bytes{', proved' if best.proved else ''}")
    for finding in made.refused:
        output.message(f"{finding.name} is rejected: {finding.wrong}")
    output.line(f"{len(made.improved):,} improved, {len(made.refused):,} rejected")
    if made.refused:
        raise typer.Exit(output.INFEASIBLE)


def _claims(results: list[str]) -> list[Claim]:
    from memplan_lab import study
    from memplan_lab.bench.best_update import Claim

    return [
        Claim(
            run.case,
            run.fingerprint,
            run.peak,
            run.status == "optimal" and run.objective == "min_peak",
            run.solver,
            run.seed or 0,
            run.timeout_s or 0.0,
        )
        for run in study.read(results).runs
        if run.base == "corpus" and run.solved and run.peak is not None
    ]


def _tell(claim: Claim) -> None:
    output.message(f"{claim.name}: {claim.solver} claims {claim.peak:,} bytes")
