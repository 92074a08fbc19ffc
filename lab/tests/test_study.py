"""Tests of `memplan_lab.study`: what runs add up to, held against values computed by hand."""

from __future__ import annotations

import pytest

from memplan_lab.bench import summary
from memplan_lab.bench.latency import Case, Contention, Outcome, Row, Timing
from memplan_lab.bench.latency.profile import Profile
from memplan_lab.bench.latency.rows import Served
from memplan_lab.bench.suites import Case as ProblemCase
from memplan_lab.bench.suites import five_buffers
from memplan_lab.bench.tables import Shown
from memplan_lab.study import (
    ablations,
    backtracks,
    course,
    curves,
    failures,
    measures,
    memomalloc,
    memory,
    papers,
    quality,
)
from memplan_lab.study.blocks import Chart, Section
from memplan_lab.study.isomorphic import find_isomorphic
from memplan_lab.study.results import Run

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow


def run(case: str, solver: str, cpu: float | None, peak: int | None, **other: object) -> Run:
    """Return a run of suite `corpus` for the least peak; without a peak it found nothing."""
    fields: dict[str, object] = {
        "suite": "corpus",
        "n": 10,
        "objective": "min_peak",
        "status": "unknown" if peak is None else "feasible",
        "max_load": 100,
        "lower_bound": 100,
    }
    return Run(**{**fields, **other}, case=case, solver=solver, cpu_s=cpu, peak=peak)


def proved_run(case: str, solver: str, cpu: float, peak: int = 100, **other: object) -> Run:
    """Return a run that ended with a proof."""
    return run(case, solver, cpu, peak, status="optimal", lower_bound=peak, **other)


def only_tables(section: Section | None) -> list[Shown]:
    """Return the tables of a section that must be there."""
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Shown)]


def only_charts(section: Section | None) -> list[Chart]:
    """Return the charts of a section that must be there."""
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Chart)]


# auto proves a (100), b (104) and c; greedy reaches the peak of a, misses that of b, has no c.
RUNS = [
    proved_run("a", "auto", 0.0005),
    proved_run("b", "auto", 0.5, peak=104),
    proved_run("c", "auto", 2.0),
    run("a", "greedy", 0.0004, 100),
    run("b", "greedy", 0.0004, 130),
    run("c", "greedy", 0.001, None),
]


# Measures ----------------------------------------------------------------------------------------


def test_only_the_best_peak_counts_as_solved() -> None:
    """Tests that a worse plan is no answer where the least peak was asked for, and one to a fit."""
    judged = {(each.case, each.solver): each.solved for each in measures.judge(RUNS)}
    assert [case for case in "abc" if judged[case, "auto"]] == ["a", "b", "c"]
    assert [case for case in "abc" if judged[case, "greedy"]] == ["a"]
    fits = [run("a", "x", 1.0, 100, objective="fit"), run("a", "y", 1.0, 140, objective="fit")]
    assert all(each.solved for each in measures.judge(fits))


def test_the_best_bound_is_anybodys_but_a_cheats() -> None:
    """Tests that a bound of any solver counts, unless its plan was wrong."""
    cheat = run("b", "cheat", 0.1, 90, status="invalid", lower_bound=1_000)
    assert summary.best_bounds([*RUNS, cheat]) == {"a": 100, "b": 104, "c": 100}
    assert measures.best_peaks([*RUNS, cheat]) == {"a": 100, "b": 104, "c": 100}


def test_solved_within() -> None:
    """Tests the shares of figure 9: of three problems, by the times at which they are solved."""
    shares = measures.solved_within(measures.judge(RUNS))
    assert shares == {
        "auto": ([0.0005, 0.5, 2.0], [pytest.approx(value) for value in (100 / 3, 200 / 3, 100)]),
        "greedy": ([0.0004], [pytest.approx(100 / 3)]),
    }


