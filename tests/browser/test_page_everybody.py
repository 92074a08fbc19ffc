"""The page without a mouse, and without eyes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chromium import Page

from memplan import solve
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded

pytestmark = pytest.mark.deep

Open = Callable[..., Page]


def test_keyboard(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests search, choice, zoom, pan, reset and the table with keys alone."""
    page = open_page(resnet, {"memplan": plan})
    page.press("/")
    assert page.js("return document.activeElement.id") == "search"
    page.press(*"relu_4", "\ue007")
    page.until(lambda: page.view()["selected"] is not None)
    assert "relu_4" in page.text("#buffer h3")
    page.js("document.activeElement.blur()")
    page.press("0")
    home = page.view()
    page.press("+", "\ue014")  # the arrow to the right
    near = page.view()
    assert near["end"] - near["start"] < home["end"] - home["start"]
    assert near["start"] > home["start"]
    page.press("0")
    assert page.view()["end"] == home["end"]
    page.press("\ue00c")  # Escape
    assert page.text("#buffer-plan") == "at the top of the peak"
    assert page.one("#search").get_property("value") == ""
    reached = []
    for _ in range(60):
        page.press("\ue004")  # Tab
        focused = "const e = document.activeElement; return e.id || e.tagName"
        reached.append(page.js(focused))
        if reached[-1] == "TR":
            break
    for id in ("colour", "waste", "zoom-in", "theme", "memory-0", "TR"):
        assert id in reached
    row = int(page.js("return document.activeElement.dataset.row"))
    page.press("\ue007")
    assert page.view()["selected"] == row


def test_the_table(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests that all buffers are there to be read, largest first, in pages."""
    problem = resnet.problem
    page = open_page(resnet, {"memplan": plan})
    table = page.one("#buffers")
    assert table.find_elements("css selector", "caption, thead th[scope=col]")
    rows = page.rows("#buffers")
    while page.one("#buffers-after").is_enabled():
        page.js("document.getElementById('buffers-after').click()")
        rows += page.rows("#buffers")
    assert sorted(rows) == list(range(len(problem)))
    sizes = problem.size[rows].tolist()
    assert sizes == sorted(sizes, reverse=True)
    last = page.all("#buffers tbody tr")[-1].get_property("textContent")
    for word in (problem.ids[rows[-1]], f"{sizes[-1]:,}", resnet.labels[rows[-1]].made_by):
        assert word in last


def test_what_a_screen_reader_is_told(open_page: Open, resnet: Loaded) -> None:
    """Tests that all that can be used has a name, and that regions and changes are marked."""
    page = open_page(resnet, {"one": solve(resnet.problem), "two": solve(resnet.problem)})
    tree = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    usable = ("button", "checkbox", "searchbox", "combobox", "textbox", "link", "image", "img")
    nodes = [node for node in tree if not node["ignored"]]
    named = {"": 0}
    for node in nodes:
        role = node["role"]["value"]
        if role in usable:
            assert node["name"]["value"].strip(), node
            named[role] = named.get(role, 0) + 1
    assert {"button", "checkbox", "combobox", "searchbox"} <= named.keys()
    assert named.get("image", 0) + named.get("img", 0) >= 4
    roles = {node["role"]["value"] for node in nodes}
    assert {"main", "table", "rowheader", "columnheader", "heading"} <= roles
    assert page.one("html").get_dom_attribute("lang") == "en"
    assert page.one("#buffer").get_dom_attribute("aria-live") == "polite"
    ids = page.js("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
