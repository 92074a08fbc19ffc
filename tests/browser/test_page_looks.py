"""Colours, themes, waste and several plans on the page, and a stored image of it.

Run as a script, this file draws the stored image again:

    python tests/browser/test_page_looks.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chromium
import numpy as np
import pytest
from chromium import Page
from samples import centre, net, resnet_50, sliver, written

from memplan import solve
from memplan.problem import Buffer, Problem
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded
from memplan.view.facts import find_facts
from memplan.view.supports import find_supports
from memplan.view.waste import find_waste

pytestmark = pytest.mark.deep

Open = Callable[..., Page]

STORED = Path(__file__).parents[1] / "data" / "page_resnet50.png"


def test_colours(open_page: Open) -> None:
    """Tests that buffers have one colour just where they are alike in what is asked for."""
    loaded = net(("a", "b", "c", "d", "e", "f"))
    problem, made = loaded.problem, solve(loaded.problem)
    page = open_page(loaded, {"memplan": made})
    known = find_facts(loaded)
    operators = tuple(name or kind for name, kind in zip(known.operator, known.kind, strict=True))
    columns: dict[str, tuple[object, ...]] = {
        "size": tuple(problem.size.tolist()),
        "kind": known.kind,
        "operator": operators,
        "module": known.module,
    }
    assert [option.text for option in page.all("#colour option")] == list(columns)
    assert page.view()["colour"] == "operator"
    for by, classes in columns.items():
        page.choose("#colour", by)
        picture, colours = page.picture(), []
        for row in range(len(problem)):
            # This is next to the name, which is in the middle.
            time, _ = centre(problem, made, row)
            x, y = page.pixel(time, made.offset(problem.ids[row]) + problem.size[row] / 5)
            colours.append(picture.getpixel((round(x), round(y))))
        pairs = set(zip(classes, colours, strict=True))
        assert len(pairs) == len(set(classes)) == len(set(colours))
        legend = page.text("#legend")
        if by != "size":
            assert all(str(name or "none") in legend for name in classes)


def key_of_sizes(page: Page) -> list[tuple[int, ...]]:
    """Return the colours of the key, from the smallest to the largest size."""
    stops = page.js("return getComputedStyle(document.querySelector('.scale')).backgroundImage")
    return [tuple(map(int, each)) for each in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", stops)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_key_of_sizes_ends_with_the_largest_buffer(open_page: Open, theme: str) -> None:
    """Tests that both ends of the key are the colours of the smallest and the largest buffer."""
    problem = Problem([Buffer("small", 0, 4, 64), Buffer("large", 4, 8, 1024)])
    page = open_page(problem, {"memplan": Plan.of(problem, [0, 0])})
    if theme == "dark":
        page.one("#theme").click()
    page.press("\ue00c")
    page.settle()
    colours = key_of_sizes(page)
    assert page.colour(page.pixel(1, 40)) == colours[0]
    assert page.colour(page.pixel(5, 700)) == colours[-1]


def test_a_peak_that_is_thinner_than_a_pixel_has_full_colour(open_page: Open) -> None:
    """Tests that a column of pixels shows the tallest moment in it, not a pale mean of all."""
    problem, plan = sliver(60_000)
    page = open_page(problem, {"lanes": plan})
    assert plan.peak is not None
    page.click(page.pixel(100, plan.peak * 0.9))  # nothing is there; lines around boxes go
    assert page.view()["selected"] is None
    picture, largest = page.picture(), key_of_sizes(page)[-1]
    for share in (0.68, 0.75, 0.82, 0.85, 0.92, 0.99):  # above 2/3 are the two of one moment
        x, y = page.pixel(float(problem.start[-1]) + 0.5, plan.peak * share)
        near = [picture.getpixel((round(x) + step, round(y))) for step in (-1, 0, 1)]
        assert min(np.abs(np.subtract(each, largest)).max() for each in near) <= 2


def test_what_is_not_known_cannot_be_chosen(open_page: Open, five: Problem) -> None:
    """Tests that a problem without a program is coloured by size."""
    page = open_page(five.with_capacity(None))
    enabled = [option.is_enabled() for option in page.all("#colour option")]
    assert enabled == [True, False, False, False]


def test_waste(open_page: Open) -> None:
    """Tests that holes are shaded, and that one can do without."""
    problem = Problem([Buffer("a", 0, 8, 64), Buffer("b", 0, 8, 64)])
    high = Plan.of(problem, [0, 192])
    page = open_page(problem, {"memplan": high})
    hole = page.pixel(4.3, 130)  # on no line of the grid
    shaded = page.colour(hole)
    share = f"{find_waste(problem, high).share:.1%}".replace("%", "\u00a0%")
    assert page.text("#unused") == f"unused below the skyline: {share}"
    page.one("#waste").click()
    page.settle()
    plain = page.colour(hole)
    assert plain == (255, 255, 255)
    assert shaded != plain
    page.one("#waste").click()
    page.settle()
    assert page.colour(hole) == shaded


def test_light_and_dark(open_page: Open) -> None:
    """Tests the switch, and that the page begins as the system asks for."""
    page = open_page(net())
    left, top, width, _ = page.frame()
    corner = left + width - 3, top + 3

    def brightness() -> int:
        return sum(page.colour(corner)) + sum(page.colour((4, chromium.HEIGHT // 2)))

    light = brightness()
    assert page.view()["theme"] == "light"
    page.one("#theme").click()
    page.settle()
    assert page.view()["theme"] == "dark"
    assert page.one("html").get_dom_attribute("data-theme") == "dark"
    assert brightness() < 300 < 1200 < light
    page.one("#theme").click()
    page.settle()
    assert brightness() == light
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        assert open_page(net()).view()["theme"] == "dark"
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_plans_side_by_side(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests that plans share their axes, that each has its own supports, and can be hidden."""
    problem = resnet.problem
    naive = Plan.of(problem, np.cumsum(problem.size) - problem.size)
    page = open_page(resnet, {"memplan": plan, "naive": naive})
    assert [page.text(f"#plan-{at} h2") for at in (0, 1)] == ["memplan", "naive"]
    first, second = page.frame("memory-0"), page.frame("memory-1")
    assert first[0] + first[2] <= second[0]
    assert first[1:] == pytest.approx(second[1:], abs=1)
    row = int(problem.size.argmax())
    page.click(page.pixel(*centre(problem, naive, row), "memory-1"))
    assert (page.view()["selected"], page.view()["plan"]) == (row, "naive")
    assert sorted(page.rows("#sits-on")) == find_supports(problem, naive).below(row).tolist()
    page.js("document.activeElement?.blur()")
    page.press("+", "+")
    before = page.view()
    begin = second[0] + second[2] / 2, second[1] + second[3] / 2
    page.drag(begin, (begin[0] - 60, begin[1]))
    after = page.view()
    assert after["start"] > before["start"]
    assert after["end"] - after["start"] == pytest.approx(before["end"] - before["start"])
    start = "return Bokeh.documents.at(-1).get_model_by_name(arguments[0]).x_range.start"
    figures = ("memory-0", "load-0", "memory-1", "load-1")
    assert {page.js(start, figure) for figure in figures} == {after["start"]}
    boxes = page.all("#plans input[type=checkbox]")
    assert len(boxes) == 2
    boxes[1].click()
    page.settle()
    assert not page.one("#plan-1").is_displayed()
    assert page.frame("memory-0")[2] > first[2] * 1.5