def test_peaks_over_bounds() -> None:
    """Tests ratios over the best bound of the group, of what has a plan."""
    assert summary.over_bound(RUNS) == {
        "auto": {"a": 1.0, "b": 1.0, "c": 1.0},
        "greedy": {"a": 1.0, "b": 1.25},
    }


# Sections ----------------------------------------------------------------------------------------


def test_quality() -> None:
    """Tests the cells of peak over bound: counts, shares, mean, worst and its name."""
    ours, greedy = quality.lines(RUNS)
    assert ours == ("auto", "3 of 3", "100.0 %", "100.0 %", "1.0000", "1.0000", "–", "2.5 s")
    assert greedy[:3] == ("greedy", "2 of 3", "0.0 %")
    assert greedy[3:] == ("33.3 %", "1.1250", "1.2500", "b", "1.8 ms")
    (chart,) = only_charts(quality.section(RUNS))
    (axes,) = chart.figure.axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["greedy"] == [
        *([1.0, 0.0], [1.0, pytest.approx(100 / 3)]),
        *([1.25, pytest.approx(200 / 3)], [1.25, pytest.approx(200 / 3)]),
    ]
    assert quality.section([proved_run("a", "auto", 1.0, objective="fit")]) is None


def test_the_share_that_fits() -> None:
    """Tests lower bounds, best plans and no reuse by memory, and what counts as a problem."""
    size = 1 << 10
    runs = [
        proved_run("a", "auto", 0.1, peak=size),
        run("a", "bump", 0.1, 4 * size),
        run("b", "auto", 0.1, 3 * size, lower_bound=2 * size),
        run("b", "greedy", 0.1, 5 * size),
        run("b", "bump", 0.1, 6 * size),
        run("c", "auto", 0.1, None, lower_bound=size - 1),
        run("wrong", "auto", 0.1, 5, status="invalid", lower_bound=9 * size),
        run("no file", "auto", None, None, status="failed", n=0, lower_bound=0),
        run("other", "auto", 0.1, 7, objective="fit", suite="fits"),
    ]
    (table,) = only_tables(memory.section(runs))
    assert table.headings == ("memory", "lower bound", "best plan", "no reuse")
    assert table.lines == [
        ("1 KiB", "50.0 %", "25.0 %", "0.0 %"),
        ("2 KiB", "75.0 %", "25.0 %", "0.0 %"),
        ("4 KiB", "75.0 %", "50.0 %", "25.0 %"),
        ("8 KiB", "75.0 %", "50.0 %", "50.0 %"),
    ]
    (chart,) = only_charts(memory.section(runs))
    assert chart.name == "fits-corpus"
    (axes,) = chart.figure.axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["best plan"] == [[1023, 0], [1024, 25], [3072, 50], [6144, 50]]
    assert axes.xaxis.get_major_formatter()(65536.0) == "64 KiB"
    assert memory.find_needs(runs[2:4]) == {"lower bound": [2048], "best plan": [3072]}
    assert memory.section(runs[-4:]) is None


def test_problems_that_need_nothing_fit() -> None:
    """Tests that buffers without a size are drawn, though a logarithmic axis has no zero."""
    empty = proved_run("a", "auto", 0.1, peak=0, max_load=0)
    (table,) = only_tables(memory.section([empty]))
    assert table.lines == [("1 byte", "100.0 %", "100.0 %")]


