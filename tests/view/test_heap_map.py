"""Tests of `memplan.view.heap_map`, `panel` and `addresses`, and of `memplan view` with several."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from memplan.base.errors import FormatError, MemplanError, MissingExtraError, PlanError
from memplan.cli import app, main
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.formats.trace_json import write_trace
from memplan.problem.plan import Plan, Status
from memplan.problem.trace import Trace
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.graph_json import write_graph
from memplan.referee import verify
from memplan.solvers import solve
from memplan.view import heap_map, panel, picture, plot
from memplan.view.addresses import compress
from memplan_lab.bench import generators

matplotlib = pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow

MIB = 1 << 20
PAGE = 4096


def boxes(axes) -> list[tuple[float, float, float, float]]:
    """Return start, lower, end and upper of every box."""
    (drawn,) = [artist for artist in axes.collections if artist.get_gid() == "buffers"]
    corners = [path.vertices[:4].tolist() for path in drawn.get_paths()]
    return [(*box[0], *box[2]) for box in corners]


def colours(axes) -> list[tuple[float, ...]]:
    """Return the colour of every box, as it is drawn."""
    (drawn,) = [artist for artist in axes.collections if artist.get_gid() == "buffers"]
    drawn.update_scalarmappable()
    return [tuple(colour) for colour in drawn.get_facecolor().tolist()]


def words(axes) -> list[str]:
    """Return what is written at a panel: name, facts, remarks."""
    return [axes.get_title(loc="left"), *(text.get_text() for text in axes.texts)]


def stacked(problem: Problem) -> Plan:
    """Return a plan that shares nothing."""
    return Plan.of(problem, np.cumsum(problem.size) - problem.size)


def traced(rows: Iterable[Sequence[int]], **columns: object) -> Trace:
    """Return a trace of (start, end, size, address), each row in an operator of its own name."""
    start, end, size, address = (list(column) for column in zip(*rows, strict=True))
    scopes = [((".", 0), (f"aten::op{at % 9}", 0), ("aten::empty", 0)) for at in range(len(start))]
    return Trace.from_arrays(start, end, size, scopes, **{"address": address, **columns})


def traced_like(problem: Problem, address: np.ndarray) -> Trace:
    """Return the trace of a run that asks for the buffers of a problem."""
    rows = zip(problem.start, problem.end, problem.size, address, strict=True)
    return traced(sorted(rows, key=lambda row: row[0]))


def two_mappings() -> Trace:
    """Return a run in a heap and in a mapping far above it, the last allocation its result."""
    heap, mapping = 0x5500_0000_0000, 0x7F00_0000_0000
    return traced(
        [
            (0, 4, 2 * PAGE, heap),
            (1, 3, 100, heap + 2 * PAGE + 16),
            (2, 8, 3 * PAGE, mapping),
            (5, 9, PAGE, heap + 16),
            (6, 10, MIB, mapping + 64 * MIB),
        ],
        outlives=[False, False, False, False, True],
    )


# addresses ---------------------------------------------------------------------------------------


def test_addresses_that_nobody_used_are_cut_out() -> None:
    """Tests two mappings terabytes apart by hand."""
    run = two_mappings()
    where = compress(run.address[:4], run.size[:4])  # type: ignore[index]
    assert where.offset.tolist() == [0, 2 * PAGE + 16, 3 * PAGE, 16]
    assert where.cuts.tolist() == [3 * PAGE]
    assert where.touched == 6 * PAGE
    assert where.span == 0x7F00_0000_0000 + 3 * PAGE - 0x5500_0000_0000


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1 << 20, 0x7F00_0000_0000, (1 << 64) - (1 << 20)]),
            st.integers(0, 20 * PAGE),
            st.integers(1, 4 * PAGE),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_compressed_addresses_keep_order_sizes_and_distances(
    rows: list[tuple[int, int, int]],
) -> None:
    """Tests against a set of all pages: what is below stays below, by what was used between."""
    address = [base + within for base, within, _ in rows]
    size = [size for _, _, size in rows]
    where = compress(np.array(address, dtype=np.uint64), np.array(size))
    spread = zip(address, size, strict=True)
    pages = sorted({p for a, s in spread for p in range(a // PAGE, (a + s - 1) // PAGE + 1)})
    rank = {page: at for at, page in enumerate(pages)}
    assert where.offset.tolist() == [rank[a // PAGE] * PAGE + a % PAGE for a in address]
    assert where.touched == len(pages) * PAGE
    assert where.span == (pages[-1] - pages[0] + 1) * PAGE
    gaps = [at for at in range(1, len(pages)) if pages[at] > pages[at - 1] + 1]
    assert where.cuts.tolist() == [at * PAGE for at in gaps]


def test_no_addresses_are_no_special_case() -> None:
    """Tests a run in which nothing was allocated."""
    nothing = compress(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
    assert (nothing.touched, nothing.span, len(nothing.offset), len(nothing.cuts)) == (0, 0, 0, 0)


# panels ------------------------------------------------------------------------------------------


def test_a_panel_of_a_plan_has_every_buffer_where_the_plan_puts_it(
    five: Problem, five_offsets: list[int]
) -> None:
    """Tests boxes, the load, and the words above them, with the plan in another order."""
    other = five.shuffled(3)
    plan = Plan.of(five, five_offsets)
    (axes,) = heap_map.draw([panel.of_plan("exact", other, plan)]).axes
    assert set(boxes(axes)) == {
        *((0, 8, 3, 12), (3, 8, 9, 12), (0, 4, 9, 8), (9, 4, 21, 8), (0, 0, 21, 4))
    }
    assert [line.get_ydata()[0] for line in axes.lines] == [12]
    assert words(axes) == ["exact", "peak 12 bytes, optimal: equals the lower bound"]
    left, right = axes.get_xlim()
    assert left <= 0
    assert right >= 21


def test_gaps_are_empty_but_for_their_windows() -> None:
    """Tests that a panel shows what is held, and the reserved range."""
    gaps = (Gap(3, 5), Gap(7, 9, (2, 4)))
    problem = Problem([Buffer("a", 0, 10, 8, gaps=gaps)], reserved=[(8, 10)])
    (axes,) = heap_map.draw([panel.of_plan("a", problem, Plan.of(problem, [0]))]).axes
    assert set(boxes(axes)) == {(0, 0, 3, 8), (5, 0, 7, 8), (7, 2, 9, 4), (9, 0, 10, 8)}
    (reserved,) = [patch for patch in axes.patches if patch.get_gid() == "reserved"]
    assert (reserved.get_y(), reserved.get_height()) == (8, 2)


def test_a_panel_of_a_recorded_run() -> None:
    """Tests boxes at compressed addresses, what is said of them, marks, and no result in it."""
    axes, _ = heap_map.draw([panel.of_recording("glibc", two_mappings())]).axes
    kib = PAGE / 1024
    assert boxes(axes) == [
        (0, 0, 4, 2 * kib),
        (1, 2 * kib + 16 / 1024, 3, 2 * kib + 116 / 1024),
        (2, 3 * kib, 8, 6 * kib),
        (5, 16 / 1024, 9, kib + 16 / 1024),
    ]
    assert words(axes) == [
        "glibc",
        "touched 24 KiB (1.194 × load), spread over 42.00 TiB, 1 cut",
    ]
    (cuts,) = [artist for artist in axes.collections if artist.get_gid() == "cuts"]
    assert {y for mark in cuts.get_segments() for _, y in mark} == {3 * kib}


def test_a_run_in_one_piece_has_no_cuts() -> None:
    """Tests that neither a mark nor a word is left of what is not there."""
    run = traced([(0, 2, PAGE, PAGE), (1, 3, PAGE, 2 * PAGE)])
    (axes,) = heap_map.draw([panel.of_recording("one", run)]).axes
    assert words(axes)[1] == "touched 8 KiB = load, spread over 8 KiB"
    assert [artist.get_gid() for artist in axes.collections] == ["buffers"]


def test_live_allocations_of_a_recorded_run_stay_apart() -> None:
    """Tests, by the referee, a run that uses addresses of two mappings again and again."""
    problem = generators.nn_like(300, 0)
    offsets = solve(problem, "greedy").offsets
    mapping = np.where(np.arange(300) % 2, 1 << 30, 1 << 46)
    run = traced_like(problem, mapping + offsets)
    shown = panel.of_recording("far", run)
    plan = Plan.of(shown.problem, shown.offset)
    verify(shown.problem, plan)
    assert shown.height - PAGE < plan.peak <= shown.height


# the whole ---------------------------------------------------------------------------------------


def test_all_panels_have_the_same_scales(five: Problem, five_offsets: list[int]) -> None:
    """Tests one axis of time and of addresses, and the same colour for the same size."""
    larger = Problem([Buffer("a", -5, 3, 16), Buffer("b", 1, 40, 4)])
    figure = heap_map.draw(
        [
            panel.of_plan("one", five, Plan.of(five, five_offsets)),
            panel.of_plan("two", five, Plan.of(five, [8, 8, 4, 4, 12])),
            panel.of_plan("three", larger, Plan.of(larger, [4, 0])),
        ],
        title="all of them",
    )
    *places, key = figure.axes
    assert [words(axes)[0] for axes in places] == ["one", "two", "three"]
    assert {axes.get_ylim() for axes in places} == {(0, 20 * 1.04)}
    ((left, right),) = {axes.get_xlim() for axes in places}
    assert left <= -5
    assert right >= 40
    assert colours(places[0])[0] == colours(places[2])[1] != colours(places[2])[0]
    labels = [label.get_text() for label in key.get_yticklabels()]
    assert [labels[0], labels[-1]] == ["4 bytes", "16 bytes"]
    assert figure.get_suptitle() == "all of them"


def test_sizes_too_thin_to_be_seen_take_no_part_of_the_colours() -> None:
    """Tests that a byte next to a mebibyte leaves the scale to those that have an area."""
    problem = Problem([Buffer("a", 0, 1, MIB), Buffer("b", 0, 1, MIB >> 1), Buffer("c", 0, 1, 1)])
    *_, key = heap_map.draw([panel.of_plan("a", problem, stacked(problem))]).axes
    assert key.get_yticklabels()[0].get_text() == "4 KiB"


def test_a_panel_far_above_the_others_is_cut_off() -> None:
    """Tests that it does not flatten the others, and says where it ends; three times is no far."""
    problem = Problem([Buffer(f"b{at}", at, at + 1, 64) for at in range(4)])
    bump, tight = stacked(problem), Plan.of(problem, [0, 0, 0, 0])
    loose = Plan.of(problem, [0, 64, 128, 0])
    panels = [panel.of_plan(str(p.peak), problem, p) for p in (bump, tight, loose)]
    places = heap_map.draw(panels).axes
    assert places[0].get_ylim()[1] == 192 * 1.04
    assert "goes on to 256 bytes" in words(places[0])
    assert not any("goes on" in word for axes in places[1:] for word in words(axes))
    assert len(boxes(places[0])) == 4


def test_colours_of_operators() -> None:
    """Tests that an operator has one colour in all panels, most bytes first, the rest in grey."""
    run = traced([(at, at + 1, 9 * PAGE - at, at << 20) for at in range(9)])
    problem = run.problem()
    assert panel.operators_of(run) == tuple(f"aten::op{at}" for at in range(9))
    figure = heap_map.draw(
        [
            panel.of_plan("bump", problem, stacked(problem), panel.operators_of(run)),
            panel.of_recording("glibc", run),
        ],
        colour="class",
    )
    first, second = map(colours, figure.axes)
    assert first == second
    assert len(set(first[:7])) == 7
    assert first[7] == first[8]
    assert first[7] not in first[:7]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [*(f"aten::op{at}" for at in range(7)), "2 others"]


def test_who_requested_an_allocation() -> None:
    """Tests that it is the operator that a user wrote, or the module, or nothing."""
    scopes = [
        ((".", 0), (".a", 0), ("aten::conv2d", 0), ("aten::empty", 2)),
        ((".", 0), (".a", 1)),
        (),
    ]
    run = Trace.from_arrays([0, 0, 0], [1, 1, 1], [8, 8, 8], scopes)
    assert panel.operators_of(run) == ("aten::conv2d", "module .a", "no operator")


@pytest.mark.parametrize("count", range(1, 9))
def test_the_lowest_panel_of_every_column_has_a_time_axis(count: int, five: Problem) -> None:
    """Tests the grid for full and for half-empty rows."""
    places = heap_map.draw(
        [panel.of_plan(str(at), five, stacked(five)) for at in range(count)]
    ).axes
    assert len(places) == count
    columns = {round(axes.get_subplotspec().colspan.start) for axes in places}
    for column in columns:
        below = [a for a in places if a.get_subplotspec().colspan.start == column]
        assert [a.get_xlabel() for a in below] == [*([""] * (len(below) - 1)), "time"]
        assert below[-1].xaxis.get_tick_params()["labelbottom"]


@pytest.mark.parametrize(
    "problem",
    [
        Problem([]),
        Problem([Buffer("z", 0, 1, 0)]),
        Problem([Buffer("$x^", -(1 << 61), 1 << 61, 1 << 61)]),
    ],
    ids=["nothing", "no-bytes", "huge"],
)
def test_odd_problems(problem: Problem, tmp_path: Path) -> None:
    """Tests that nothing, no bytes, huge numbers and names like formulas can be drawn."""
    made = panel.of_plan("$x^", problem, stacked(problem), ("$y^",) * len(problem))
    for colour in ("size", "class"):
        picture.write(heap_map.draw([made, made], colour=colour, title="$z^"), tmp_path / "map.png")
        assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_names_cannot_harm_a_file(tmp_path: Path) -> None:
    """Tests that markup and control characters in names, classes and titles are only text."""
    problem = Problem([Buffer("a", 0, 1, 8)])
    bad = "<b>\x1b[31m\x00"
    made = panel.of_plan(bad, problem, stacked(problem), (bad,))
    picture.write(heap_map.draw([made], colour="class", title=bad), tmp_path / "map.svg")
    texts = [e.text for e in ElementTree.parse(tmp_path / "map.svg").iter()]
    assert texts.count("<b>?[31m?") == 2
    assert "<b>\\x1b[31m\\x00" in texts


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_panels_give_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    """Tests every format twice."""
    run = two_mappings()
    panels = [panel.of_plan("a", run.problem(), stacked(run.problem()))]
    panels.append(panel.of_recording("b", run))
    for name in ("one", "two"):
        picture.write(heap_map.draw(panels), tmp_path / f"{name}{suffix}")
    one, two = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two


def test_ten_thousand_allocations(tmp_path: Path) -> None:
    """Tests that a long run is all there, as pixels, in a file of a size that opens."""
    problem = generators.nn_like(10_000, 0)
    run = traced_like(problem, np.cumsum(problem.size + 2 * PAGE))
    panels = [
        panel.of_plan("bump", run.problem(), stacked(run.problem())),
        panel.of_recording("glibc", run),
    ]
    assert [len(boxes(axes)) for axes in heap_map.draw(panels).axes[:2]] == [10_000, 10_000]
    picture.write(heap_map.draw(panels), tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size < 2_000_000
    names = {e.tag.rpartition("}")[2] for e in ElementTree.parse(tmp_path / "map.svg").iter()}
    assert "image" in names


def test_what_cannot_be_drawn_is_refused(five: Problem, tmp_path: Path) -> None:
    """Tests a sentence each for no panels, offsets, addresses, classes, and for a format."""
    with pytest.raises(MemplanError, match="no panel to draw"):
        heap_map.draw([])
    with pytest.raises(PlanError, match="no offsets to draw"):
        panel.of_plan("a", five, Plan.of(five, None, status=Status.UNKNOWN))
    with pytest.raises(MemplanError, match=r"^a\.json has no addresses of a recorded run"):
        panel.of_recording("a.json", traced([(0, 1, 8, 0)], address=None))
    bare = panel.of_plan("bare", five, stacked(five))
    with pytest.raises(MemplanError, match="bare has no classes to colour by"):
        heap_map.draw([bare], colour="class")
    with pytest.raises(FormatError, match=r"must be \.png, \.svg or \.pdf"):
        picture.write(heap_map.draw([bare]), tmp_path / "map.jpg")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(five: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without the extra the error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"memplan\[plot\]"):
        heap_map.draw([panel.of_plan("a", five, stacked(five))])


# the command line --------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[list[panel.Panel]]:
    """Return a list that gets the panels of every heap map that is drawn."""
    maps: list[list[panel.Panel]] = []
    draw = heap_map.draw

    def watched(panels: Sequence[panel.Panel], **named: Any) -> object:
        maps.append(list(panels))
        return draw(panels, **named)

    monkeypatch.setattr(heap_map, "draw", watched)
    return maps


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, now the current one, with a problem, a plan of it, and two traces."""
    monkeypatch.chdir(tmp_path)
    five = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
    (tmp_path / "five.csv").write_text(five)
    plan = "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\n"
    (tmp_path / "plan.csv").write_text(f"{plan}b5,0,21,4,0\n")
    (tmp_path / "run.json").write_text(write_trace(two_mappings()))
    nowhere = traced([(0, 1, 8, 0)], address=None)
    (tmp_path / "nowhere.json").write_text(write_trace(nowhere))
    return tmp_path


def memplan(words: str) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(app, words.split())


def test_several_solvers_make_a_heap_map(files: Path, drawn: list[list[panel.Panel]]) -> None:
    """Tests that the panels are the solvers', in the order of the command line, and verify."""
    run = memplan("view five.csv --solver greedy --solver exact -o map.png")
    assert (run.exit_code, run.output) == (0, "map.png: written\n")
    assert (files / "map.png").read_bytes().startswith(b"\x89PNG")
    ((greedy, exact),) = drawn
    assert [greedy.name, exact.name] == ["greedy", "exact"]
    assert exact.height == 12
    assert exact.classes is None


def test_a_plan_stands_beside_solvers(files: Path, drawn: list[list[panel.Panel]]) -> None:
    """Tests that a plan's file is the first panel, with its own offsets."""
    assert memplan("view five.csv plan.csv --solver greedy -o map.svg").exit_code == 0
    ((given, solved),) = drawn
    assert [given.name, solved.name] == ["plan.csv", "greedy"]
    assert given.offset.tolist() == [8, 8, 4, 4, 0]


@pytest.mark.parametrize("words", ["five.csv", "five.csv --solver exact", "five.csv plan.csv"])
def test_one_plan_is_drawn_in_detail(
    words: str, files: Path, drawn: list[list[panel.Panel]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that one plan is no heap map, and that the solver is `auto` where none is named."""
    detailed = Mock(wraps=plot.draw)
    monkeypatch.setattr(plot, "draw", detailed)
    assert memplan(f"view {words} -o map.png").exit_code == 0
    assert [call.args[1].peak for call in detailed.call_args_list] == [12]
    assert drawn == []


def test_the_width_of_a_picture(files: Path) -> None:
    """Tests that `--width` is that of the file, in millimetres."""
    assert memplan("view five.csv plan.csv --width 127 -o plan.svg").exit_code == 0
    root = ElementTree.parse(files / "plan.svg").getroot()
    assert root.get("width") == "360pt"


def test_recorded_runs_stand_beside_plans(files: Path, drawn: list[list[panel.Panel]]) -> None:
    """Tests the file's own addresses, those of another, and operators as colours."""
    (files / "other.json").write_text(write_trace(traced([(0, 1, 64, 0), (0, 1, 64, 1 << 40)])))
    run = memplan(
        "view run.json --recorded --recorded-from other.json --colour operator -o map.png"
    )
    assert (run.exit_code, run.output) == (0, "map.png: written\n")
    ((solved, own, other),) = drawn
    assert [p.name for p in (solved, own, other)] == [
        *("auto", "recorded: run.json", "recorded: other.json")
    ]
    assert solved.classes == own.classes == ("aten::op0", "aten::op1", "aten::op2", "aten::op3")
    assert (own.height, other.height) == (6 * PAGE, 2 * PAGE)
    assert solved.height == own.problem.max_load


def test_operators_of_a_model_are_its_colours(
    files: Path, drawn: list[list[panel.Panel]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that colours are types of operators, and kinds for what no operator makes."""
    tensors = (Tensor("x", 64, Kind.INPUT), Tensor("a", 256), Tensor("b", 256))
    operators = (
        Operator("first (of two)", "Gemm", (0,), (1,)),
        Operator("", "Relu", (1,), (2,)),
    )
    graph = Graph("chain", tensors, operators, inputs=(0,), outputs=(2,))
    (files / "model.json").write_text(write_graph(graph))
    classes = ("input", "Gemm", "Relu")
    detailed = Mock(wraps=plot.draw)
    monkeypatch.setattr(plot, "draw", detailed)
    words = "view model.json --include inputs --colour operator -o map.png"
    assert memplan(words).output == "map.png: written\n"
    assert detailed.call_args.kwargs["classes"] == classes
    assert memplan(f"{words} --solver greedy --solver exact").output == "map.png: written\n"
    assert [each.classes for each in drawn[0]] == [classes, classes]


def test_a_solver_without_a_plan_is_left_out(files: Path, drawn: list[list[panel.Panel]]) -> None:
    """Tests that the others are drawn, that it is said, and what happens if none is left."""
    late = "--solver hill_climb --nodes 1"
    run = memplan(f"view run.json {late} --recorded -o map.png")
    assert (run.exit_code, run.output) == (
        0,
        "memplan: hill_climb: unknown: the budget ended without a plan and without a proof; "
        "it is left out\nmap.png: written\n",
    )
    assert [[each.name for each in panels] for panels in drawn] == [["recorded: run.json"]]
    assert memplan(f"view five.csv {late} -o none.png").exit_code == 3
    assert not (files / "none.png").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("view five.csv --solver nobody -o map.png", 'there is no solver "nobody"'),
        (
            "view five.csv --recorded -o map.png",
            "five.csv: the file has no addresses of a recorded run",
        ),
        ("view nowhere.json --recorded -o map.png", "nowhere.json: the file has no addresses"),
        (
            "view run.json --recorded-from five.csv -o map.png",
            "five.csv: the file has no addresses",
        ),
        (
            "view run.json --recorded-from run.json -o run.json",
            "must be .html for a page, or .png, .svg or .pdf",
        ),
        (
            "view five.csv --solver nobody -o map.gif",
            "must be .html for a page, or .png, .svg or .pdf",
        ),
        ("view five.csv --colour operator -o map.png", "the file names no operators to colour by"),
        ("view five.csv --colour taste -o map.png", "taste"),
        ("view five.csv --width 10 -o map.png", "width is 10 mm; give 40 to 2,000"),
        (
            "view five.csv plan.csv --solver greedy --width 85 -o map.png",
            "--width is for a picture of one plan",
        ),
        ("view five.csv --width 85 -o map.html", "--width is for pictures"),
    ],
)
def test_a_bad_command_line_is_one_sentence(
    words: str, sentence: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that mistakes are named, and nothing is written."""
    before = sorted(files.iterdir())
    assert main(words.split()) == 2
    out, said = capsys.readouterr()
    assert (out, said.count("\n")) == ("", 1)
    assert sentence in said
    assert sorted(files.iterdir()) == before
