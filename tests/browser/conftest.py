"""The browser, and what opens pages in it. All tests here are skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import chromium
import pytest
from chromium import Page
from samples import resnet_50, written

from memplan import solve
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """Start the browser, once for all tests."""
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    started = chromium.start()
    yield started
    started.quit()


@pytest.fixture
def open_page(driver: Any, tmp_path: Path) -> Iterator[Open]:
    """Return what opens plans as a page; in the end nothing may have gone wrong in it."""
    opened: list[Page] = []

    def opens(
        what: Loaded | Problem, plans: Mapping[str, Plan] | None = None, title: str = "a title"
    ) -> Page:
        for page in opened[-1:]:
            assert page.complaints() == []
        opened.append(Page(driver, written(tmp_path / "report.html", what, plans, title)))
        return opened[-1]

    yield opens
    for page in opened[-1:]:
        assert page.complaints() == []


@pytest.fixture(scope="session")
def resnet() -> Loaded:
    """Return ResNet-50."""
    return resnet_50()


@pytest.fixture(scope="session")
def plan(resnet: Loaded) -> Plan:
    """Return a plan of it, always the same."""
    return solve(resnet.problem, "exact")