def test_figure_9_is_drawn_by_group() -> None:
    """Tests a chart for each suite and capacity, with the shares as stairs to the last time."""
    tight = {"suite": "corpus at 110 % of the best peak", "objective": "fit"}
    runs = [
        *(proved_run(f"{at}", "auto", 0.1 * (at + 1)) for at in range(10)),
        *(run(f"{at}", "greedy", 0.01, 100 + (at >= 5)) for at in range(10)),
        *(run(f"{at}", "bump", 0.01, 200) for at in range(10)),
        *(proved_run(f"{at}", "auto", 1.0, **tight) for at in range(10)),
        *(proved_run(f"{at}", "auto", 1.0, suite="few") for at in range(9)),
    ]
    charts = only_charts(curves.solved_against_time(runs))
    assert [chart.name for chart in charts] == [
        "solved-corpus",
        "solved-corpus-at-110-of-the-best-peak",
    ]
    (axes,) = charts[0].figure.axes
    ours, greedy, bump = (line.get_xydata().tolist() for line in axes.lines)
    assert ours[:2] == [[0.01, 0.0], [0.1, 10.0]]
    assert ours[-2:] == [[1.0, 100.0], [1.0, 100.0]]
    assert greedy == [[0.01, 0.0], *([0.01, 10.0 * at] for at in range(1, 6)), [1.0, 50.0]]
    assert bump == [[0.01, 0.0], [1.0, 0.0]]
    assert axes.get_xscale() == "log"


def test_figure_10_counts_the_best_peak_alone() -> None:
    """Tests that success is that of figure 9, by size."""
    runs = [
        made
        for at in range(3)
        for made in (proved_run(f"{at}", "auto", 0.1), run(f"{at}", "greedy", 0.1, 100 + at))
    ]
    (chart,) = only_charts(curves.time_against_size(runs))
    _, success = chart.figure.axes
    assert [line.get_xydata().tolist() for line in success.lines] == [
        [[10, 100]],
        [[10, pytest.approx(100 / 3)]],
    ]


def test_isomorphic_solutions_are_those_of_the_paper() -> None:
    """Tests table 1 of MiniMalloc: eight orders, four and three monotonic, one canonical."""
    found = list(find_isomorphic(five_buffers()))
    names = [" ".join(five_buffers().ids[row] for row in each.rows) for each in found]
    assert names == [
        "b5 b3 b1 b2 b4",
        "b5 b3 b1 b4 b2",
        "b5 b3 b2 b1 b4",
        "b5 b3 b2 b4 b1",
        "b5 b3 b4 b1 b2",
        "b5 b3 b4 b2 b1",
        "b5 b4 b3 b1 b2",
        "b5 b4 b3 b2 b1",
    ]
    assert [at for at, each in enumerate(found, 1) if each.offset_monotonic] == [5, 6, 7, 8]
    assert [at for at, each in enumerate(found, 1) if each.index_monotonic] == [1, 2, 5]
    assert found[-1].offsets == (0, 4, 4, 8, 8)


def test_the_challenging_table() -> None:
    """Tests times by solver, with what ran out of time or does not support it, and the paper's."""
    hard = {"suite": "challenging", "objective": "fit"}
    runs = [
        proved_run("C", "minimalloc", 0.5, **hard),
        run("C", "telamalloc", 60.0, None, wall_s=60.0, timeout_s=60.0, **hard),
        run("E", "telamalloc", 2.0, None, wall_s=3.0, timeout_s=60.0, **hard),
        run("E", "minimalloc", 1.0, None, **hard),
        proved_run("A", "minimalloc", 4.0, **hard),
        run("A", "telamalloc", None, None, **hard | {"status": "unsupported"}),
        proved_run("A", "minimalloc:dominance=off", 9.0, **hard),
    ]
    (table,) = only_tables(papers.challenging(runs))
    assert table.headings == ("benchmark", "minimalloc", "telamalloc", "MiniMalloc in the paper")
    assert table.lines == [
        ("A", "4 s", "unsupported", "4.91 s"),
        ("C", "500 ms", "> 60 s", "637 ms"),
        ("E", "> 1 s", "gave up: 2 s", "3.72 s"),
    ]


