"""How long a page of many buffers takes to open, and to pan, in a real browser.

    python tests/browser/speed.py [BUFFERS]

Times are those of this machine's chromium, which draws WebGL without a graphics card. On a machine
that does other work, look at what the page's own thread computed: that waits for no other work.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chromium
import numpy as np
from chromium import Page
from samples import many, written

_WATCH = """
    if (!window.frames_) {
        const note = (now) => { window.frames_.push(now); requestAnimationFrame(note); };
        requestAnimationFrame(note);
    }
    window.frames_ = [];
"""


def computed(driver: Any) -> float:
    """Return the seconds that the page's thread has computed until now."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def pan(page: Page, times: int) -> tuple[list[float], float]:
    """Drag to and fro; return the milliseconds between all frames, and those computed."""
    left, top, width, height = page.frame()
    begin, end = (left + width * 0.8, top + height / 2), (left + width * 0.2, top + height / 2)
    page.js(_WATCH)
    before = computed(page.driver)
    for _ in range(times):
        page.drag(begin, end, steps=30)
        page.drag(end, begin, steps=30)
    took = computed(page.driver) - before
    return list(np.diff(page.js("return window.frames_"))), took * 1000


def report(page: Page, when: str) -> None:
    """Print how long frames took."""
    frames, took = pan(page, 2)
    print(
        f"{when}: {len(frames)} frames, median {np.median(frames):.0f} ms, "
        f"95 % within {np.percentile(frames, 95):.0f} ms, longest {max(frames):.0f} ms; "
        f"computed {took / len(frames):.1f} ms a frame"
    )


def main(count: int) -> None:
    """Write, open and pan."""
    driver: Any = chromium.start()
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    with TemporaryDirectory() as folder:
        problem, plan = many(count)
        begun = time.perf_counter()
        path = written(Path(folder) / "report.html", problem, {"lanes": plan})
        took = time.perf_counter() - begun
        print(f"{count} buffers: written in {took:.2f} s, {path.stat().st_size / 2**20:.1f} MiB")
        begun, before = time.perf_counter(), computed(driver)
        page = Page(driver, path)
        took = time.perf_counter() - begun - 0.25  # that the page settles
        print(f"opened: {took:.2f} s, of which {computed(driver) - before:.2f} s were computed")
        for times in (0, 4, 4):
            page.js("document.activeElement?.blur()")
            page.press(*"+" * times)
            seen = page.view()
            share = (seen["end"] - seen["start"]) / float(problem.end.max() - problem.start.min())
            report(page, f"pan at {min(share, 1):.1%} of the time")
    driver.quit()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000)
