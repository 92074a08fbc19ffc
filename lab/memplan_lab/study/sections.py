"""The report as a list of sections, and which sweep would fill those that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from memplan.view.units import plural
from memplan_lab.bench import somas_tables
from memplan_lab.bench.rows import Row
from memplan_lab.bench.summary import by_case, by_solver, by_suite
from memplan_lab.bench.tables import Shown
from memplan_lab.study import (
    ablations,
    backtracks,
    course,
    curves,
    failures,
    memomalloc,
    memory,
    papers,
    quality,
)
from memplan_lab.study.about import About
from memplan_lab.study.blocks import Section
from memplan_lab.study.results import Results, Run


@dataclass(frozen=True, slots=True)
class _Part:
    """A section that needs certain runs, and what has them.

    `filled_by` is the suite and options of a sweep, or another command of the laboratory.
    """

    title: str
    make: Callable[[Sequence[Run]], Section | None]
    filled_by: str = ""


def _wrap(
    make: Callable[[Sequence[Row]], somas_tables.Part | None], runs: Sequence[Run]
) -> Section | None:
    part = make(runs)
    return None if part is None else Section((part[0],), part[1])


_SOMAS = {title: partial(_wrap, make) for title, make in somas_tables.PARTS.items()}

_PARTS = (
    _Part("Peak over bound", quality.section, "corpus --solver auto --solver greedy --timeout 2"),
    _Part(
        "Share that fits, by memory",
        memory.section,
        "corpus --solver auto --solver bump --timeout 2",
    ),
    _Part(
        "Share solved against time",
        curves.solved_against_time,
        "corpus --solver auto --solver minimalloc --solver telamalloc --timeout 2",
    ),
    _Part(
        "Time and success against the number of buffers",
        curves.time_against_size,
        "synthetic --capacity-factor 1.0 --solver auto --solver minimalloc "
        "--solver telamalloc --timeout 2",
    ),
    _Part("Static memory planning: the course text's example", lambda _: course.section()),
    _Part("MiniMalloc, table 1: isomorphic solutions", lambda _: papers.isomorphic_solutions()),
    _Part(
        "MiniMalloc, figure 8: the original suite",
        papers.original_suite,
        "models --capacity-factor 1.1 --solver csp --solver meta_csp --solver mip:start=off "
        "--solver telamalloc --solver minimalloc --repeat 25 --timeout 60",
    ),
    _Part(
        "MiniMalloc, table 2: the challenging suite",
        papers.challenging,
        "challenging --data FOLDER --capacity-factor 1.0 --solver mip --solver "
        "telamalloc --solver minimalloc --solver auto "
        "--timeout 10",
    ),
    _Part("MiniMalloc, table 3: sizes of libraries", lambda _: papers.library_sizes()),
    _Part(
        "TelaMalloc, table 1: microbenchmarks",
        papers.microbenchmarks,
        "microbenchmarks --capacity-factor 1.0 --solver telamalloc --repeat 5 --timeout 60",
    ),
    _Part(
        "TelaMalloc, table 2: memory of heuristics",
        papers.heuristics,
        "models --solver contention_skyline --solver greedy --solver auto --timeout 2",
    ),
    _Part(
        "TelaMalloc, figures 12 and 13: times on the models",
        papers.times_on_models,
        "models --capacity-factor 1.1 --solver telamalloc --solver telamalloc:learned=on "
        "--solver mip:start=off --solver cp_sat:start=off --timeout 10",
    ),
    _Part(
        "Ablations",
        ablations.section,
        "synthetic --capacity-factor 1.0 --solver minimalloc --solver "
        "minimalloc:dominance=off --timeout 2",
    ),
    _Part(
        "Backtracks with and without learning",
        backtracks.section,
        f"synthetic --capacity-factor 1.1 --solver {backtracks.PLAIN} --solver "
        f"{backtracks.LEARNED} --timeout 2",
    ),
    *(
        _Part(title, make, "memplan-lab bench somas --output streams.csv")
        for title, make in _SOMAS.items()
    ),
)


def sections(results: Results, command: str = "") -> list[tuple[str, Section]]:
    """Return all that the results have to say, by title, in the order of the report."""
    # Times of algorithms that make no plan are for their own section only.
    solves = [run for run in results.runs if run.status != somas_tables.MEASURED]
    made = [(part, part.make(results.runs if part.title in _SOMAS else solves)) for part in _PARTS]
    empty = [(part.title, _name_command(part)) for part, section in made if section is None]
    learned = backtracks.figures(results.learned)
    if learned is None:
        empty.append(("TelaMalloc, figures 15 to 17", "memplan-lab learn figures FILE -o FOLDER"))
    paper = memomalloc.section(solves, results.latency, results.contention)
    if paper is None:
        empty.append(("MemoMalloc", "memplan-lab bench latency --output FILE.parquet"))
    wrong = failures.section(solves)
    return [
        ("Results", _summary(results, command)),
        *((part.title, section) for part, section in made if section is not None),
        *([] if learned is None else [("TelaMalloc, figures 15 to 17: learning", learned)]),
        *([] if paper is None else [("MemoMalloc, figures 2.1 to 5.2, appendix 8.1", paper)]),
        *([] if wrong is None else [("Failures", wrong)]),
        *([("Left out", _list_missing(empty))] if empty else []),
    ]


def _name_command(part: _Part) -> str:
    if part.filled_by.startswith("memplan-lab "):
        return part.filled_by
    return f"memplan-lab sweep --suite {part.filled_by} -o RESULTS"


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
        f"{plural(sum(run.repeats for run in runs), 'run')}, reported by memplan "
        f"{version('memplan')}. Every plan was verified; an invalid plan counts as no plan. Times "
        "of different machines are not comparable.",
    ]
    if command:
        text.append(f"Command: {command}")
    headings = ("problems", "count", "solvers", "runs")
    tables = [Shown("Runs.", headings, lines, frozenset({0, 2}))]
    facts = list(_list_facts(results.about))
    if facts:
        left = frozenset({0, 1, 2})
        tables.append(Shown("Setup.", ("property", "value", "source"), facts, left))
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
        ("These results have nothing for the following sections; the commands given fill them.",),
        (Shown("Missing sections.", ("section", "command"), empty, frozenset({0, 1})),),
    )
