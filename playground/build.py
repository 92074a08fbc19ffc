"""Writes the page on which one drops a model: one HTML file that needs no network.

`make playground` runs it, once em++ (Emscripten) has compiled the core from one file. Readers of
files, the canvas and the page are JavaScript: tables that they share with memplan are written into
them, and scripts, colours and styles of the report page are taken from `memplan/view/page`.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from memplan.programs.sources.graph_json import BITS
from memplan.runtimes.onnx.operators import TABLE as ONNX
from memplan.runtimes.onnx.read import graph_build, protos
from memplan.runtimes.tflm.names import ELEMENT_TYPES, OPERATORS
from memplan.runtimes.tflm.read.graph import UNKNOWN_CONTROL
from memplan.runtimes.tflm.read.refusals import CUSTOM, KERNELS
from memplan.view.classes import PALETTE
from memplan.view.page.markup import asset, fill_page

HERE = Path(__file__).parent
READERS = ("refusal", "graph", "flatbuffer", "tflite", "tflite_plan", "csv", "graph_json", "onnx")
SHARED = ("numbers", "memory", "skyline", "colours", "raster", "names", "boxes", "panels")
PAGE = ("shown", "figure", "page")
EMPTY = {
    "title": "What does this model need?",
    "grade": "",
    "headline": "The peak of its activations, planned in this page.",
}
_EXPORTED = "_solve,_why,_malloc,_free"
_LINK = ("--no-entry", "-sSTANDALONE_WASM", "-sALLOW_MEMORY_GROWTH")


def write_page(core: Path, path: Path) -> None:
    """Write the page, with a core that em++ has compiled as `build/onefile/memplan.wasm.o`.

    Raises
    ------
    FileNotFoundError, subprocess.CalledProcessError
        If em++ is not installed, or does not link the core.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    door, module = path.with_name("door.o"), path.with_name("memplan.wasm")
    include = ("-I", str(core.parent))
    subprocess.run(["emcc", "-Os", *include, "-c", HERE / "door.c", "-o", door], check=True)
    linked = ["em++", "-Os", core, door, "-o", module, *_LINK, f"-sEXPORTED_FUNCTIONS={_EXPORTED}"]
    subprocess.run(linked, check=True)
    path.write_text(format_page(module.read_bytes()), encoding="utf-8")


def format_page(module: bytes) -> str:
    """Return the page with a compiled core."""
    core = f'const CORE = "{base64.b64encode(module).decode()}";'
    shared = "\n".join(asset(f"{name}.js") for name in SHARED)
    script = "\n".join([format_readers(), shared, core, _scripts(PAGE)])
    style = asset("page.css") + (HERE / "page.css").read_text(encoding="utf-8")
    template = asset("head.html") + (HERE / "page.html").read_text(encoding="utf-8")
    return fill_page(template, script, [], style, **EMPTY)


def format_readers() -> str:
    """Return the scripts that read files and plan, which need no page."""
    tables = {
        "TFLITE": {
            "operators": OPERATORS,
            "elements": ELEMENT_TYPES,
            "kernels": sorted({*KERNELS, *CUSTOM}),
            "unknown": sorted(UNKNOWN_CONTROL),
        },
        "GRAPH_BITS": BITS,
        "ONNX": {
            "bits": {n: protos.bits_of(n) for n in range(64) if protos.dtype_of(n)},
            "views": sorted(name for name, row in ONNX.items() if row.is_view),
            "random": [name for name, row in ONNX.items() if row.shared and "." not in name],
            "shapeOnly": sorted(name for name, row in ONNX.items() if row.asks_shape),
            "alignment": graph_build.ALIGNMENT,
            "planned": sorted(graph_build.PLANNED),
        },
        "PALETTE": PALETTE,
    }
    lines = [f"const {name} = {json.dumps(table)};" for name, table in tables.items()]
    return "\n".join([*lines, _scripts((*READERS, "planner", "reading"))])


def _scripts(names: Sequence[str]) -> str:
    return "\n".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in names)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python playground/build.py build/onefile/memplan.wasm.o PAGE")
    written = Path(sys.argv[2])
    write_page(Path(sys.argv[1]), written)
    print(f"{written}: {written.stat().st_size:,} bytes")
