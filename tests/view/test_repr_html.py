"""Tests of what notebooks show of problems and plans, and of their `plot`."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from memplan.base.errors import MissingExtraError, PlanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan, Status
from memplan_lab.bench import generators

SVG = "{http://www.w3.org/2000/svg}"


def parsed(thing: Problem | Plan) -> tuple[dict[str, str], list[ElementTree.Element]]:
    """Return the facts of what a notebook shows, and all that is in its picture."""
    root = ElementTree.fromstring(thing._repr_html_())
    facts = {row[0].text or "": row[1].text or "" for row in root.iter("tr")}
    return facts, [each for svg in root.iter(f"{SVG}svg") for each in svg.iter()]


def rectangles(inside: list[ElementTree.Element]) -> list[tuple[float, ...]]:
    """Return x, y, width and height of the boxes."""
    boxes = [each for each in inside if each.tag == f"{SVG}rect"]
    return [tuple(float(b.attrib[k]) for k in ("x", "y", "width", "height")) for b in boxes]


def test_a_problem(five: Problem) -> None:
    """Tests its facts, and that its load is drawn."""
    facts, inside = parsed(five)
    assert facts == {
        "buffers": "5",
        "sum of sizes": "20 bytes",
        "greatest load": "12 bytes",
        "capacity": "12 bytes",
        "time": "[0, 21)",
    }
    area, *lines = [each.attrib["d"] for each in inside if each.tag == f"{SVG}path"]
    # 12 bytes up to time 9 of 21, then 8.
    assert area == "M0 60H0V2.0H206V21.3H480V60Z"
    assert lines == ["M0 2.0H480"]


def test_constraints_are_facts() -> None:
    """Tests that a problem says its constraints in addition to lifetimes and sizes."""
    rows = [
        Buffer("a", 0, 9, 8, alignment=4, pin=0, gaps=(Gap(1, 2),)),
        Buffer("b", 0, 9, 8),
        Buffer("c", 9, 10, 8),
    ]
    facts, _ = parsed(Problem(rows, None, [(64, 128)], [("a", "c")], [["b", "c"]]))
    assert facts["has"] == "alignment, pins, gaps, reserved ranges"
    assert facts["conflicts"] == "1 pair beside lifetimes"
    assert facts["groups"].startswith("1 group of 2 buffers")


def test_a_plan(five: Problem, five_offsets: list[int]) -> None:
    """Tests its facts, and every box where it belongs."""
    plan = Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12, solver="exact")
    facts, inside = parsed(plan)
    assert facts == {
        "status": "optimal",
        "buffers": "5",
        "peak": "12 bytes",
        "lower bound": "12 bytes, gap 0.00%",
        "capacity": "12 bytes",
        "solver": "exact",
    }
    tall = 59.3  # a third of the picture
    assert rectangles(inside) == [
        (0.0, 2.0, 68.6, tall),
        (68.6, 2.0, 137.1, tall),
        (0.0, 61.3, 205.7, tall),
        (205.7, 61.3, 274.3, tall),
        (0.0, 120.7, 480.0, tall),
    ]
    told = [each.text for each in inside if each.tag == f"{SVG}title"]
    assert told[1] == "b2: 4 bytes at 8, [3, 9)"


def test_gaps_are_empty() -> None:
    """Tests that a gap is left out of the boxes but for its window."""
    problem = Problem([Buffer("a", 0, 48, 8, gaps=(Gap(10, 20, (4, 8)), Gap(30, 40)))])
    _, inside = parsed(Plan.of(problem, [0]))
    assert sorted(rectangles(inside)) == [
        (0.0, 2.0, 100.0, 178.0),
        (100.0, 2.0, 100.0, 89.0),
        (200.0, 2.0, 100.0, 178.0),
        (400.0, 2.0, 80.0, 178.0),
    ]


def test_plans_without_a_picture(five: Problem, five_offsets: list[int]) -> None:
    """Tests a plan from a file, one without offsets, and one with too many boxes."""
    read = Plan(ids=five.ids, size=five.size, offsets=five_offsets)
    facts, inside = parsed(read)
    assert (facts["peak"], inside) == ("12 bytes", [])
    lost = Plan.of(five, None, status=Status.INFEASIBLE, conflict=("b1", "b3"))
    facts, inside = parsed(lost)
    assert (facts["conflict"], inside) == ("2 buffers cannot be placed together", [])
    assert "peak" not in facts
    large = generators.nn_like(401, 0)
    assert parsed(Plan.of(large, np.zeros(401, dtype=int)))[1] == []
    assert len(large._repr_html_()) < 20_000


@pytest.mark.parametrize(
    "problem",
    [
        Problem([]),
        Problem([Buffer("z", start=0, end=1, size=0)]),
        Problem([Buffer("x", start=-(1 << 62), end=1 << 62, size=1 << 61)], capacity=1 << 62),
    ],
    ids=["nothing", "no-bytes", "huge"],
)
def test_odd_problems(problem: Problem) -> None:
    """Tests nothing, no bytes and huge numbers, problem and plan."""
    assert parsed(problem)[0]["buffers"] == str(len(problem))
    facts, inside = parsed(Plan.of(problem, np.zeros(len(problem), dtype=int)))
    assert "peak" in facts
    assert len(rectangles(inside)) == bool(problem.max_load)


def test_names_cannot_script_the_page() -> None:
    """Tests that markup in a name, an attribute's end and control characters are text."""
    names = ["<img src=x onerror=alert(1)>", '"><script>alert(1)</script>', "a\x00\x1b[31m"]
    problem = Problem([Buffer(name, 0, 1, 8) for name in names])
    plan = Plan.of(problem, [0, 8, 16], solver="<script>alert(1)</script>")
    text = plan._repr_html_()
    assert "<script" not in text
    assert "<img" not in text
    assert not set("\x00\x1b") & set(text)
    told = [each.text for each in parsed(plan)[1] if each.tag == f"{SVG}title"]
    assert str(told[0]).startswith(names[0] + ": 8 bytes")


