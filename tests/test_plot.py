"""Tests of `memplan.view.plot`: what is in the picture, and what is in the file."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from memplan.bench import generators
from memplan.errors import FormatError, MissingExtraError, PlanError
from memplan.plan import Plan, Status
from memplan.problem import Buffer, Gap, Problem
from memplan.view import plot

matplotlib = pytest.importorskip("matplotlib")

MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture
def best(five: Problem, five_offsets: list[int]) -> Plan:
    """Return the plan of the five buffers."""
    return Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12)


def part(axes, gid: str) -> list[np.ndarray]:
    """Return the corners of the polygons that carry this id, or nothing."""
    found = [artist for artist in axes.collections if artist.get_gid() == gid]
    return [path.vertices[:4] for artist in found for path in artist.get_paths()]


def stacked(problem: Problem) -> Plan:
    """Return a plan that shares nothing."""
    offsets = np.cumsum(problem.size) - problem.size
    return Plan.of(problem, offsets, lower_bound=problem.max_load)


def test_boxes_are_lifetimes_by_addresses(five: Problem, best: Plan) -> None:
    """Tests that each buffer is one box where the plan puts it, with its name inside."""
    space = plot.draw(five, best).axes[0]
    boxes = [(*corners[0], *corners[2]) for corners in part(space, "buffers")]
    assert boxes == [(0, 8, 3, 12), (3, 8, 9, 12), (0, 4, 9, 8), (9, 4, 21, 8), (0, 0, 21, 4)]
    names = {text.get_text(): text.get_position() for text in space.texts}
    assert names == {
        "b1": (1.5, 10),
        "b2": (6, 10),
        "b3": (4.5, 6),
        "b4": (15, 6),
        "b5": (10.5, 2),
    }
    low, high = space.get_xlim()
    assert low <= 0
    assert high >= 21


def test_title_and_limits(five: Problem, best: Plan) -> None:
    """Tests that peak, bound, capacity and status are said, and the two limits drawn."""
    space = plot.draw(five, best).axes[0]
    title = space.get_title(loc="left").split("   ")
    assert title == ["5 buffers", "peak 12", "bound 12", "capacity 12", "optimal"]
    lines = {line.get_label(): line.get_ydata()[0] for line in space.lines}
    assert lines == {"capacity": 12, "lower bound": 12}
    free = five.with_capacity(None)
    assert plot.draw(free, best).axes[0].get_title(loc="left").split("   ") == title
    space = plot.draw(free, stacked(free)).axes[0]
    assert [line.get_label() for line in space.lines] == ["lower bound"]
    assert space.get_title(loc="left").endswith("gap 66.67%   feasible")


def test_load_curve(five: Problem, best: Plan) -> None:
    """Tests that the strip below shows the load of every section."""
    strip = plot.draw(five, best).axes[1]
    values, edges, _ = strip.patches[0].get_data()
    assert values.tolist() == [12, 12, 8]
    assert edges.tolist() == [0, 3, 9, 21]


def test_gaps_windows_and_reserved_ranges() -> None:
    """Tests that a gap is empty but for its window, inside of an outline; and the hatched range."""
    problem = Problem(
        [Buffer("a", start=0, end=10, size=8, gaps=(Gap(3, 5), Gap(7, 9, (2, 4))))],
        reserved=[(8, 10)],
    )
    space = plot.draw(problem, Plan.of(problem, [0])).axes[0]
    boxes = {(*corners[0], *corners[2]) for corners in part(space, "buffers")}
    assert boxes == {(0, 0, 3, 8), (5, 0, 7, 8), (7, 2, 9, 4), (9, 0, 10, 8)}
    (outline,) = part(space, "gaps")
    assert (*outline[0], *outline[2]) == (0, 0, 10, 8)
    (reserved,) = [patch for patch in space.patches if patch.get_gid() == "reserved"]
    assert (reserved.get_y(), reserved.get_height()) == (8, 2)
    assert reserved.get_hatch()


def test_order_of_the_plan_does_not_matter(five: Problem, best: Plan) -> None:
    """Tests that a plan with other rows is matched by name."""
    other = five.shuffled(3)
    assert other.ids != five.ids
    ours, theirs = (part(plot.draw(p, best).axes[0], "buffers") for p in (five, other))
    assert sorted(c.tolist() for c in ours) == sorted(c.tolist() for c in theirs)


def test_colour_says_size_or_lifetime() -> None:
    """Tests that the key follows the choice, and is left out where all are the same."""
    problem = Problem(
        [Buffer("a", start=0, end=1, size=1024), Buffer("b", start=1, end=9, size=64)]
    )
    for colour, ends in (("size", ["64 bytes", "1 KiB"]), ("lifetime", ["1", "8"])):
        key = plot.draw(problem, stacked(problem), colour=colour).axes[2]  # type: ignore[arg-type]
        labels = [label.get_text() for label in key.get_yticklabels()]
        assert [labels[0], labels[-1]] == ends
        assert key.get_ylabel() == colour
    same = Problem([Buffer("a", start=0, end=1, size=4), Buffer("b", start=1, end=2, size=4)])
    assert len(plot.draw(same, stacked(same)).axes) == 2


@pytest.mark.parametrize(
    "problem",
    [
        Problem([]),
        Problem([Buffer("z", start=0, end=1, size=0)]),
        Problem([Buffer("$x^", start=-(1 << 61), end=1 << 61, size=1 << 61)]),
        Problem([Buffer(f"b{i}", start=0, end=1, size=1) for i in range(10)]),
    ],
    ids=["nothing", "no-bytes", "huge", "ten"],
)
def test_odd_problems(problem: Problem, tmp_path: Path) -> None:
    """Tests that nothing, no bytes, huge numbers and names like formulas can be drawn."""
    plot.save(problem, stacked(problem), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(MAGIC[".png"])


@pytest.mark.parametrize("suffix", MAGIC)
def test_formats(suffix: str, five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that the suffix chooses the format, and the same plan gives the same bytes."""
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix.upper()}"
    plot.save(five, best, first)
    plot.save(five, best, second)
    assert first.read_bytes().startswith(MAGIC[suffix])
    assert first.read_bytes() == second.read_bytes()


def test_thirty_thousand_buffers(tmp_path: Path) -> None:
    """Tests that a large plan is all there, as pixels, in a file of a size that opens."""
    problem = generators.nn_like(30_000, 0)
    plan = stacked(problem)
    assert len(part(plot.draw(problem, plan).axes[0], "buffers")) == 30_000
    plot.save(problem, plan, tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").stat().st_size < 2_000_000
    names = {e.tag.rpartition("}")[2] for e in ElementTree.parse(tmp_path / "plan.svg").iter()}
    assert "image" in names


def test_no_offsets(five: Problem, tmp_path: Path) -> None:
    """Tests that a plan without offsets is refused, and an old picture stays."""
    (tmp_path / "plan.png").write_text("old")
    with pytest.raises(PlanError, match="no offsets to draw"):
        plot.save(five, Plan.of(five, None, status=Status.UNKNOWN), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_text() == "old"


def test_other_suffixes(five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that an unknown suffix, or none, is refused with those that are known."""
    for name in ("plan.jpg", "plan"):
        with pytest.raises(FormatError, match=r"written as \.png, \.svg or \.pdf"):
            plot.save(five, best, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_not_there(five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that a file that cannot be written is an error that names it."""
    with pytest.raises(FormatError, match=r"plan\.png: cannot be written"):
        plot.save(five, best, tmp_path / "missing" / "plan.png")


def test_without_matplotlib(five: Problem, best: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without the extra the error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"memplan\[plot\]"):
        plot.draw(five, best)