def test_the_stored_image(open_page: Open, resnet: Loaded, plan: Plan) -> None:
    """Tests that a planned ResNet-50 looks as it did, but for what another font changes.

    Both pictures are made smaller by four each way, so that the edge of a letter is little.
    Waste that is not shaded is a mean of 1.6 and 2.7 %.
    """
    image = pytest.importorskip("PIL.Image")
    found = framed(open_page(resnet, {"memplan": plan}))
    stored = image.open(STORED).convert("RGB")
    assert np.abs(np.subtract(found.size, stored.size)).max() <= 12  # axes have letters, too
    small = (stored.width // 4, stored.height // 4)
    one, other = (
        np.asarray(each.resize(small, image.Resampling.BOX), dtype=np.float64)
        for each in (found, stored)
    )
    apart = np.abs(one - other).max(axis=2)
    assert apart.mean() < 1.2
    assert (apart > 32).mean() < 0.015


def framed(page: Page) -> Any:
    """Return a picture of what the axes of the first plan enclose."""
    left, top, width, height = map(round, page.frame())
    return page.picture().crop((left, top, left + width, top + height))


if __name__ == "__main__":
    network = resnet_50()
    plans = {"memplan": solve(network.problem, "exact")}
    started = chromium.start()
    with TemporaryDirectory() as folder:
        drawn = written(Path(folder) / "report.html", network, plans)
        framed(Page(started, drawn)).save(STORED, optimize=True)
    started.quit()
