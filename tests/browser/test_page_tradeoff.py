"""Tests of the page of `memplan tradeoff` in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import Page
from small_programs import training_step

import memplan as mp
from memplan.view.page.tradeoff import html

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("width", [500, 1400])
def test_the_page_is_drawn(driver: Any, tmp_path: Path, width: int) -> None:
    """Tests that figure and table are there, and that nothing is wider than the window."""
    (tmp_path / "page.html").write_text(html(mp.tradeoff(training_step()), title="a <b> title"))
    driver.set_window_size(width, 1000)
    page = Page(driver, tmp_path / "page.html")
    assert page.js("return document.querySelector('h1').textContent") == "a <b> title"
    assert page.js("return document.querySelectorAll('#points tbody tr').length") >= 4
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")
    box = page.js("return document.querySelector('#chart').getBoundingClientRect().toJSON()")
    assert box["width"] > 0.8 * width - 40 or width > 1000
    assert page.complaints() == []
