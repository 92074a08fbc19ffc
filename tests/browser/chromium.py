"""Pages in a real browser: Debian's chromium without a window, through Selenium, without network.

Nothing is downloaded: browser and driver are those of the system.
"""

from __future__ import annotations

import io
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Point = tuple[float, float]

WIDTH, HEIGHT = 1280, 1000
_PATIENCE = 60  # seconds; a wait ends as soon as what is waited for is there

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # containers run tests as root
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-gpu-rasterization",  # the rest without it: far faster than by way of WebGL's
    "--disable-accelerated-2d-canvas",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--lang=en-US",
    f"--window-size={WIDTH},{HEIGHT}",
)


def start() -> Any:
    """Start the browser, or skip the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    started.set_page_load_timeout(_PATIENCE)
    started.set_script_timeout(_PATIENCE)
    return started


class Page:
    """A page that has been opened, and what a person does with it.

    Places are times and addresses in bytes; pixels are those of the window, from its upper left.
    """

    def __init__(self, driver: Any, path: Path) -> None:
        self.driver = driver
        driver.get_log("browser"), driver.get_log("performance")  # of pages before this one
        driver.get(path.as_uri())
        self.until(lambda: self.js("return document.documentElement.dataset.ready === 'true'"))
        self.settle()

    def js(self, script: str, *arguments: object) -> Any:
        """Run a script, and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def until(self, happens: Callable[[], Any]) -> Any:
        """Wait for something to be true; return it."""
        late = time.monotonic() + _PATIENCE
        while not (found := happens()):
            assert time.monotonic() < late, f"nothing after {_PATIENCE} s: {self.complaints()}"
            time.sleep(0.02)
        return found

    def settle(self) -> None:
        """Wait until all that was asked for is drawn: changes are drawn a moment later."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 200);"
        )

    def complaints(self) -> list[str]:
        """Return the errors that the browser has noted since the last call."""
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """Return the addresses that have been asked for since the last call."""
        events = (json.loads(entry["message"]) for entry in self.driver.get_log("performance"))
        return [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]

    def all(self, selector: str) -> list[Any]:
        """Return the elements that a selector finds."""
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def one(self, selector: str) -> Any:
        """Return the element that a selector finds."""
        (found,) = self.all(selector)
        return found

    def text(self, selector: str) -> str:
        """Return all text of an element, also where one would have to scroll."""
        return str(self.one(selector).get_property("textContent"))

    def rows(self, selector: str) -> list[int]:
        """Return the buffers (as rows of the problem) that are listed in an element."""
        listed = self.all(f"{selector} [data-row]")
        return [int(element.get_dom_attribute("data-row")) for element in listed]

    def view(self) -> dict[str, Any]:
        """Return what is seen, and what is chosen."""
        found: dict[str, Any] = self.js("return window.memplan.view()")
        return found

    def pixel(self, when: float, address: float, figure: str = "memory-0") -> Point:
        """Return where a place is drawn; of an address in bytes."""
        left, top, width, height = self.frame(figure)
        seen = self.view()
        x = (when - seen["start"]) / (seen["end"] - seen["start"])
        y = (address - seen["lower"]) / (seen["upper"] - seen["lower"])
        return left + x * width, top + (1 - y) * height

    def frame(self, figure: str = "memory-0") -> tuple[float, float, float, float]:
        """Return left, top, width and height of what the axes of a figure enclose."""
        script = """
            const model = Bokeh.documents.at(-1).get_model_by_name(arguments[0]);
            const view = Bokeh.index.find_one(model);
            const { x, y } = view.canvas_view.el.getBoundingClientRect();
            const { left, top, width, height } = view.frame.bbox;
            return [x + left, y + top, width, height];
        """
        left, top, width, height = self.js(script, figure)
        return left, top, width, height

    def hover(self, at: Point) -> None:
        """Move the pointer."""
        self._pointer(at)

    def click(self, *at: Point, held: float = 0) -> None:
        """Click with the pointer in one place after the other, holding it for `held` seconds."""
        self._pointer(*at, held=held)

    def _pointer(self, *at: Point, held: float | None = None) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        actions = ActionChains(self.driver, duration=20)
        pointer = actions.w3c_actions.pointer_action
        for x, y in ((round(x), round(y)) for x, y in at):
            pointer.move_to_location(x - 3, y - 3)
            pointer.move_to_location(x, y)
            if held is not None:
                pointer.pointer_down()
                pointer.pause(held)
                pointer.pointer_up()
        actions.perform()
        self.settle()

    def drag(self, begin: Point, end: Point, steps: int = 2) -> None:
        """Drag with the pointer."""
        from selenium.webdriver.common.action_chains import ActionChains

        actions = ActionChains(self.driver, duration=16)
        pointer = actions.w3c_actions.pointer_action
        pointer.move_to_location(round(begin[0]), round(begin[1]))
        pointer.pointer_down()
        for step in range(1, steps + 1):
            x, y = (a + (b - a) * step / steps for a, b in zip(begin, end, strict=True))
            pointer.move_to_location(round(x), round(y))
        pointer.pointer_up()
        actions.perform()
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver, duration=20).send_keys(key).perform()
        self.settle()

    def choose(self, selector: str, value: str) -> None:
        """Choose one of a list."""
        from selenium.webdriver.support.select import Select

        Select(self.one(selector)).select_by_value(value)
        self.settle()

    def colour(self, at: Point) -> tuple[int, int, int]:
        """Return the colour of a pixel."""
        red, green, blue = self.picture().getpixel((round(at[0]), round(at[1])))
        return red, green, blue

    def picture(self) -> Any:
        """Return what is in the window, as an image of Pillow."""
        image = pytest.importorskip("PIL.Image")
        self.js("document.activeElement?.blur()")
        return image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
