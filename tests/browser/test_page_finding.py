"""Search, hover and clicks on the page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from chromium import Page
from samples import centre, net

from memplan import solve
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded
from memplan.view.supports import find_supports

pytestmark = pytest.mark.deep

Open = Callable[..., Page]


def test_search(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests the count of matches, the table, Enter, and a name that no buffer has."""
    page = open_page(resnet, {"memplan": plan})
    names = resnet.problem.ids
    matches = [row for row, name in enumerate(names) if "conv2d_1" in name]
    assert len(matches) > 5
    field = page.one("#search")
    field.send_keys("Conv2D_1")
    page.until(lambda: page.text("#search-status"))
    assert page.text("#search-status") == f"{len(matches)} matches"
    assert sorted(page.rows("#buffers")) == matches
    field.send_keys("\ue007")
    page.settle()
    assert page.view()["selected"] == matches[0]
    field.send_keys("\ue007")
    page.settle()
    assert page.view()["selected"] == matches[1]
    field.send_keys("no such name")
    page.until(lambda: page.text("#search-status") == "0 matches")
    assert page.rows("#buffers") == []
    assert page.one("#search-status").get_dom_attribute("aria-live") == "polite"


def test_hover(open_page: Open) -> None:
    """Tests that name, bytes, lifetime, offset, operator, module and line are shown."""
    loaded = net()
    made = solve(loaded.problem)
    page = open_page(loaded, {"memplan": made})
    assert not page.one("#hover").is_displayed()
    row = loaded.problem.index("b")
    page.hover(page.pixel(*centre(loaded.problem, made, row)))
    assert page.one("#hover").is_displayed()
    assert page.text("#hover strong") == "b"
    said = page.text("#hover dl")
    problem = loaded.problem
    assert f"{problem.size[row]:,} bytes" in said
    assert f"[{problem.start[row]}, {problem.end[row]})" in said
    assert f"{made.offset('b'):,}" in said
    for words in ("op b (Relu)", "op c (Conv)", "layer1", "net.py:41", "intermediate"):
        assert words in said
    left, top, _, _ = page.frame()
    page.hover((left - 40, top + 5))
    assert not page.one("#hover").is_displayed()


def test_hover_in_a_gap(open_page: Open) -> None:
    """Tests that in a gap only the window is under the pointer, and says what it holds."""
    problem = Problem([Buffer("a", 0, 9, 64, gaps=(Gap(3, 6, (16, 32)),))])
    page = open_page(problem)
    page.hover(page.pixel(4.5, 24))
    assert page.text("#hover strong") == "a"
    assert "holds now16 bytes" in page.text("#hover dl")
    page.hover(page.pixel(4.5, 56))
    assert not page.one("#hover").is_displayed()