def test_it_reads_on_dark_pages(five: Problem, five_offsets: list[int]) -> None:
    """Tests that no colour is named but that of the text around."""
    for thing in (five, Plan.of(five, five_offsets)):
        _, inside = parsed(thing)
        colours = {each.get(kind) for each in inside for kind in ("fill", "stroke")}
        assert colours <= {None, "none", "currentColor"}
        assert "#" not in thing._repr_html_()


def test_plots(five: Problem, five_offsets: list[int]) -> None:
    """Tests that a problem and its plan draw themselves, and are shown by notebooks."""
    pytest.importorskip("matplotlib")
    plan = Plan.of(five, five_offsets)
    read = Plan(ids=five.ids, size=five.size, offsets=five_offsets)
    for figure in (five.plot(), plan.plot(width=85), plan.plot(five, load=True), read.plot(five)):
        assert figure._repr_png_().startswith(b"\x89PNG")
    assert plan.plot(width=127).get_figwidth() == 5
    assert five.plot(width=127).get_figwidth() == 5
    assert plan.plot(classes=list("abcde")).legends


def test_a_plan_from_a_file_needs_its_problem(five: Problem, five_offsets: list[int]) -> None:
    """Tests that the error says what to give."""
    read = Plan(ids=five.ids, size=five.size, offsets=five_offsets)
    with pytest.raises(PlanError, match=r"call plot\(problem\)"):
        read.plot()


def test_without_matplotlib(
    five: Problem, five_offsets: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the pictures need the extra, and the tables do not."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for thing in (five, Plan.of(five, five_offsets)):
        with pytest.raises(MissingExtraError, match=r"memplan\[plot\]"):
            thing.plot()
        assert thing._repr_html_()


def test_tables_load_no_libraries() -> None:
    """Tests that what a notebook shows by itself costs neither matplotlib nor Rich."""
    program = (
        "import sys, memplan as mp; p = mp.Problem([mp.Buffer('a', 0, 1, 8)]); p._repr_html_(); "
        "mp.solve(p)._repr_html_(); print([m for m in ('matplotlib', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr
