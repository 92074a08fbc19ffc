"""The effect of learning: rows of an evaluation as a table and as a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from memplan.problem.formats import write_bytes
from memplan_lab.bench.tables import DASH, Shown
from memplan_lab.learn.evaluating import Row

__all__ = ["HEADINGS", "Merit", "cells", "judge", "table", "write"]

HEADINGS = (
    "family",
    "hard",
    "unsolved",
    "of these solved",
    "lost",
    "backtracks",
    "learned",
    "ratio",
    "easy",
    "other steps",
    "lost",
    "CPU",
    "worst",
)
_RUN = ("solved", "backtracks", "seconds", "steps")


@dataclass(frozen=True)
class Merit:
    """A summary of rows. Problems are hard if the plain search backtracks often or fails."""

    family: str  # of the problems
    # hard, easy: How many there are of each kind.
    hard: int
    easy: int
    # unsolved, won, lost: Of the hard: those that the plain search does not solve, those of them
    # that the learned one solves, and those that only the plain search solves.
    unsolved: int
    won: int
    lost: int
    # plain, learned: The median backtracks on the hard ones, as `Run` counts them.
    plain: float | None
    learned: float | None
    # easy_other, easy_lost: Of the easy: those that take other steps with learning, and those that
    # it does not solve.
    easy_other: int
    easy_lost: int
    # cpu, worst_cpu: Processor time with learning over that without, on the easy ones: of the sums,
    # and of the worst problem that takes a millisecond or more.
    cpu: float | None
    worst_cpu: float | None


def judge(rows: Sequence[Row], hard: int) -> list[Merit]:
    """Return a summary for each family, and of all together if there are several."""
    families = list(dict.fromkeys(row.family for row in rows))
    merits = [_judge(name, [row for row in rows if row.family == name], hard) for name in families]
    return merits if len(families) < 2 else [*merits, _judge("all", rows, hard)]


def _judge(family: str, rows: Iterable[Row], limit: int) -> Merit:
    easy, hard = list[Row](), list[Row]()
    for row in rows:
        is_hard = row.plain.backtracks > limit or not row.plain.solved
        (hard if is_hard else easy).append(row)
    seconds = sum(row.plain.seconds for row in easy)
    timed = [row for row in easy if row.plain.seconds >= 1e-3]
    return Merit(
        family,
        len(hard),
        len(easy),
        unsolved=sum(not row.plain.solved for row in hard),
        won=sum(row.learned.solved and not row.plain.solved for row in hard),
        lost=sum(row.plain.solved and not row.learned.solved for row in hard),
        plain=median(row.plain.backtracks for row in hard) if hard else None,
        learned=median(row.learned.backtracks for row in hard) if hard else None,
        easy_other=sum(row.learned.steps != row.plain.steps for row in easy),
        easy_lost=sum(not row.learned.solved for row in easy),
        cpu=sum(row.learned.seconds for row in easy) / seconds if seconds > 0 else None,
        worst_cpu=max((row.learned.seconds / row.plain.seconds for row in timed), default=None),
    )


def table(rows: Sequence[Row], hard: int) -> Shown:
    """Return the summaries as a table."""
    title = f"Hard: more than {hard:,} backtracks without learning"
    return Shown(title, HEADINGS, list(map(cells, judge(rows, hard))))


def cells(merit: Merit) -> list[str]:
    """Return a summary as text, under `HEADINGS`."""
    ratio = merit.learned / merit.plain if merit.plain and merit.learned is not None else None
    return [
        merit.family,
        f"{merit.hard:,}",
        f"{merit.unsolved:,}",
        f"{merit.won:,}",
        f"{merit.lost:,}",
        *(DASH if count is None else f"{count:,.0f}" for count in (merit.plain, merit.learned)),
        DASH if ratio is None else f"{ratio:.2f}",
        f"{merit.easy:,}",
        f"{merit.easy_other:,}",
        f"{merit.easy_lost:,}",
        *(DASH if times is None else f"{times:.2f}" for times in (merit.cpu, merit.worst_cpu)),
    ]


def write(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Write all rows as CSV, whole or not at all."""
    file = io.StringIO()
    out = csv.writer(file, lineterminator="\n")
    runs = [f"{name}_{column}" for name in ("plain", "learned") for column in _RUN]
    out.writerow(["instance", "family", *runs])
    for row in rows:
        cells = [getattr(run, column) for run in (row.plain, row.learned) for column in _RUN]
        out.writerow([row.instance, row.family, *cells])
    write_bytes(path, file.getvalue().encode())