def test_a_moment(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests that a click in either figure lists what is live then, largest first."""
    problem = resnet.problem
    page = open_page(resnet, {"memplan": plan})
    loads = Loads(problem)
    for section in (loads.peak_section, 3, len(loads) - 1):
        assert section is not None
        when = (loads.start[section] + loads.end[section]) / 2
        held = [problem.index(each.id) for each in loads.held(section)]
        for figure, address in (("memory-0", 64.0), ("load-0", None)):
            at = page.pixel(when, address or 0, figure)
            if address is None:
                _, top, _, height = page.frame(figure)
                at = at[0], top + height / 2
            page.js("window.memplan.moment(arguments[0])", str(loads.start[0]))
            page.click(at)
            assert page.rows("#moment") == held
            assert page.view()["moment"] == int(when)
    said = page.text("#moment caption")
    assert f"{loads.load[-1]:,} bytes" in said


def test_a_buffer(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests that a click lists what a buffer sits on, what sits on it, and what bounds it."""
    problem = resnet.problem
    page = open_page(resnet, {"memplan": plan})
    expected = find_supports(problem, plan)
    lengths = np.diff(expected.below_begin) * problem.size
    for row in (int(lengths.argmax()), int(problem.size.argmax())):
        page.click(page.pixel(*centre(problem, plan, row)))
        assert page.view()["selected"] == row
        assert page.text("#buffer h3") == problem.ids[row]
        assert sorted(page.rows("#sits-on")) == expected.below(row).tolist()
        assert sorted(page.rows("#carries")) == expected.above(row).tolist()
        chain = expected.chain(row)
        assert tuple(page.rows("#bounds")) == chain.rows[1:]
        assert page.text("#bounds").endswith("address 0")
    row = int(lengths.argmax())
    page.js("window.memplan.select(arguments[0])", row)
    link = page.all("#sits-on a[data-row]")[0]
    below = int(link.get_dom_attribute("data-row"))
    link.click()
    assert page.view()["selected"] == below


def test_the_peak_is_selected_at_first(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests the moment, the buffer and the label of a page that was just opened, and Escape."""
    problem = resnet.problem
    page = open_page(resnet, {"memplan": plan})
    loads = Loads(problem)
    assert plan.offsets is not None
    section = loads.highest_of(np.flatnonzero(plan.offsets + problem.size == plan.peak))
    assert section is not None
    opened = page.view()
    assert opened["moment"] == loads.start[section]
    row = opened["selected"]
    assert plan.offsets[row] + problem.size[row] == plan.peak
    held = [problem.index(each.id) for each in loads.held(section)]
    assert page.rows("#moment") == held
    assert row in held
    assert page.text("#moment-time") == f"time {loads.start[section]}, the peak"
    assert page.text("#buffer-plan") == "at the top of the peak"
    assert page.text(".peak-label") == f"peak 9.18 MiB at time {loads.start[section]}"
    label, (left, _, width, _) = page.one(".peak-label").rect, page.frame()
    x, _ = page.pixel(float(loads.start[section]), 0)
    assert x <= label["x"] <= x + 8
    assert label["x"] + label["width"] <= left + width
    line = "return Bokeh.documents.at(-1).get_model_by_name('moment-memory-0').visible"
    assert not page.js(line)  # it would hide the boxes of the peak
    page.js("window.memplan.moment('100')")
    assert page.js(line)
    page.all("[data-peak='0']")[0].click()
    assert page.view()["moment"] == opened["moment"]
    page.js("window.memplan.select(3)")
    page.press("\ue00c")  # Escape
    assert (page.view()["moment"], page.view()["selected"]) == (opened["moment"], row)


def test_nothing_is_chosen_by_a_click_on_nothing(open_page: Open) -> None:
    """Tests that a click on free memory chooses no buffer, but the moment."""
    problem = Problem([Buffer("a", 0, 4, 64), Buffer("b", 0, 8, 64)])
    page = open_page(problem, {"memplan": Plan.of(problem, [0, 64])})
    page.click(page.pixel(2.5, 32))
    assert page.view()["selected"] == 0
    page.click(page.pixel(6.5, 32))
    assert (page.view()["selected"], page.view()["moment"]) == (None, 6)
    assert page.rows("#moment") == [1]


def test_clicks_are_clicks_however_they_are_made(open_page: Open) -> None:
    """Tests that a click right after another one counts as well, and one that is held."""
    problem = Problem([Buffer("a", 0, 4, 64), Buffer("b", 0, 8, 64)])
    page = open_page(problem, {"memplan": Plan.of(problem, [0, 64])})
    a, b, nothing = page.pixel(2.5, 32), page.pixel(5.5, 96), page.pixel(6.5, 32)
    page.click(a, b)
    assert (page.view()["selected"], page.view()["moment"]) == (1, 5)
    page.click(a, a)
    assert (page.view()["selected"], page.view()["moment"]) == (0, 2)
    page.click(b, held=0.5)
    assert (page.view()["selected"], page.view()["moment"]) == (1, 5)
    page.click(a, nothing)
    assert (page.view()["selected"], page.view()["moment"]) == (None, 6)
