"""The scripts of the page for dropped models, and a browser for them."""

from __future__ import annotations

import base64
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest

ROOT = Path(__file__).parents[2]
Ask = Callable[..., Any]

# A page with the readers alone, which need no core, and what asks them.
_ASKED = """
    window.readers = (data, then) => {
        try {
            const model = readFile(Uint8Array.from(atob(data), (each) => each.charCodeAt(0)));
            return then(model);
        } catch (error) {
            return error instanceof Refusal ? { refusal: error.message } : { fault: error.stack };
        }
    };
    window.rowsOf = (data) => window.readers(data, ({ rows, greedy, notes }) => ({
        rows: rows.map((row) => [row.id, row.start, row.end, row.size, row.alignment, row.pin]),
        greedy: greedy?.peak ?? null,
        notes,
    }));
    window.written = (data, offsets) => window.readers(data, ({ save }) =>
        save && btoa(Array.from(save(offsets), (each) => String.fromCharCode(each)).join("")));
"""


@pytest.fixture(scope="session")
def build() -> dict[str, Any]:
    """Return what is in `playground/build.py`."""
    return runpy.run_path(str(ROOT / "playground" / "build.py"))


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """Start the browser, once for all tests."""
    started = chromium.start()
    yield started
    started.quit()


@pytest.fixture
def ask(build: dict[str, Any], driver: Any, tmp_path: Path) -> Ask:
    """Return what calls a function of the readers with the bytes of a file."""
    path = tmp_path / "readers.html"
    script = f"(() => {{ {build['format_readers']()}\n{_ASKED} }})();"
    path.write_text(f'<!doctype html><meta charset="utf-8"><script>{script}</script>', "utf-8")
    driver.get(path.as_uri())

    def asks(function: str, data: bytes, *arguments: object) -> Any:
        text = base64.b64encode(data).decode()
        return driver.execute_script(f"return window.{function}(...arguments)", text, *arguments)

    return asks
