"""Parts of the page's scripts by themselves: numbers in words, and the raster of thin boxes."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

from memplan.view.units import exact, human

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
