"""Tests of the whole page, which a browser opens from a file; em++ compiles the core for it."""

from __future__ import annotations

import base64
import io
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chromium import Page
from compilers import require_compiler
from mutants import Mutants
from playground_models import FILES, find

import memplan as mp
from memplan.problem.formats import minimalloc_csv
from memplan.runtimes.tflm.read.model import parse

pytestmark = pytest.mark.deep

ROOT = Path(__file__).parents[2]
LARGEST = 1_500_000  # bytes of the page
MUTANTS = 200


@pytest.fixture(scope="module")
def path(build: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page."""
    require_compiler("em++", flags=["-std=c++17", "-c"])  # Debian: emscripten
    core = Path("build", "onefile", "memplan.wasm.o")
    subprocess.run(["make", core, "TARGET=wasm", "CXX=em++"], check=True, cwd=ROOT)
    path = tmp_path_factory.mktemp("playground") / "playground.html"
    build["write_page"](ROOT / core, path)
    return Path(path)


@pytest.fixture
def page(driver: Any, path: Path) -> Page:
    """Open the page."""
    return Page(driver, path)


def show(page: Page, name: str, data: bytes) -> dict[str, Any]:
    """Drop a file on the page; return what it says of it."""
    text = base64.b64encode(data).decode()
    said: dict[str, Any] = page.js("return memplan.show(...arguments)", name, text)
    return said


@pytest.mark.parametrize("name", FILES)
def test_peak(name: str, page: Page) -> None:
    """Tests that the page has the peak of `memplan plan`, and offsets that the referee accepts."""
    file = find(name)
    said = show(page, file.name, file.read_bytes())
    planned = mp.plan_model(file)
    assert said["peak"] == planned.plan.peak
    assert said["bound"] == planned.plan.lower_bound
    table = page.js("return memplan.csv()")
    plan = minimalloc_csv.read_plan(table, "plan.csv")
    mp.verify(planned.problem, plan)
    ours = minimalloc_csv.write_plan(planned.problem, plan)
    assert table == ours
    assert f"{planned.plan.peak:,}" in page.text("#moment caption") or said["peak"] > said["bound"]
    assert page.requests() == [f"{page.driver.current_url}"]
    assert page.complaints() == []


def test_one_file(path: Path) -> None:
    """Tests the size of the page, and that it names no other address."""
    text = path.read_text()
    assert path.stat().st_size <= LARGEST
    assert "http://" not in text
    assert "https://" not in text


def test_damaged_files(page: Page, tmp_path: Path) -> None:
    """Tests that damaged files give a verdict or a sentence, and that nothing goes wrong inside."""
    mutants = Mutants(tmp_path, ("csv", "graph", "tflite", "onnx", "pickle", "pt2"))
    for number in range(MUTANTS):
        content = mutants[number].content
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        said = show(page, f"mutant {number}", data)
        text = page.text("#verdict")
        assert text.endswith(".") if "error" in said else text.startswith("Peak "), (number, text)
        assert "cannot plan the file" not in text, number
    assert page.complaints() == []


def test_planned_model(page: Page) -> None:
    """Tests that the saved model has the offsets of the saved plan, and is read again."""
    file = find("examples/models/mobile.tflite")
    said = show(page, file.name, file.read_bytes())
    saved = bytes(page.js("return Array.from(memplan.model())"))
    assert saved.endswith(file.read_bytes())
    offsets = parse(saved, file.name).offsets
    problem = mp.load(file).problem
    plan = minimalloc_csv.read_plan(page.js("return memplan.csv()"), "plan.csv")
    assert {plan.offset(id) for id in problem.ids} <= {*offsets}
    again = show(page, "planned.tflite", saved)
    assert again["peak"] == said["peak"]
    assert "the offsets in the file are dropped" in page.text("#notes")
    assert page.one("#save-model").is_displayed()


def test_opening_and_dropping(page: Page) -> None:
    """Tests that a file can be chosen and dropped, and that the same one is planned both times."""
    file = find("examples/models/mobile.tflite")
    page.one("#file").send_keys(str(file))
    page.until(lambda: page.js("return document.documentElement.dataset.shown") == file.name)
    verdict, facts = page.text("#verdict"), page.text("#facts").rpartition(" · ")[0]
    show(page, "five.csv", find("examples/five.csv").read_bytes())
    assert page.text("#verdict") != verdict
    script = """
        const bytes = Uint8Array.from(atob(arguments[1]), (each) => each.charCodeAt(0));
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([bytes], arguments[0]));
        dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    """
    page.js(script, "dropped", base64.b64encode(file.read_bytes()).decode())
    page.until(lambda: page.js("return document.documentElement.dataset.shown") == "dropped")
    assert page.text("#verdict") == verdict
    assert page.text("#facts").rpartition(" · ")[0] == facts
    assert page.complaints() == []


def test_pictures(page: Page) -> None:
    """Tests that boxes are drawn, in both themes and on narrow screens, and what a click shows."""
    image = pytest.importorskip("PIL.Image")
    file = find("examples/structures/resnet50.graph.json")
    show(page, file.name, file.read_bytes())
    for width in (1400, 420):
        page.driver.set_window_size(width, 1000)
        page.settle()
        png = page.one("#memory").screenshot_as_png
        colours = image.open(io.BytesIO(png)).convert("RGB").getcolors(1 << 20)
        assert len({colour for count, colour in colours if count > 50}) > 5
    before = page.text("#moment-time")
    assert before.endswith("the peak")
    page.one("#load").click()
    assert page.text("#moment-time") != before
    theme = page.js("return document.documentElement.dataset.theme")
    page.one("#theme").click()
    assert page.js("return document.documentElement.dataset.theme") != theme
    page.press("\ue00c")  # Escape
    assert page.text("#moment-time") == before
    page.driver.set_window_size(1280, 1000)


def test_gaps_and_pins(page: Page) -> None:
    """Tests that gaps with windows, pins and hints reach the core."""
    text = (
        "id,start,end,size,alignment,gaps,offset\n"
        "a,0,9,64,1,3-5@0:16,\nb,3,5,48,1,,\nc,0,9,8,32,,64\n"
    )
    problem = minimalloc_csv.read_problem(text, "gaps.csv")
    said = show(page, "gaps.csv", text.encode())
    assert said["peak"] == mp.plan_model(problem).plan.peak == 72
    said = show(page, "pins.csv", b"id,start,end,size,offset\na,0,9,64,0\nb,3,5,48,8\n")
    assert "error" in said
