"""The report as a list of sections, and which sweep would fill those that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from memplan.view.units import plural
from memplan_lab.bench.summary import by_case, by_solver, by_suite
from memplan_lab.study import (
    ablations,
    backtracks,
    curves,
    failures,
    papers,
    quality,
)
from memplan_lab.study.about import About
from memplan_lab.study.blocks import Section, Table
from memplan_lab.study.results import Results, Run


@dataclass(frozen=True, slots=True)
class _Part:
    """A section that needs certain runs, and the suite and options of a sweep that has them."""

    title: str
    make: Callable[[Sequence[Run]], Section | None]
    filled_by: str = ""


_PARTS = (
    _Part("Peak over bound", quality.section, "corpus --solvers auto,greedy --timeout 2"),
    _Part(
        "Share solved against time",
        curves.solved_against_time,
        "corpus --solvers auto,minimalloc,telamalloc --timeout 2",
    ),
    _Part(
        "Time and success against the number of buffers",
        curves.time_against_size,
        "synthetic --capacity 1.0 --solvers auto,minimalloc,telamalloc --timeout 2",
    ),
    _Part("MiniMalloc, table 1: isomorphic solutions", lambda _: papers.isomorphic_solutions()),
    _Part(
        "MiniMalloc, table 2: the challenging suite",
        papers.challenging,
        "challenging --data FOLDER --capacity 1.0 --solvers mip,telamalloc,minimalloc,auto "
        "--timeout 10",
    ),
    _Part(
        "TelaMalloc, table 1: microbenchmarks",
        papers.microbenchmarks,
        "microbenchmarks --capacity 1.0 --solvers telamalloc --repeat 5 --timeout 60",
    ),
    _Part(
        "TelaMalloc, table 2: memory of heuristics",
        papers.heuristics,
        "models --solvers contention_skyline,greedy,auto --timeout 2",
    ),
    _Part(
        "Ablations",
        ablations.section,
        "synthetic --capacity 1.0 --solvers minimalloc,minimalloc:dominance=off --timeout 2",
    ),
    _Part(
        "Backtracks with and without learning",
        backtracks.section,
        f"synthetic --capacity 1.1 --solvers {backtracks.PLAIN},{backtracks.LEARNED} --timeout 2",
    ),
)


def sections(results: Results, command: str = "") -> list[tuple[str, Section]]:
    """Return all that the results have to say, by title, in the order of the report.

    Parameters
    ----------
    results
        From `read`.
    command
        The command that makes the report again, if it is known.
    """
    made = [(part, part.make(results.runs)) for part in _PARTS]
    empty = [
        (part.title, f"memplan-lab sweep --suite {part.filled_by} -o RESULTS")
        for part, section in made
        if section is None
    ]
    wrong = failures.section(results.runs)
    return [
        ("Results", _summary(results, command)),
        *((part.title, section) for part, section in made if section is not None),
        *([] if wrong is None else [("Failures", wrong)]),
        *([("Left out", _list_missing(empty))] if empty else []),
    ]


def _summary(results: Results, command: str) -> Section:
    runs = results.runs
    lines = [
        (
            group,
            f"{len(by_case(mine)):,}",
            ", ".join(by_solver(mine)),
            f"{sum(run.repeats for run in mine):,}",
        )
        for group, mine in by_suite(runs).items()
    ]
    text = [
        f"{plural(sum(run.repeats for run in runs), 'run')}, written up by memplan "
        f"{version('memplan')}. Every plan has passed the referee; one that has not, counts as "
        "none. Times of different machines are not comparable.",
    ]
    if command:
        text.append(f"Made by: {command}")
    headings = ("problems", "count", "solvers", "runs")
    tables = [Table("What was run.", headings, lines, frozenset({0, 2}))]
    facts = list(_list_facts(results.about))
    if facts:
        left = frozenset({0, 1, 2})
        tables.append(Table("How it was run.", ("what", "is", "of"), facts, left))
    return Section(text, tables)


def _list_facts(about: Sequence[About]) -> Iterator[tuple[str, str, str]]:
    """Yield the facts about sources, each once, with the names of the sources that share it."""
    sources_of: dict[tuple[str, str], list[str]] = {}
    for one in about:
        for name, text in one.facts.items():
            sources_of.setdefault((name, text), []).append(one.source)
    for (name, text), sources in sorted(sources_of.items()):
        yield name, text, "all" if len(sources) == len(about) > 1 else ", ".join(sources)


def _list_missing(empty: Sequence[tuple[str, str]]) -> Section:
    return Section(
        ("These results hold no runs for the following; the sweeps beside them would.",),
        (Table("What is missing.", ("section", "sweep"), empty, frozenset({0, 1})),),
    )
