"""Tests of `memplan_lab.bench.report`: what rows add up to, tables and files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from memplan.base.errors import FormatError
from memplan_lab.bench import report
from memplan_lab.bench.rows import COLUMNS, Row
from memplan_lab.bench.summary import compare, summarise
from memplan_lab.bench.tables import Shown

pytestmark = pytest.mark.slow


def row(case: str, solver: str, cpu: float | None, peak: int | None = 100, **more: object) -> Row:
    """Return a row of suite `s` with a bound of 100, solved where there is a peak."""
    values: dict[str, object] = {
        "suite": "s",
        "n": 5,
        "objective": "fit",
        "status": "unknown" if peak is None else "optimal" if peak == 100 else "feasible",
        "peak": peak,
        "max_load": 100,
        "lower_bound": 100,
        "wall_s": cpu,
        "cpu_s": cpu,
    }
    return Row(case=case, solver=solver, **{**values, **more})  # type: ignore[arg-type]


ROWS = [
    row("a", "ours", 0.001),
    row("a", "peer", 0.004, 110),
    row("b", "ours", 0.003),
    row("b", "peer", 0.003),
    row("c", "ours", 0.010),
    row("c", "peer", 9.0, None),
    row("d", "ours", None, None, status="killed", error="it was [killed]"),
    row("d", "peer", 0.5, 150),
]


def render(tables: Sequence[Shown], width: int = 200) -> str:
    """Return what a terminal of that width shows."""
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        for table in tables:
            console.print(table.terminal())
    return capture.get()


def test_summary() -> None:
    """Tests the counts, times and ratios of two solvers over four cases."""
    ours, peer = summarise(ROWS)
    assert (ours.suite, ours.solver, ours.cases, ours.solved, ours.optimal) == (
        "s",
        "ours",
        4,
        3,
        3,
    )
    assert ours.wall_median == 0.003
    assert ours.wall_worst == 0.010
    assert ours.wall_sum == pytest.approx(0.014)
    assert (ours.ratio_mean, ours.ratio_worst, ours.relative) == (1.0, 1.0, 1.0)
    assert (peer.solved, peer.optimal) == (3, 1)
    assert peer.wall_worst == 9.0  # a run without an answer took its time, too
    assert peer.ratio_mean == pytest.approx((1.1 + 1.0 + 1.5) / 3)
    assert peer.ratio_worst == 1.5
    assert peer.relative == pytest.approx((0.004 + 0.003) / (0.001 + 0.003))


def test_summary_takes_the_best_bound_of_a_case() -> None:
    """Tests that a bound that one solver proves counts for all, but not one of a wrong plan."""
    rows = [
        row("a", "ours", 1.0, 125, lower_bound=125, status="optimal"),
        row("a", "peer", 1.0, 125, lower_bound=100, status="feasible"),
        row("a", "liar", 1.0, 125, lower_bound=500, status="invalid"),
    ]
    ours, peer, liar = summarise(rows)
    assert ours.ratio_worst == peer.ratio_worst == 1.0
    assert (liar.solved, liar.ratio_worst, liar.relative) == (0, None, None)


def test_summary_of_nothing() -> None:
    """Tests that no rows, and problems without bytes, do not divide by zero."""
    assert summarise([]) == []
    (empty,) = summarise([row("a", "ours", 0.0, 0, max_load=0, lower_bound=0)])
    assert (empty.ratio_mean, empty.relative) == (1.0, None)


def test_compare() -> None:
    """Tests ratios of CPU time and peak, ours over theirs, on the cases that both solved."""
    (one,) = compare(ROWS)
    assert (one.first, one.other, one.both, one.only_first, one.only_other) == (
        "ours",
        "peer",
        2,
        1,
        1,
    )
    assert one.cpu_mean == pytest.approx((0.25 * 1.0) ** 0.5)
    assert one.cpu_worst == 1.0
    assert one.peak_mean == pytest.approx((100 / 110) ** 0.5)
    assert one.peak_worst == 1.0


def test_speed_up_counts_what_ran_out_of_time() -> None:
    """Tests the median of theirs over ours, with what they used in vain, and not our failures."""
    (one,) = compare(ROWS)
    assert one.speed_up == 4.0  # 4, 1 and 900 on a, b and c; on d ours has nothing
    rows = [row("a", "ours", 0.002), row("a", "peer", None, None, status="unsupported")]
    assert compare(rows)[0].speed_up is None


def test_nodes_are_compared() -> None:
    """Tests the geometric mean of nodes, where both solved and counted some."""
    rows = [
        row("a", "ours", 1.0, nodes=10),
        row("a", "peer", 1.0, nodes=40),
        row("b", "ours", 1.0, nodes=50),
        row("b", "peer", 1.0, nodes=50),
        row("c", "ours", 1.0, nodes=7),
        row("c", "peer", 1.0, None, nodes=7_000),
        row("d", "ours", 1.0, nodes=7),
        row("d", "peer", 1.0, nodes=0),
    ]
    assert compare(rows)[0].nodes_mean == pytest.approx(0.5)
    assert row("a", "ours", 1.0, nodes=40).step_s == 0.025
    assert row("a", "ours", 1.0).step_s is row("a", "ours", None, nodes=4).step_s is None


def test_skipped_cases_do_not_count() -> None:
    """Tests that what was not there to be solved is no failure."""
    rows = [row("a", "ours", 1.0), row("b", "ours", None, None, status="skipped")]
    assert [(one.solved, one.cases) for one in summarise(rows)] == [(1, 1)]


def test_suites_are_kept_apart() -> None:
    """Tests that each suite has a table of its own, and its own first solver."""
    rows = [*ROWS, row("x", "peer", 0.1, suite="t"), row("x", "ours", 0.2, suite="t")]
    assert [(one.suite, one.solver) for one in summarise(rows)] == [
        ("s", "ours"),
        ("s", "peer"),
        ("t", "peer"),
        ("t", "ours"),
    ]
    assert [(one.suite, one.first, one.other) for one in compare(rows)] == [
        ("s", "ours", "peer"),
        ("t", "peer", "ours"),
    ]


def test_table() -> None:
    """Tests that the terminal shows a line a solver with counts, times with units and ratios."""
    lines = [" ".join(line.split()) for line in render(report.table(ROWS)).splitlines()]
    assert "s" in lines
    assert "ours 3/4 3 3 ms 10 ms 14 ms 14 ms 1.0000 / 1.0000 1" in lines
    assert any(line.startswith("peer 3/4 1 252 ms 9 s 9.51 s") for line in lines)


def test_details() -> None:
    """Tests that every row has a line, in order, and an error is shown as it is, with brackets."""
    lines = render(report.details(ROWS)).splitlines()
    words = [line.split()[:2] for line in lines if "peer" in line or "ours" in line]
    assert words == [[row.case, row.solver] for row in ROWS]
    (killed,) = [line for line in lines if "killed" in line]
    assert "it was [killed]" in killed


def test_comparison() -> None:
    """Tests that the comparison shows both solvers and the ratios."""
    text = render(report.comparison(ROWS))
    assert "ours peer 2 1 1 0.5 1 0.9535 1.0000" in " ".join(text.split())


def test_markdown() -> None:
    """Tests that the Markdown table has a header, a rule and a line for each suite and solver."""
    lines = report.in_one(ROWS).markdown().splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| s | ours | 3/4 | 3 | 3 ms |")


def test_csv(tmp_path: Path) -> None:
    """Tests that the CSV has all columns, one line a row, and empty fields for what is unknown."""
    report.write(ROWS, tmp_path / "results.csv")
    with open(tmp_path / "results.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(ROWS)
    assert tuple(lines[0]) == COLUMNS
    assert (lines[0]["case"], lines[0]["cpu_s"], lines[0]["nodes"]) == ("a", "0.001", "")
    assert lines[6]["error"] == "it was [killed]"


def test_parquet(tmp_path: Path) -> None:
    """Tests that Parquet gives the rows back, with types that do not depend on the values."""
    pq = pytest.importorskip("pyarrow.parquet")
    report.write(ROWS, tmp_path / "results.parquet")
    report.write([], tmp_path / "none.parquet")
    table = pq.read_table(tmp_path / "results.parquet")
    assert report.read(tmp_path / "results.parquet") == ROWS
    assert table.schema == pq.read_table(tmp_path / "none.parquet").schema
    assert str(table.schema.field("nodes").type) == "int64"
    assert str(table.schema.field("ratio").type) == "double"


def test_fits_of_before(tmp_path: Path) -> None:
    """Tests that a fit counts as solved and not as optimal, also in files that called it so."""
    rows = [row("a", "old", 0.1, 110, status="optimal"), row("a", "new", 0.1, 110, status="fits")]
    rows += [row("b", "old", 0.1), row("c", "old", 0.1, 110, objective="min_peak")]
    report.write(rows, tmp_path / "results.csv")
    found = report.read(tmp_path / "results.csv")
    assert [each.status for each in found] == ["fits", "fits", "optimal", "feasible"]
    assert [(each.solved, each.optimal) for each in summarise(found)] == [(3, 1), (1, 0)]


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    """Tests that an unknown suffix is refused by name, and nothing is written."""
    with pytest.raises(FormatError, match=r"results\.xlsx: results are written as \.csv or"):
        report.write(ROWS, tmp_path / "results.xlsx")
    assert list(tmp_path.iterdir()) == []
