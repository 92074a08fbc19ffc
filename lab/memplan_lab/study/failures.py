"""Runs without an answer, by name, so that a study shows all failures."""

from __future__ import annotations

from collections.abc import Sequence

from memplan_lab.bench.tables import Shown
from memplan_lab.study.blocks import Section
from memplan_lab.study.results import Run

_WRONG = frozenset({"error", "failed", "invalid", "killed"})


def section(runs: Sequence[Run]) -> Section | None:
    """Return the runs that failed, crashed, were killed, or made a wrong plan."""
    lines = [
        (run.suite, run.case, run.solver, run.status, run.error)
        for run in runs
        if run.status in _WRONG
    ]
    if not lines:
        return None
    headings = ("problems", "problem", "solver", "status", "why")
    caption = "Runs without a valid answer."
    table = Shown(caption, headings, lines, frozenset(range(len(headings))))
    return Section(("All sections above count these runs as not solved.",), (table,))
