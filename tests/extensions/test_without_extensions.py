"""Tests that everything else works where `memplan.extensions` is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

# A folder whose `memplan` is ours without its extensions.
_WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Nothing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] == ["memplan", "extensions"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
"""
_COMMANDS = (
    _WITHOUT
    + """
import contextlib, io, json, os

os.chdir(sys.argv[1])
from memplan.cli import main

for words in json.loads(sys.stdin.read()):
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = main(words)
    print(json.dumps([code, said.getvalue(), complained.getvalue()]))
"""
)


def run(folder: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Run commands in one process without extensions; return code, output and errors of each."""
    child = subprocess.run(
        [sys.executable, "-c", _COMMANDS, str(folder)],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
    )
    assert child.returncode == 0, child.stderr
    return [tuple(json.loads(line)) for line in child.stdout.splitlines()]


def test_models_are_planned_written_and_verified(tmp_path: Path) -> None:
    """Tests plan, apply, fit and verify of TFLite, ONNX, graphs and CSV."""
    mobile, branches = (
        str(EXAMPLES / "models/mobile.tflite"),
        str(EXAMPLES / "models/branches.onnx"),
    )
    graph, five = str(EXAMPLES / "models/residual.graph.json"), str(EXAMPLES / "five.csv")
    answers = run(
        tmp_path,
        ["plan", mobile, "-o", "mobile.json"],
        ["verify", mobile, "mobile.json"],
        ["apply", mobile, "-o", "mobile.tflite"],
        ["plan", branches, "--dim", "batch=2", "--no-runtime", "-o", "branches.json"],
        ["verify", branches, "branches.json", "--dim", "batch=2"],
        ["plan", graph],
        ["apply", graph, "--c-header", "graph.h"],
        ["fit", graph, "1MiB"],
        ["plan", five, "-o", "five.json"],
        ["verify", five, "five.json"],
        ["inspect", five],
        ["inspect", mobile, "--board", "32-bit"],
        ["solvers"],
    )
    for code, said, complained in answers:
        assert code == 0, said + complained


@pytest.mark.slow
def test_a_program_of_pytorch_is_planned(tmp_path: Path) -> None:
    """Tests a `.pt2` file."""
    torch = pytest.importorskip("torch")
    program = torch.export.export(torch.nn.Linear(4, 4), (torch.zeros(2, 4),))
    torch.export.save(program, tmp_path / "linear.pt2")
    [(code, said, complained)] = run(tmp_path, ["plan", "linear.pt2", "--json"])
    assert code == 0, complained
    assert json.loads(said)["source"] == "torch"


def test_files_of_extensions_are_not_recognised(tmp_path: Path) -> None:
    """Tests one sentence for chips, a dump of XLA, a model of OpenVINO, and a folder of dumps."""
    (tmp_path / "model.xml").write_text('<?xml version="1.0"?><net name="n" version="11"></net>')
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "module.hlo.pb").write_bytes(b"\0" * 8)
    mobile = str(EXAMPLES / "models/mobile.tflite")
    [(code, _, complained)] = run(tmp_path, ["plan", mobile, "--board", "cortex-m4"])
    assert code == 2
    assert complained.endswith("; known are 32-bit, 64-bit\n")
    scan = str(ROOT / "tests" / "data" / "xla_scan.hlo.pb")
    answers = run(tmp_path, *(["plan", each] for each in (scan, "model.xml", "dump")))
    for code, said, complained in answers:
        assert (code, said) == (2, "")
        assert complained.startswith("memplan: ")
        assert "Traceback" not in complained
        assert "XLA" not in complained
    assert "unknown format; memplan reads ONNX, TFLite and torch.export" in answers[0][2]


def test_nothing_else_imports_an_extension() -> None:
    """Tests that all other modules can be imported without extensions."""
    program = (
        _WITHOUT
        + """
import importlib, pkgutil
import memplan

for module in pkgutil.walk_packages(memplan.__path__, "memplan."):
    if module.name.endswith(("__main__", "_child")) or ".extensions" in module.name:
        continue
    importlib.import_module(module.name)
"""
    )
    child = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
