"""Tests of `memplan.view.plot`: what is in the picture, and what is in the file."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from memplan.base.errors import FormatError, MemplanError, MissingExtraError, PlanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan, Status
from memplan.view import load_plot, picture, plot
from memplan_lab.bench import generators

matplotlib = pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow

MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
KINDS = ("capacity", "peak", "lower bound")


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


def heights(axes) -> dict[str, float]:
    """Return what the legend calls the lines, and where they are."""
    return {line.get_label(): line.get_ydata()[0] for line in axes.lines if line.get_gid() in KINDS}


def test_levels(five: Problem, best: Plan) -> None:
    """Tests that capacity, peak and bound are drawn and named, and equal ones once."""
    everything = {"capacity = peak = lower bound 12 bytes": 12}
    assert heights(plot.draw(five, best).axes[0]) == everything
    free = five.with_capacity(None)
    assert heights(plot.draw(free, best).axes[0]) == everything  # the plan's own
    space = plot.draw(free, stacked(free)).axes[0]
    assert heights(space) == {"peak 20 bytes": 20, "lower bound 12 bytes": 12}
    legend = [text.get_text() for text in space.get_legend().get_texts()]
    assert legend == list(heights(space))
    verdict = space.get_legend().get_title().get_text()
    assert verdict.startswith("8 bytes above the lower bound (66.7 %); a smaller peak is")
    best_of_all = plot.draw(free, best).axes[0].get_legend().get_title().get_text()
    assert best_of_all == "Optimal: equals the lower bound"
    styles = {line.get_linestyle() for line in space.lines if line.get_gid() in KINDS}
    assert len(styles) == 2  # without colours they must still be two


def test_a_capacity_far_above_is_named_only(five: Problem, best: Plan) -> None:
    """Tests that the boxes fill the picture, however much memory there is."""
    space = plot.draw(five.with_capacity(24), best).axes[0]
    assert space.get_ylim()[1] == pytest.approx(24 * 1.01)
    space = plot.draw(five.with_capacity(25), best).axes[0]
    assert space.get_ylim()[1] == pytest.approx(12 * 1.01)
    assert space.get_legend().get_texts()[0].get_text() == "capacity 25 bytes"


def test_load_curve(five: Problem, best: Plan) -> None:
    """Tests that the strip is there if asked for, and shows the load of every section."""
    assert len(plot.draw(five, best).axes) == 1
    _, strip = plot.draw(five, best, load=True).axes
    values, edges, _ = strip.patches[0].get_data()
    assert values.tolist() == [12, 12, 8]
    assert edges.tolist() == [0, 3, 9, 21]
    assert strip.get_ylabel() == "load"
    assert strip.get_xlabel() == "time"


def test_the_load_of_a_problem(five: Problem) -> None:
    """Tests the figure of a problem that has no plan: load, capacity and lower bound."""
    (axes,) = load_plot.draw(five.with_capacity(20)).axes
    assert axes.patches[0].get_data()[0].tolist() == [12, 12, 8]
    assert heights(axes) == {"capacity 20 bytes": 20, "lower bound 12 bytes": 12}
    assert len(load_plot.draw(Problem([])).axes) == 1


def test_ticks_are_where_boxes_begin_and_end(five: Problem, best: Plan) -> None:
    """Tests the axes of figure 2 of MiniMalloc, its sections, and the scale of a crowded one."""
    space = plot.draw(five, best).axes[0]
    assert space.get_xticks().tolist() == [0, 3, 9, 21]
    assert space.get_yticks().tolist() == [0, 4, 8, 12]
    sections = [line.get_xdata()[0] for line in space.lines if line.get_gid() == "section"]
    assert sections == [0, 3, 9, 21]
    crowd = generators.nn_like(200, 0)
    space = plot.draw(crowd, stacked(crowd)).axes[0]
    assert len(set(np.diff(space.get_yticks()))) == 1
    assert np.log2(np.diff(space.get_yticks())[0]) % 1 == 0


@pytest.mark.parametrize("width", [85, 178])
def test_width(width: float, five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that a figure is as wide as a column, in the file as well."""
    picture.write(plot.draw(five, best, width=width), tmp_path / "plan.svg")
    root = ElementTree.parse(tmp_path / "plan.svg").getroot()
    assert float(root.get("width", "").removesuffix("pt")) == pytest.approx(width / 25.4 * 72)


