"""The page as somebody opens it who was sent it: alone, odd, hostile and large."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from chromium import Page
from samples import NASTY, centre, many

from memplan import solve
from memplan.problem import Buffer, Problem, Reserved
from memplan.problem.plan import Plan
from memplan.programs.graph import Graph, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph

pytestmark = pytest.mark.deep

Open = Callable[..., Page]


def test_nothing_leaves_the_page(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests that it opens without network and errors, and asks for nothing but itself."""
    page = open_page(resnet, {"memplan": plan})
    assert page.driver.title == "a title"
    middle = page.pixel(*centre(resnet.problem, plan, int(resnet.problem.size.argmax())))
    assert page.colour((middle[0] + 2, middle[1] + 20)) != (255, 255, 255)
    page.hover(middle)
    asked = [url for url in page.requests() if not url.startswith(("data:", "blob:"))]
    assert len(asked) == 1
    assert asked[0].startswith("file://")
    assert asked[0].endswith("report.html")


@pytest.mark.parametrize(
    "problem",
    [
        Problem([]),
        Problem([Buffer("zero", 0, 1, 0)]),
        Problem([Buffer("a", -(1 << 62), 1 << 62, 1 << 61), Buffer("b", 0, 1, 1 << 61)]),
        Problem([Buffer(f"b{at}", (1 << 61) + at, (1 << 61) + at + 1, 64) for at in range(9)]),
        Problem([Buffer("a", 0, 9, 64)], capacity=1 << 40, reserved=[Reserved(0, 4096)]),
    ],
    ids=["nothing", "zero", "largest", "late", "capacity and reserved"],
)
def test_odd_problems(open_page: Open, problem: Problem) -> None:
    """Tests that the extremes of what a problem may be open, and can be listed."""
    page = open_page(problem)
    assert sorted(page.rows("#buffers")) == list(range(len(problem)))
    for row in range(len(problem)):
        page.js("window.memplan.select(arguments[0])", row)
        assert page.text("#buffer h3") == problem.ids[row]
        assert f"{problem.size[row]:,}" in page.text("#buffer-facts").replace(" bytes", "")


def test_names_are_text(open_page: Open) -> None:
    """Tests that no name of a model can script the page, wherever it is shown."""
    names = [f"{nasty} {at}" for at, nasty in enumerate(NASTY)]
    tensors = [Tensor(name, 4096) for name in names]
    operators = [
        Operator(name, name, outputs=(at,), module=name, line=name) for at, name in enumerate(names)
    ]
    operators.append(Operator("end", "end", tuple(range(len(names)))))
    loaded = of_graph(Graph("net", tuple(tensors), tuple(operators)))
    plans = {name: solve(loaded.problem) for name in names[:2]}
    page = open_page(loaded, plans, title=NASTY[1])
    for row, name in enumerate(loaded.problem.ids):
        assert name in names
        page.js("window.memplan.search(arguments[0])", name)
        page.js("window.memplan.select(arguments[0])", row)
        page.js("window.memplan.moment(arguments[0])", str(loaded.problem.start[row]))
        assert page.text("#buffer h3") == name
        assert page.text("#buffer-facts").count(name) >= 3
        assert name in page.text("#moment tbody")
    page.js("window.memplan.search('')")
    for by in ("kind", "operator", "module"):
        page.choose("#colour", by)
    shown = centre(loaded.problem, plans[names[0]], len(names) - 1)
    page.hover(page.pixel(*shown))
    assert page.text("#hover strong") == loaded.problem.ids[len(names) - 1]
    assert page.text("#plan-0 h2") == names[0]
    assert page.js("return window.broken") is None
    assert page.all("img, svg[onload]") == []
    assert page.driver.title == page.text("h1") == NASTY[1]  # and no alert is open


def test_sixty_thousand_buffers(open_page: Open) -> None:
    """Tests that they open, are all seen but drawn as few boxes, and can be found."""
    problem, made = many(60_000)
    page = open_page(problem, {"lanes": made})
    drawn = "return Bokeh.documents.at(-1).get_model_by_name('boxes-0').data.left.length"
    assert page.js(drawn) <= 4000
    assert made.peak is not None
    assert page.colour(page.pixel(1005, made.peak / 2)) != (255, 255, 255)
    page.js("window.memplan.search('59999')")
    assert page.text("#search-status") == "1 match"
    page.js("window.memplan.select(59999)")
    page.settle()
    seen = page.view()
    inside = (problem.start < seen["end"]) & (problem.end > seen["start"])
    assert made.offsets is not None
    inside &= (made.offsets < seen["upper"]) & (made.offsets + problem.size > seen["lower"])
    assert 0 < inside.sum() <= page.js(drawn) <= 4000  # and those a little beyond the frame
    page.click(page.pixel(*centre(problem, made, 59_999)))
    assert page.view()["selected"] == 59_999
    when = int(problem.start[59_999] + problem.end[59_999]) // 2
    held = (problem.start <= when) & (when < problem.end)
    page.js("document.getElementById('moment-all').click()")
    assert sorted(page.rows("#moment")) == np.flatnonzero(held).tolist()