def test_the_table_of_microbenchmarks() -> None:
    """Tests total and step times of telamalloc, with the spread where there were repetitions."""
    micro = {"suite": "microbenchmarks", "objective": "fit"}
    often = {"nodes": 100, "spread_s": 0.001, "repeats": 5}
    runs = [
        proved_run("full-overlap-100", "telamalloc", 0.05, **often, **micro),
        proved_run("other", "telamalloc", 0.05, nodes=0, **micro),
        proved_run("other", "auto", 0.01, **micro),
    ]
    (table,) = only_tables(papers.microbenchmarks(runs))
    assert table.lines == [
        ("full-overlap-100", "50 ms ± 1 ms", "0.5 ms", "142 ms", "1.42 ms"),
        ("other", "50 ms", "–", "–", "–"),
    ]


def test_the_times_on_the_models() -> None:
    """Tests ratios and times by hand, with limits hatched, and that ablations are left out."""
    fits = {"suite": "models at 110 %", "objective": "fit"}
    learned, mip = "telamalloc:learned=on", "mip:start=off"
    runs = [
        proved_run("a", "telamalloc", 0.002, **fits),
        proved_run("a", learned, 0.003, **fits),
        run("a", mip, 10.0, None, **fits),
        proved_run("a", "telamalloc:phases=off", 0.001, **fits),
        proved_run("b", "telamalloc", 0.004, **fits),
        proved_run("b", learned, 0.002, **fits),
        run("c", "telamalloc", 5.0, None, **fits),
        proved_run("c", learned, 0.5, **fits),
        proved_run("d", learned, 0.5, **fits),
    ]
    section = papers.times_on_models(runs)
    (table,) = only_tables(section)
    assert table.headings == ("benchmark", "telamalloc", learned, mip)
    assert table.lines == [
        ("a", "2 ms", "3 ms", "> 10 s"),
        ("b", "4 ms", "2 ms", "–"),
        ("c", "> 5 s", "500 ms", "–"),
        ("median over telamalloc", "–", "1.00×", "≥ 5,000.00×"),
    ]
    relative, absolute = (chart.figure.axes[0] for chart in only_charts(section))
    heights = [bar.get_height() for bar in relative.patches]
    assert heights == pytest.approx([1.0, 1.0, 1.5, 0.5, 5000.0])
    assert [bool(bar.get_hatch()) for bar in relative.patches] == [*[False] * 4, True]
    heights = [bar.get_height() for bar in absolute.patches]
    assert heights == pytest.approx([0.002, 0.004, 5.0, 0.003, 0.002, 0.5, 10.0])
    assert absolute.get_yscale() == "log"
    assert [label.get_text() for label in absolute.get_xticklabels()] == ["a", "b", "c"]
    assert papers.times_on_models(runs[:1]) is None
    assert papers.times_on_models([run("a", "telamalloc", 1.0, 100, suite="models")]) is None


def test_the_table_of_heuristics() -> None:
    """Tests memory over the least peak that any solver reached, and whether that is proved."""
    models = {"suite": "models"}
    runs = [
        proved_run("m", "auto", 0.1, peak=200, **models),
        run("m", "contention_skyline", 0.002, 250, **models),
        run("k", "contention_skyline", 0.002, 110, **models),
        run("k", "greedy", 0.001, 100, lower_bound=99, max_load=99, **models),
    ]
    (table,) = only_tables(papers.heuristics(runs))
    assert table.lines == [
        ("m", "yes", "1.25×", "2 ms", "–", "–"),
        ("k", "yes", "1.10×", "2 ms", "1.00×", "1 ms"),
    ]
    unproved = run("m", "greedy", 0.1, 200, lower_bound=150, **models)
    assert only_tables(papers.heuristics([unproved]))[0].lines[0][1] == "no"


def test_ablations_of_fits_have_no_optimal_ones() -> None:
    """Tests that where a fit was asked for, no column counts proofs that were not asked for."""
    fits = {"objective": "fit", "status": "fits", "lower_bound": 90}
    runs = [run("a", solver, 0.1, 100, **fits) for solver in ("exact", "exact:nogoods=off")]
    (table,) = only_tables(ablations.section(runs))
    assert "optimal" not in table.headings
    assert {len(line) for line in table.lines} == {len(table.headings)} == {7}
    assert [line[:2] for line in table.lines] == [
        ("(default)", "1 of 1"),
        ("nogoods=off", "1 of 1"),
    ]


