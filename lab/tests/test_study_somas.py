"""Tests of the tables of SOMAS: what is measured, joined groups, and what the report shows."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import memplan
from memplan.problem import Problem
from memplan.programs.graph import Layout, lay_out, unsafe_pairs
from memplan_lab.bench import report, somas_tables
from memplan_lab.bench.experiments import somas
from memplan_lab.bench.generators import pangu_like
from memplan_lab.bench.rows import Row
from memplan_lab.bench.tables import Shown
from memplan_lab.cli import main
from memplan_lab.study import results, sections

pytestmark = pytest.mark.slow

GROUPS = 5


@pytest.fixture(scope="module")
def layout() -> Layout:
    """Return a training step on five streams with groups."""
    return lay_out(pangu_like(300, 5, GROUPS, seed=2))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Return what is measured of two small steps, under names of the paper."""
    graphs = {
        "PanGu (2.6B)": pangu_like(300, 5, GROUPS, seed=2),
        "PanGu (8B)": pangu_like(200, 4, 3, seed=1),
    }
    return [row for name, graph in graphs.items() for row in somas.measure(name, lay_out(graph), 2)]


def needed_together(problem: Problem) -> set[frozenset[str]]:
    """Return the pairs of buffers that may not share memory, by their ids."""
    conflicts = {frozenset(pair) for pair in problem.conflicts.pairs().tolist()}
    return {
        frozenset((problem.ids[i], problem.ids[j]))
        for i, j in combinations(range(len(problem)), 2)
        if frozenset((i, j)) in conflicts
        or (problem.start[i] < problem.end[j] and problem.start[j] < problem.end[i])
    }


def test_a_joined_group_is_unsafe_with_all_that_a_member_is(layout: Layout) -> None:
    """Tests joined lists against their definition, pair by pair."""
    problem = layout.problem
    joined = somas.join_groups(layout)
    leader = {row: rows[0] for rows in problem.groups for row in rows}
    pairs = unsafe_pairs(layout)
    wanted = {
        frozenset(problem.ids[leader.get(row, row)] for row in pair)
        for pair in combinations(range(len(problem)), 2)
        if pair in pairs
    }
    assert needed_together(joined) == {pair for pair in wanted if len(pair) == 2}
    assert joined.size.sum() == problem.size.sum()
    assert len(joined) == len(problem) - sum(len(rows) - 1 for rows in problem.groups)
    assert not joined.has_groups


def test_removed_groups_leave_the_same_pairs(layout: Layout) -> None:
    """Tests that a problem without groups has the same buffers and conflicts."""
    free = somas.remove_groups(layout.problem.without_alignment())
    assert not free.has_groups
    assert needed_together(free) == needed_together(layout.problem)
    assert np.array_equal(free.size, layout.problem.size)


def test_what_is_measured(rows: list[Row]) -> None:
    """Tests that every algorithm and heuristic has a row, and its plan passed the referee."""
    by_suite = {
        suite: {row.solver for row in rows if row.suite == suite}
        for suite in (somas.SAFETY, somas.RIGOROUS, somas.JOINED, somas.FREE)
    }
    assert by_suite[somas.SAFETY] == set(somas.ALGORITHMS)
    assert by_suite[somas.RIGOROUS] == {"bump", *somas.HEURISTICS, "auto"}
    assert by_suite[somas.JOINED] == by_suite[somas.FREE] == {*somas.HEURISTICS, "auto"}
    assert all(row.solved for row in rows if row.suite != somas.SAFETY)
    best = {(row.suite, row.case): row.peak for row in rows if row.solver == "auto"}
    for case in ("PanGu (2.6B)", "PanGu (8B)"):
        free, rigorous, joined = (
            best[suite, case] for suite in (somas.FREE, somas.RIGOROUS, somas.JOINED)
        )
        assert free is not None
        assert rigorous is not None
        assert joined is not None
        assert free <= rigorous <= joined
        (naive,) = (row.peak for row in rows if row.solver == "bump" and row.case == case)
        assert naive is not None
        assert naive > joined


def test_the_tables_show_ours_beside_the_papers(rows: list[Row]) -> None:
    """Tests cells of all four tables."""
    runs = list(results.fold(rows))
    made = {title: make(runs) for title, make in somas_tables.PARTS.items()}

    def find(title: str, at: int) -> Shown:
        part = made[title]
        assert part is not None
        table = part[1][at]
        assert all(len(line) == len(table.headings) for line in table.lines)
        return table

    safety = find("SOMAS, table 1: multi-stream safety", 0)
    assert [line[0] for line in safety.lines] == ["PanGu (2.6B)"]
    assert safety.lines[0][-3:] == ("13.8 s", "10.4 s", "25.2 %")
    peaks = find("SOMAS, tables 2 and 3: offsets", 0)
    assert peaks.headings == ("solver", "PanGu (2.6B)")
    naive = next(row for row in rows if row.solver == "bump" and row.case == "PanGu (2.6B)")
    assert naive.peak is not None
    assert naive.max_load is not None
    assert peaks.lines[0] == ("bump", f"{naive.peak / naive.max_load:.2f}× (73.11×)")
    assert [line[0] for line in peaks.lines[1:11]] == list(somas.HEURISTICS)
    large = find("SOMAS, table 4: groups", 0)
    assert large.lines[0][0] == "PanGu (8B)"
    assert large.lines[0][-5:] == ("27.36", "14.76", "14.68", "-46.05 %", "0.54 %")
    assert len(find("SOMAS, table 4: groups", 1).lines) == 2


def test_the_report_has_the_sections(rows: list[Row], tmp_path: Path) -> None:
    """Tests that results come back from a file, and times of safety are in no other section."""
    pytest.importorskip("matplotlib")
    report.write(rows, tmp_path / "streams.csv")
    read = results.read([tmp_path / "streams.csv"])
    made = dict(sections.sections(read))
    assert set(somas_tables.PARTS) <= set(made)
    assert "Failures" not in made
    quality = made["Peak over bound"].blocks
    assert not any(somas.SAFETY in str(block) for block in quality)


def test_a_network_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the sentence on a wrong name."""
    assert main(["bench", "somas", "--case", "vgg"]) == 2
    assert 'somas has no case "vgg"' in capsys.readouterr().err


def test_bump_is_the_sum_of_all_sizes(layout: Layout) -> None:
    """Tests the naive row on a problem with conflicts and groups."""
    problem = layout.problem.without_alignment()
    plan = memplan.solve(problem, "bump")
    memplan.verify(problem, plan)
    assert plan.peak == problem.size.sum()