@pytest.mark.parametrize("width", [0, 39.9, 2001, float("nan")])
def test_bad_widths(width: float, five: Problem, best: Plan) -> None:
    """Tests that a width that is none is refused with those that are."""
    with pytest.raises(MemplanError, match="give 40 to 2,000"):
        plot.draw(five, best, width=width)


def test_names_stay_inside_of_their_boxes() -> None:
    """Tests names that fit, that fit upright, that are cut to their ends, and no room at all."""
    rows = [
        Buffer("flat", start=10, end=100, size=10),
        Buffer("upright_name", start=0, end=6, size=60),
        Buffer("a name that is far too long for the box of layer_12", 10, 30, 20),
        Buffer("thin", start=30, end=100, size=1),
        Buffer("no room", start=94, end=100, size=8),
    ]
    problem = Problem(rows)
    plan = Plan.of(problem, [50, 0, 0, 30, 0])
    figure = plot.draw(problem, plan, width=85)
    space = figure.axes[0]
    figure.draw_without_rendering()
    texts = {text.get_text(): text for text in space.texts}
    cut, *whole = sorted(texts, reverse=True)
    assert whole == ["upright_name", "flat"]
    assert cut.startswith("…")
    assert cut.endswith("_12")
    assert texts["upright_name"].get_rotation() == 90
    for text in texts.values():
        name = next(id for id in problem.ids if id.endswith(text.get_text().removeprefix("…")))
        row = problem.index(name)
        low = space.transData.transform((rows[row].start, plan.offset(name)))
        high = space.transData.transform((rows[row].end, plan.offset(name) + rows[row].size))
        box = text.get_window_extent()
        assert (low <= (box.x0, box.y0)).all()
        assert ((box.x1, box.y1) <= high).all()


def test_boxes_are_tinted_by_size() -> None:
    """Tests that a larger buffer is darker, and that names read on all of them."""
    sizes = (8, 64, 512)
    problem = Problem([Buffer(str(size), at, at + 1, size) for at, size in enumerate(sizes)])
    space = plot.draw(problem, stacked(problem)).axes[0]
    (drawn,) = [artist for artist in space.collections if artist.get_gid() == "buffers"]
    drawn.update_scalarmappable()
    grey = drawn.get_facecolor()[:, :3] @ (0.299, 0.587, 0.114)
    assert grey.tolist() == sorted(grey, reverse=True)
    assert len(set(grey.tolist())) == 3
    assert grey[-1] > 0.5
    assert {text.get_color() for text in space.texts} <= {"black"}


