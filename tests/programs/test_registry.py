"""Tests of formats and writers of other packages: found last, and refused in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.levers.pipeline import Plain
from memplan.programs.sources import registry
from memplan.runtimes.choosing import choose_writer

ROOT = Path(__file__).parents[2]
TOY = """
from memplan import Buffer, Problem
from memplan.levers.pipeline import Plain
from memplan.programs.sources import of_problem
from memplan.programs.sources.registry import Source

def matches(head, path):
    return head.startswith(b"TOY ")

def read(path, options):
    sizes = map(int, path.read_text().split()[1:])
    buffers = [Buffer(f"b{at}", 0, 1, size) for at, size in enumerate(sizes)]
    return of_problem(Problem(buffers), "toy")

FORMAT = Source("toy", "a toy", "toys")
NONE = "words"
"""


def install(folder: Path, entries: str) -> None:
    """Declare entry points in a folder, as pip does."""
    about = folder / "toy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entries)
    (folder / "toy.py").write_text(TOY)


def memplan(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `memplan` where this folder is installed."""
    return subprocess.run(
        [sys.executable, "-m", "memplan", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_format_of_another_package_is_one_of_ours(tmp_path: Path) -> None:
    """Tests a file that none of ours recognises: planned, and described."""
    install(tmp_path, "[memplan.sources]\ntoy = toy:FORMAT\n")
    (tmp_path / "list.toy").write_text("TOY 8 4\n")
    run = memplan(tmp_path, "plan", "list.toy", "--json")
    assert (run.returncode, run.stderr) == (0, "")
    assert '"source": "toy"' in run.stdout
    assert "list.toy is a toy with 2 buffers to plan." in memplan(tmp_path, "list.toy").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("toy:NONE", "leads to no memplan.programs.sources.registry.Source"),
        ("toy:nothing", "of the package toy cannot be loaded: AttributeError"),
        ("absent:FORMAT", "of the package toy cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_what_is_no_format_is_named(tmp_path: Path, entry: str, words: str) -> None:
    """Tests a sentence with the entry point, and that files of ours do not need it."""
    install(tmp_path, f"[memplan.sources]\ntoy = {entry}\n")
    (tmp_path / "list.toy").write_text("TOY 8 4\n")
    run = memplan(tmp_path, "plan", "list.toy")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("memplan: the entry point toy of memplan.sources ")
    assert words in run.stderr
    assert memplan(tmp_path, "plan", str(ROOT / "examples" / "five.csv")).returncode == 0


def test_a_writer_of_another_package_is_chosen_by_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that it gets the program, and that suffixes of ours do not ask other packages."""
    asked = []

    def find(group: str) -> dict[str, object]:
        asked.append(group)
        return {"toy": Plain}

    monkeypatch.setattr(registry, "_load_all", find)
    five = ROOT / "examples" / "five.csv"
    writer = choose_writer(five, Path("out.toy"))
    assert type(writer) is Plain
    assert asked == ["memplan.writers"]
    choose_writer(mp.load(five), Path("out.h"))
    with pytest.raises(MemplanError, match="is neither a TFLite nor an ONNX model"):
        choose_writer(mp.load(five), Path("out.other"))
    assert asked == ["memplan.writers"] * 2


def test_a_table_loads_no_reader() -> None:
    """Tests that a problem in CSV does not wait for the readers of models."""
    program = """
import sys
import memplan

memplan.load("examples/five.csv")
readers = ("memplan.runtimes", "memplan.extensions.")
print([name for name in sys.modules if name.startswith(readers) and not name.endswith(".sources")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


def test_our_files_ask_no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests every format of ours: looking entry points up takes a tenth of a second."""
    monkeypatch.setattr(registry, "_load_all", lambda group: pytest.fail(group))
    registry.find_others.cache_clear()
    models = ROOT / "examples" / "models"
    for path in (ROOT / "examples" / "five.csv", *sorted(models.glob("*.*"))):
        if path.suffix in (".csv", ".tflite", ".onnx", ".json"):
            assert mp.load(path, dims={"batch": 1} if path.stem == "branches" else None)