def test_ablations_compare_with_the_solver_as_it_is() -> None:
    """Tests sums over all problems, and geometric means over those that both solved."""
    base, off = "minimalloc", "minimalloc:dominance=off"
    runs = [
        proved_run("a", base, 0.1, nodes=100),
        proved_run("a", off, 0.2, nodes=400),
        proved_run("b", base, 0.1, nodes=100),
        proved_run("b", off, 0.8, nodes=1_600),
        proved_run("c", base, 0.1, nodes=100),
        run("c", off, 9.0, None, nodes=50_000),
        proved_run("c", "auto", 0.1),
    ]
    (table,) = only_tables(ablations.section(runs))
    plain, switched = table.lines
    assert plain[:4] == ("(default)", "3 of 3", "3", "300")
    assert switched == ("dominance=off", "2 of 3", "2", "52,000", "–", "10 s", "8.00", "4.00")
    learned = [proved_run("a", "telamalloc", 1.0), proved_run("a", "telamalloc:learned=on", 1.0)]
    assert ablations.section(learned) is None


def test_backtracks_with_and_without_the_model() -> None:
    """Tests pairs of counts, with a search that fails at the most of its group, and the verdict."""
    runs = [
        proved_run("easy", backtracks.PLAIN, 0.1, backtracks=0),
        proved_run("easy", backtracks.LEARNED, 0.1, backtracks=3),
        run("hard", backtracks.PLAIN, 2.0, None, backtracks=10),
        proved_run("hard", backtracks.LEARNED, 0.5, backtracks=5_000),
        proved_run("alone", backtracks.PLAIN, 0.5, backtracks=7_000),
    ]
    section = backtracks.section(runs)
    (table,), (chart,) = only_tables(section), only_charts(section)
    assert table.lines[0][:4] == ["corpus", "1", "1", "1"]
    points = next(each for each in chart.figure.axes[0].collections if each.get_gid() == "corpus")
    assert points.get_offsets().tolist() == [[0, 3], [7_000, 5_000]]
    assert backtracks.section(runs[:1]) is None


def test_failures_are_listed_by_name() -> None:
    """Tests that errors are reported, and that running out of time is no failure."""
    wrong = run("x", "auto", None, None, status="failed", error="it was killed")
    (table,) = only_tables(failures.section([*RUNS, wrong]))
    assert table.lines == [("corpus", "x", "auto", "failed", "it was killed")]
    assert failures.section(RUNS) is None


# MemoMalloc --------------------------------------------------------------------------------------


def latency(network: str, batch: int, allocator: str, eager: float, at: int = 0) -> Row:
    """Return an inference that takes a second with the slab; half of its allocations are small."""
    one, other = (Timing(seconds, seconds, 0.0) for seconds in (eager, 1.0))
    outcome = Outcome(one, other, sizes=(0, 0, 2, 0, 1, 1), equal=True)
    return Row(Case(network, 128, batch, 1), allocator, at, outcome)


LATENCIES = [
    latency(network, batch, allocator, eager, at)
    for network, batch, allocator, eager, at in (
        ("vgg16", 1, "glibc", 1.0, 0),
        ("vgg16", 1, "jemalloc", 2.0, 0),
        ("vgg16", 1, "glibc", 1.0, 1),
        ("vgg16", 1, "jemalloc", 4.0, 1),
        ("vgg16", 4, "glibc", 1.5, 0),
        ("vgg16", 4, "jemalloc", 5.0, 0),
        ("dcgan", 1, "glibc", 2.0, 0),
        ("dcgan", 1, "jemalloc", 1.5, 0),
    )
]


