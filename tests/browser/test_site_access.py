"""Tests that the site can be read with a keyboard, a screen reader, a phone or a dark screen.

The linter is axe-core, as the wheel of axe-playwright-python carries it; Playwright is not needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from docs_site import Site, build

pytestmark = pytest.mark.deep

PAGES = ("index", "start", "cli", "benchmarks", "view", "algorithms/index", "reference/commands")
WIDE, NARROW = 1280, 400
_PATIENCE = 60  # seconds


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return the site, built strictly."""
    return build(tmp_path_factory)


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of the linter, or skip the test."""
    spec = find_spec("axe_playwright_python")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs axe-playwright-python")
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def window(driver: Any) -> Iterator[Any]:
    """Return the browser; in the end its size and its scheme are what they were."""
    # A scheme that was shown before would be remembered.
    forget = {"source": "try { localStorage.clear(); } catch {}"}
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", forget)
    yield driver
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def show(driver: Any, page: Path, scheme: str, width: int) -> None:
    """Open a page as somebody sees it for the first time."""
    metrics = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    driver.get(page.as_uri())
    # Two frames later the scripts of the page have found what scrolls.
    driver.execute_async_script(
        "const done = arguments[0]; setTimeout(() => requestAnimationFrame(() => done()), 300);"
    )


def find_faults(driver: Any, axe: str) -> list[str]:
    """Return a sentence for each element that the linter calls a serious or critical fault."""
    driver.execute_script(axe)
    violations = driver.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, { iframes: false }).then((found) => done(found.violations));"
    )
    return [
        f"{each['id']}: {' '.join(node['html'].split())[:120]}: {node['failureSummary']}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", WIDE), ("dark", WIDE), ("light", NARROW)])
@pytest.mark.parametrize("page", PAGES)
def test_a_linter_finds_no_serious_fault(
    site: Site, window: Any, axe: str, page: str, scheme: str, width: int
) -> None:
    """Tests contrast, names, landmarks and what takes the focus, as axe-core does."""
    show(window, site.folder / f"{page}.html", scheme, width)
    shown = window.execute_script("return document.body.dataset.mdColorScheme")
    assert shown == {"light": "default", "dark": "slate"}[scheme]
    assert find_faults(window, axe) == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_not_scroll_sideways(site: Site, window: Any, page: str, width: int) -> None:
    """Tests that what is wide, tables and code, scrolls inside itself."""
    show(window, site.folder / f"{page}.html", "light", width)
    assert window.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_linter_finds_faults(window: Any, axe: str, tmp_path: Path) -> None:
    """Tests the test: grey on white is found."""
    page = tmp_path / "a.html"
    page.write_text('<html lang="en"><title>a</title><main><p style="color: #bbb">words</p></main>')
    show(window, page, "light", WIDE)
    assert any(fault.startswith("color-contrast") for fault in find_faults(window, axe))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_front_page_has_a_live_plan(site: Site, window: Any, axe: str, scheme: str) -> None:
    """Tests that the frame is drawn from a folder, in the scheme of the page, without faults."""
    show(window, site.folder / "index.html", scheme, WIDE)
    window.switch_to.frame(window.find_element("css selector", ".live-plan iframe"))
    try:
        late = time.monotonic() + _PATIENCE
        state = "const { ready, theme } = document.documentElement.dataset; return [ready, theme];"
        while (found := window.execute_script(state)) != ["true", scheme]:
            assert time.monotonic() < late, found
            time.sleep(0.1)
        assert "174 buffers" in window.find_element("id", "facts").text
        assert find_faults(window, axe) == []
    finally:
        window.switch_to.default_content()


def test_the_wheel_is_the_page_s_until_a_click(site: Site, window: Any) -> None:
    """Tests that the live plan takes no wheel from readers who scroll past it."""
    show(window, site.folder / "index.html", "light", WIDE)
    cover = window.find_element("css selector", ".live-plan button")
    assert cover.is_displayed()
    cover.click()
    assert not cover.is_displayed()
    active = window.execute_script("return document.activeElement.tagName")
    assert active == "IFRAME"


def test_a_narrow_window_has_a_drawing_that_leads_to_the_plan(site: Site, window: Any) -> None:
    """Tests what a phone shows: no frame, which a finger could not scroll past."""
    show(window, site.folder / "index.html", "light", NARROW)
    assert not window.find_element("css selector", ".live-plan iframe").is_displayed()
    still = window.find_element("css selector", ".live-plan a")
    assert still.is_displayed()
    assert still.get_attribute("href").endswith("/assets/resnet50.html")
