"""Parts of the page's scripts by themselves: numbers in words, and the raster of thin boxes."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np
import pytest

from memplan.view.units import exact, human

pytestmark = pytest.mark.deep

COUNTS = [0, 1, 2, 1023, 1024, 1025, 1536, (1 << 20) - 1, 1 << 20, (1 << 53) + 1, (1 << 62) - 1]


def run(driver: Any, name: str, body: str, *arguments: object) -> Any:
    """Run a script of the page, and then some more, in a page without anything."""
    driver.get("about:blank")
    script = resources.files("memplan.view.page").joinpath(f"{name}.js").read_text()
    return driver.execute_script(f"{script}\n{body}", *arguments)


def test_bytes_in_words_are_those_of_the_terminal(driver: Any) -> None:
    """Tests that nothing is rounded up, and that no digit is lost."""
    body = "return arguments[0].map(BigInt).map((count) => [human(count), exact(count)]);"
    words = run(driver, "numbers", body, [str(count) for count in COUNTS])
    assert words == [[human(count), exact(count)] for count in COUNTS]


def test_a_raster_is_the_cover_of_its_cells(driver: Any) -> None:
    """Tests wide and tall boxes, inside, at and beyond the border, against sums cell by cell."""
    width, height, boxes = 30, 20, thin_boxes(np.random.default_rng(5), 30, 20)
    body = """
        const [width, height, boxes] = arguments;
        const raster = new Raster(width, height);
        for (const [x0, x1, y0, y1, colour] of boxes) raster.add(x0, x1, y0, y1, colour);
        return [...new Uint8Array(raster.pixels().buffer)];
    """
    found = np.array(run(driver, "raster", body, width, height, boxes)).reshape(height, width, 4)
    sums = np.zeros((height, width, 4))
    for x0, x1, y0, y1, colour in boxes:
        part = [(colour >> shift & 255) for shift in (24, 16, 8)]
        alpha = (colour & 255) / 255
        cover = alpha * np.outer(overlaps(y0, y1, height), overlaps(x0, x1, width))
        sums += cover[:, :, None] * np.array([*part, 1.0])
    cover = sums[:, :, 3]
    assert (cover > 1).any()
    assert np.abs(found[:, :, 3] - 255 * cover.clip(0, 1)).max() <= 1
    seen = cover > 0.05  # of what is fainter, few digits are left
    means = sums[seen][:, :3] / cover[seen][:, None]
    assert np.abs(found[seen][:, :3] - means).max() <= 2
    assert (found[cover == 0] == 0).all()


def test_a_cell_keeps_its_colour(driver: Any) -> None:
    """Tests that a kept cell has one colour whatever covers it, and one beyond the border none."""
    body = """
        const raster = new Raster(2, 2);
        raster.add(0, 2, 0, 0.5, 0xff0000ff);
        raster.keep(1, 0, 0x0102031e);
        raster.keep(0, 2, 0x010203ff);
        return [...new Uint8Array(raster.pixels().buffer)];
    """
    assert run(driver, "raster", body) == [255, 0, 0, 127, 1, 2, 3, 30, *[0] * 8]


def test_a_box_may_cover_columns_wholly(driver: Any) -> None:
    """Tests that a thin box has its full colour in the columns that are to show it."""
    body = """
        const raster = new Raster(3, 1);
        raster.add(0.8, 2.2, 0, 1, 0xff0000ff, (column) => column === 2);
        return [...new Uint8Array(raster.pixels().buffer)];
    """
    first, second, third = np.array(run(driver, "raster", body)).reshape(3, 4)
    assert first.tolist()[3] == 51
    assert second.tolist()[3] == third.tolist()[3] == 255


def test_the_skyline_is_what_reaches_highest(driver: Any) -> None:
    """Tests random spans, section by section and column by column, against slow sums."""
    rng = np.random.default_rng(3)
    start = rng.integers(0, 40, 60)
    end = start + rng.integers(1, 30, 60)
    top = rng.permutation(60) + 1
    times = np.unique([*start.tolist(), *end.tolist()])
    live = (start[:, None] <= times[:-1]) & (times[:-1] < end[:, None])
    reach = np.where(live, top[:, None], 0)
    load = live.sum(axis=0)
    body = """
        const [x0, x1, y1, times, load, area] = arguments;
        const boxes = { x0, x1, y1 };
        const skyline = findSkyline(boxes, times);
        const { section, span } = tallestMoments(skyline, boxes, times, load, area);
        return [[...skyline], [...section], [...span]];
    """
    area = {"x0": 5.0, "perX": 0.3, "columns": 20}
    columns = [each.tolist() for each in (start, end, top, times, load)]
    skyline, section, span = run(driver, "skyline", body, *columns, area)
    highest = np.where(reach.any(axis=0), reach.argmax(axis=0), -1)
    assert skyline == highest.tolist()
    for column in range(20):
        begin, stop = 5 + column / 0.3, 5 + (column + 1) / 0.3
        inside = (times[:-1] < stop) & (times[1:] > begin) & reach.any(axis=0)
        if not inside.any():
            assert (section[column], span[column]) == (-1, -1)
            continue
        best = reach.max(axis=0) * inside
        fullest = np.where(best == best.max(), load, -1)
        assert fullest[section[column]] == fullest.max()
        assert span[column] == skyline[section[column]]
    assert run(driver, "skyline", "return [...findSkyline({x0: [], x1: [], y1: []}, [])]") == []


def test_names_keep_their_ends(driver: Any) -> None:
    """Tests a name with room, cut ones, one with room for too little, and no formulas for Bokeh."""
    body = "return arguments[0].map(([name, room]) => fitted(name, room));"
    names = [["relu_12", 99], ["relu_12", 40], ["relu_12", 32], ["40801", 20], ["a $x$\t\\", 99]]
    whole, cut, shorter, number, formula = run(driver, "names", body, names)
    assert whole == "relu_12"
    for text in (cut, shorter):
        assert text.startswith("…")
        assert text.endswith("_12")
    assert number == ""
    assert formula == "a $\u200bx$\u200b \\\u200b"


def test_ink_can_be_read_on_every_colour(driver: Any) -> None:
    """Tests that letters have the contrast that WCAG asks for, 4.5 (AA)."""
    colours = [red << 24 | green << 16 | blue << 8 for red, green, blue in np.ndindex(6, 6, 6)]
    colours = [colour * 51 for colour in colours]
    inks = run(driver, "names", "return arguments[0].map(inkOn);", colours)
    for colour, ink in zip(colours, inks, strict=True):
        on = luminance(*(colour >> shift & 255 for shift in (24, 16, 8)))
        letters = luminance(*bytes.fromhex(ink[1:]))
        light, dark = max(on, letters), min(on, letters)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(*parts: int) -> float:
    """Return the luminance of a colour, as WCAG defines it."""
    linear = [
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_a_raster_without_boxes_is_empty(driver: Any) -> None:
    """Tests that what lies outside of it makes no picture."""
    body = """
        const raster = new Raster(4, 4);
        raster.add(-3, -1, 0, 1, 0xff0000ff);
        raster.add(1, 1, 0, 4, 0xff0000ff);
        const before = raster.isEmpty;
        raster.add(3.5, 9, 3.5, 9, 0xff0000ff);
        return [before, raster.isEmpty];
    """
    assert run(driver, "raster", body) == [True, False]


def thin_boxes(rng: np.random.Generator, width: int, height: int) -> list[list[float]]:
    """Return boxes that are thinner than a cell one way, of several colours, some transparent."""
    boxes: list[list[float]] = []
    for at in range(200):
        x, y = rng.uniform(-2, width + 1), rng.uniform(-2, height + 1)
        wide, tall = rng.uniform(0, 12), rng.uniform(0, 0.9)
        if at % 2:
            wide, tall = tall, wide
        colour = int(rng.integers(1 << 24)) << 8 | (255 if at % 3 else 90)
        boxes.append([x, x + wide, y, y + tall, colour])
    return boxes


def overlaps(start: float, end: float, cells: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how much of every cell lies in [start, end)."""
    cell = np.arange(cells)
    return np.clip(np.minimum(end, cell + 1) - np.maximum(start, cell), 0, None)
