"""Tests of `memplan_lab.bench.figures`: run time and success, drawn from rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memplan.base.errors import FormatError, MemplanError, MissingExtraError
from memplan_lab.bench import figures
from memplan_lab.bench.rows import Row

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow


def row(n: int, seed: int, solver: str, cpu: float | None, status: str = "optimal") -> Row:
    """Return a row of suite `s`."""
    return Row("s", f"s-{n}-{seed}", n, solver, "fit", status, cpu_s=cpu)


# Two sizes of three instances each: the peer solves all of 20 and one of 40.
ROWS = [
    *(row(n, seed, "ours", 0.001 * (seed + 1)) for n in (40, 20) for seed in range(3)),
    *(row(20, seed, "peer", 0.1 * (seed + 1)) for seed in range(3)),
    row(40, 0, "peer", 0.5),
    row(40, 1, "peer", 2.0, "unknown"),
    row(40, 2, "peer", 0.01, "unknown"),  # it gave up early: no reason to call it fast
]


def test_sizes_are_medians_and_shares() -> None:
    """Tests that runs without a plan count as the longest run, and as failures."""
    times, success = figures.draw(ROWS).axes
    assert [line.get_label() for line in times.lines] == ["ours", "peer"]
    ours, peer = (line.get_xydata().tolist() for line in times.lines)
    assert ours == [[20, 0.002], [40, 0.002]]
    assert peer == [[20, pytest.approx(0.2)], [40, 2.0]]
    assert times.get_yscale() == "log"
    ours, peer = (line.get_xydata().tolist() for line in success.lines)
    assert ours == [[20, 100], [40, 100]]
    assert peer == [[20, 100], [40, pytest.approx(100 / 3)]]


def test_few_instances_are_drawn_one_by_one() -> None:
    """Tests that instances of many sizes are marks, hollow where there is no plan."""
    rows = [row(n, 0, "ours", n / 1000) for n in (9, 7, 8)] + [row(7, 0, "peer", 1.0, "unknown")]
    (axes,) = figures.draw(rows).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["s-9-0", "s-7-0", "s-8-0"]
    ours, peer = axes.collections
    assert ours.get_offsets().tolist() == [[0, 0.009], [1, 0.007], [2, 0.008]]
    assert peer.get_offsets().tolist() == [[1, 1.0]]
    assert len(peer.get_facecolors()) == 0 or peer.get_facecolors()[0][3] == 0
    assert ours.get_facecolors()[0][3] == 1


def test_many_instances_of_many_sizes_are_taken_together_by_powers_of_two() -> None:
    """Tests that more instances than names fit on an axis become medians, on a logarithmic one."""
    rows = [row(n, 0, "ours", n / 1000) for n in range(1, 51)]
    times, success = figures.draw(rows).axes
    (line,) = times.lines
    sizes, medians = zip(*line.get_xydata().tolist(), strict=True)
    assert sizes == (1, 2, 4, 8, 16, 32, 64)
    assert medians == pytest.approx((0.001, 0.002, 0.0035, 0.0065, 0.0125, 0.0245, 0.0415))
    assert times.get_xscale() == "log"
    assert success.get_xscale() == "log"  # they share it


def test_suites_stand_side_by_side() -> None:
    """Tests that every suite has panels of its own, and what was not measured has none."""
    other = [Row("t", "t-1", 3, "ours", "fit", "optimal", cpu_s=0.5)]
    unmeasured = [Row("u", "u-1", 3, "ours", "fit", "unsupported", error="no gaps")]
    titles = [axes.get_title() for axes in figures.draw([*ROWS, *other, *unmeasured]).axes]
    assert titles == ["s", "", "t"]


def test_nothing_to_draw_is_said() -> None:
    """Tests that rows without a measured run are refused."""
    with pytest.raises(MemplanError, match="nothing to draw"):
        figures.draw([row(5, 0, "ours", None, "unsupported")])


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    """Tests that a figure repeats, which keeps it quiet in a repository."""
    for name in ("a.svg", "b.svg"):
        figures.save(ROWS, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.svg").stat().st_size < 60_000


def test_files_are_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a wrong suffix and a missing library are known before the first run."""
    figures.check_file(tmp_path / "a.svg")
    with pytest.raises(FormatError, match=r"\.svg"):
        figures.check_file(tmp_path / "a.txt")
    with pytest.raises(FormatError, match=r"\.svg"):
        figures.save(ROWS, tmp_path / "a.txt")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plot"):
        figures.check_file(tmp_path / "a.svg")