def test_classes_have_colours_and_a_legend(five: Problem, best: Plan) -> None:
    """Tests colours by class, the rest in grey, letters that read on them, and strange names."""
    classes = ["Conv", "Conv", "$x$", "", "Conv"]
    figure = plot.draw(five, best, classes=classes)
    (drawn,) = [a for a in figure.axes[0].collections if a.get_gid() == "buffers"]
    first, second, third, fourth, fifth = map(tuple, drawn.get_facecolor())
    assert first == second == fifth
    assert len({first, third, fourth}) == 3
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["Conv", "unknown", "$x$"]
    colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert (colours["b1"], colours["b4"]) == ("white", "black")
    many = plot.draw(five, best, classes=list("abcde") * 1).legends[0]
    assert [text.get_text() for text in many.get_texts()] == list("abcde")
    with pytest.raises(MemplanError, match="4 classes for 5 buffers"):
        plot.draw(five, best, classes=classes[1:])


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
    picture.write(plot.draw(problem, stacked(problem)), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(MAGIC[".png"])


@pytest.mark.parametrize("suffix", MAGIC)
def test_formats(suffix: str, five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that the suffix chooses the format, and the same plan gives the same bytes."""
    first, second = tmp_path / f"1{suffix}", tmp_path / f"2{suffix.upper()}"
    picture.write(plot.draw(five, best), first)
    picture.write(plot.draw(five, best), second)
    assert first.read_bytes().startswith(MAGIC[suffix])
    assert first.read_bytes() == second.read_bytes()


def test_text_is_text(tmp_path: Path) -> None:
    """Tests that names can be searched in SVG, that PDF embeds TrueType, and nothing is Type 3."""
    problem = Problem([Buffer("weights", start=0, end=4, size=64)])
    plan = Plan.of(problem, [0])
    picture.write(plot.draw(problem, plan), tmp_path / "plan.svg")
    plot.draw(problem, plan).savefig(tmp_path / "plan.pdf")  # as from a notebook
    texts = {e.text for e in ElementTree.parse(tmp_path / "plan.svg").iter() if e.text}
    assert {"weights", "time", "address (bytes)"} <= texts
    pdf = (tmp_path / "plan.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_names_cannot_harm_a_file(tmp_path: Path) -> None:
    """Tests that markup, formulas, commands and letters that no font has are only text."""
    names = ["<img src=x onerror=alert(1)>", "a\x00b\x1b[31m", "\u2028", "\U0010ffff", "$\\frac$"]
    rows = [Buffer(name, at, at + 1, 64) for at, name in enumerate(names)]
    problem = Problem(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture.write(
            plot.draw(problem, Plan.of(problem, [0] * 5), width=500), tmp_path / "plan.svg"
        )
        picture.write(
            plot.draw(problem, Plan.of(problem, [0] * 5), width=500), tmp_path / "plan.pdf"
        )
    root = ElementTree.parse(tmp_path / "plan.svg")
    assert not [e for e in root.iter() if e.tag.endswith("}img")]
    texts = {e.text for e in root.iter() if e.text}
    assert {names[0], "a\\x00b\\x1b[31m", "\\u2028", names[4]} <= texts


def test_thirty_thousand_buffers(tmp_path: Path) -> None:
    """Tests that a large plan is all there, as pixels, in a file of a size that opens."""
    problem = generators.nn_like(30_000, 0)
    plan = stacked(problem)
    assert len(part(plot.draw(problem, plan).axes[0], "buffers")) == 30_000
    picture.write(plot.draw(problem, plan), tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").stat().st_size < 2_000_000
    names = {e.tag.rpartition("}")[2] for e in ElementTree.parse(tmp_path / "plan.svg").iter()}
    assert "image" in names


def test_no_offsets(five: Problem, tmp_path: Path) -> None:
    """Tests that a plan without offsets is refused, and an old picture stays."""
    (tmp_path / "plan.png").write_text("old")
    with pytest.raises(PlanError, match="no offsets to draw"):
        picture.write(
            plot.draw(five, Plan.of(five, None, status=Status.UNKNOWN)), tmp_path / "plan.png"
        )
    assert (tmp_path / "plan.png").read_text() == "old"


def test_other_suffixes(five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that an unknown suffix, or none, is refused with those that are known."""
    for name in ("plan.jpg", "plan"):
        with pytest.raises(FormatError, match=r"must be \.png, \.svg or \.pdf"):
            picture.write(plot.draw(five, best), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_a_folder_that_cannot_be(five: Problem, best: Plan, tmp_path: Path) -> None:
    """Tests that a new folder is made, and that a file that cannot be written is named."""
    picture.write(plot.draw(five, best), tmp_path / "new" / "plan.png")
    with pytest.raises(FormatError, match=r"again\.png: the file cannot be written"):
        picture.write(plot.draw(five, best), tmp_path / "new" / "plan.png" / "again.png")


def test_without_matplotlib(five: Problem, best: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without the extra the error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"memplan\[plot\]"):
        plot.draw(five, best)