def test_the_figures_of_memomalloc() -> None:
    """Tests ratios with their errors by unit size, and the shares of allocations by size."""
    charts = {chart.name: chart for chart in only_charts(memomalloc.section([], LATENCIES))}
    assert list(charts) == [
        *("memomalloc-2-3", "memomalloc-5-1"),
        *("memomalloc-4-1-glibc-1", "memomalloc-4-1-jemalloc-1"),
    ]
    axes = charts["memomalloc-4-1-jemalloc-1"].figure.axes[0]
    drawn = {line.get_gid(): line for line in axes.lines}
    assert list(drawn["vgg16"].get_xdata()) == [128, 512]
    assert list(drawn["vgg16"].get_ydata()) == pytest.approx([3.0, 5.0])  # the mean of 2 and 4
    assert list(drawn["dcgan"].get_ydata()) == pytest.approx([1.5])
    band = axes.collections[0].get_paths()[0].vertices
    assert {round(y, 6) for x, y in band if x == 128} == {2.0, 4.0}  # 3, more or less sqrt(2 / 2)
    sizes = {line.get_gid(): line for line in charts["memomalloc-2-3"].figure.axes[0].lines}
    steps = dict(zip(sizes["dcgan"].get_xdata(), sizes["dcgan"].get_ydata(), strict=True))
    assert (steps[8.0], steps[16.0], steps[32.0]) == (50.0, 50.0, 75.0)
    least = charts["memomalloc-5-1"].figure.axes[0].lines
    assert [line.get_gid() for line in least] == ["vgg16", "dcgan"]


