"""Tries an installed wheel: commands plan the examples and check the plans.

Run by cibuildwheel in an environment that has the wheel and nothing else: no tree, no compiler.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PEAKS = {
    "five.csv": 12,
    "models/mobile.tflite": 36_864,
    "models/residual.graph.json": 73_728,
    "models/residual.pt2": 73_728,
    "structures/resnet50.graph.json": 9_633_792,
}


def run(*arguments: str | Path) -> str:
    """Run `memplan` as a program; return what it prints."""
    command = [sys.executable, "-P", "-m", "memplan", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Plan each example, check its plan by the referee, and write what runtimes take."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, peak in PEAKS.items():
            plan = folder / "plan.csv"
            answer: dict[str, Any] = json.loads(
                run("plan", EXAMPLES / file, "--no-runtime", "--json", "-o", plan)
            )
            assert (answer["status"], answer["peak"]) == ("optimal", peak), (file, answer)
            assert run("verify", EXAMPLES / file, plan).startswith("OK"), file
        planned, header = folder / "planned.tflite", folder / "plan.h"
        run("apply", EXAMPLES / "models/mobile.tflite", "-o", planned, "--c-header", header)
        assert planned.stat().st_size > 0
        assert "36864" in header.read_text(encoding="utf-8")
        run("view", EXAMPLES / "five.csv")
        # The native module of the published searches, which an entry point leads to.
        run("plan", EXAMPLES / "five.csv", "--capacity", "12", "--solver", "telamalloc", "-o", plan)
        assert run("verify", EXAMPLES / "five.csv", plan).startswith("OK")
        flags = ["--capacity=12", f"--input={EXAMPLES / 'five.csv'}", f"--output={plan}"]
        program = Path(sysconfig.get_path("scripts")) / "minimalloc"
        subprocess.run([program, *flags], check=True, capture_output=True)
        assert run("verify", EXAMPLES / "five.csv", plan).startswith("OK")
    print(f"{run('--version').strip()} on Python {sys.version.split()[0]}: {len(PEAKS)} plans")


if __name__ == "__main__":
    main()