def test_bytes_of_jemalloc_stand_beside_the_slab() -> None:
    """Tests figure 5.2: what was active after each operator, and the slab, which stays."""
    timing = Timing(1.0, 1.0, 0.0)
    outcome = Outcome(timing, timing, peak=90, sizes=(1,), active=(50, 70, 20), equal=True)
    rows = [Row(Case("vgg16", 128, 1, 1), "jemalloc", 0, outcome)]
    charts = {chart.name: chart for chart in only_charts(memomalloc.section([], rows))}
    axes = charts["memomalloc-5-2-vgg16-1x128-1-jemalloc"].figure.axes[0]
    drawn = {line.get_gid(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {"jemalloc": [[1, 50], [2, 70], [3, 20]], "slab": [[1, 90], [3, 90]]}


def test_contention_by_network() -> None:
    """Tests figures 2.1 and 2.2: the share of time spent on memory, and waits per inference."""
    case = Case("vgg16", 128, 1, 2)
    rows = [
        Contention(case, "glibc", False, Served((1, 2), 4), Profile(200, 20, 6, 4, 0.5, 3)),
        Contention(case, "glibc", True, Served((1, 2), 0), Profile(100, 0, 1, 0, 0.0, 0)),
        Contention(case, "jemalloc", False, error="it crashed"),
    ]
    shares, waits = only_charts(memomalloc.section([], [], rows))
    for chart, glibc, slab in ((shares, 15.0, 1.0), (waits, 125.0, 0.0)):
        drawn = {line.get_gid(): line.get_ydata() for line in chart.figure.axes[0].lines}
        assert {name: list(values) for name, values in drawn.items()} == {
            "glibc": [glibc],
            "slab": [slab],
        }


def test_heap_maps_of_the_planners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests appendix 8.1: a panel for each planner of the network with the fewest buffers."""
    problem = five_buffers().with_capacity(None)
    cases = [ProblemCase("memomalloc", "net", lambda: problem)]
    monkeypatch.setattr(memomalloc.suites, "cases", lambda suite: cases)
    mine = {"suite": "memomalloc", "fingerprint": problem.fingerprint, "timeout_s": 5.0}
    runs = [
        proved_run("net", "bump", 0.1, peak=20, **mine),
        proved_run("net", "greedy_by_size", 0.1, peak=12, **mine),
        proved_run("other", "bump", 0.1, n=99, **mine),
    ]
    charts = {chart.name: chart for chart in only_charts(memomalloc.section(runs, []))}
    assert charts["memomalloc-8-1"].caption == "Appendix 8.1: heap maps of net, by strategy."
    assert len(charts["memomalloc-8-1"].figure.axes) >= 2


# The examples ------------------------------------------------------------------------------------


def test_the_example_of_the_course_text() -> None:
    """Tests its figures: 330 KB without sharing, 230 KB planned, and what alignment costs."""
    strategies, alignment = only_tables(course.section())
    lines = {line[0]: line[1:] for line in strategies.lines}
    assert lines["a buffer for each tensor"] == ("4", "330")
    assert lines["offsets in one pool"] == ("1", "230")
    assert lines["shared buffers, by start, first fit"] == ("3", "230")
    assert len(lines) == 2 + 9
    assert alignment.lines[0] == ("1", "230")
    assert [int(line[1]) for line in alignment.lines] == sorted(
        int(line[1]) for line in alignment.lines
    )
    assert [chart.name for chart in only_charts(course.section())] == [
        *("course-peak", "course-interference", "course-load")
    ]


def test_sizes_of_libraries() -> None:
    """Tests that the core of this installation is there, with its size."""
    (table,) = only_tables(papers.library_sizes())
    sizes = {line[1]: int(line[2].removesuffix(" kB").replace(",", "")) for line in table.lines}
    assert min(sizes["memplan._core"], sizes["memplan._published"]) > 100


def test_the_original_suite() -> None:
    """Tests figure 8: the five solvers on the models, and medians over minimalloc's time."""
    fits: dict[str, object] = {"suite": "models", "objective": "fit"}
    runs = [
        proved_run("a", "minimalloc", 0.001, **fits),
        proved_run("a", "telamalloc", 0.004, **fits),
        proved_run("a", "mip:start=off", 0.1, **fits),
        proved_run("a", "cp_sat", 0.1, **fits),
    ]
    (table,) = only_tables(papers.original_suite(runs))
    assert table.headings == ("benchmark", "minimalloc", "telamalloc", "mip:start=off")
    assert table.lines[-1] == ("median over minimalloc", "–", "4.00×", "100.00×")
    assert papers.original_suite(runs[1:]) is None


def test_the_table_of_ratios() -> None:
    """Tests the networks with the least and the largest ratio for each allocator."""
    (table,) = only_tables(memomalloc.section([], LATENCIES))
    assert table.lines == [
        ("glibc", "1", "2", "1.25", "vgg16", "2.00", "dcgan"),
        ("jemalloc", "1", "2", "1.50", "dcgan", "4.00", "vgg16"),
    ]


def test_the_planners_of_memomalloc() -> None:
    """Tests times and peaks of planners; a run without a plan has neither."""
    runs = [
        run("vgg16", "greedy", 0.001, 1 << 20, suite="memomalloc"),
        run("dcgan", "greedy", 0.002, 3 << 20, suite="memomalloc"),
        run("vgg16", "mip", 2.0, None, suite="memomalloc"),
        run("vgg16", "bump", 0.001, 1 << 20),  # of another suite
    ]
    times, peaks = only_charts(memomalloc.section(runs, []))
    assert (times.name, peaks.name) == ("memomalloc-3-3", "memomalloc-3-4")
    (points,) = times.figure.axes[0].lines
    assert (points.get_gid(), list(points.get_ydata())) == ("greedy", [0.001, 0.002])
    assert list(peaks.figure.axes[0].lines[0].get_ydata()) == [1.0, 3.0]


def test_nothing_of_memomalloc() -> None:
    """Tests that there is no section without data, and that training steps are no inferences."""
    assert memomalloc.section(RUNS, []) is None
    row = latency("vgg16", 1, "glibc", 1.0)
    step = Row(Case("vgg16", 128, 1, 1, training=True), "glibc", 0, row.outcome)
    assert memomalloc.section([], [step]) is None
