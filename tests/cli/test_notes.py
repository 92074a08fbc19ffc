"""Tests that notes reach a script: in JSON with their codes, and as an error with `--strict`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memplan.base.notes import Code
from memplan.cli import main
from memplan.problem.formats.trace_json import write_trace
from memplan.problem.trace import Trace


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Return a file with one note: of its two allocations one outlives the run."""
    path = tmp_path / "trace.json"
    kept = Trace.from_arrays([0, 1], [2, 3], [4, 8], [(), ()], outlives=[False, True])
    path.write_text(write_trace(kept))
    return str(path)


@pytest.mark.parametrize("command", ["plan", "inspect"])
def test_notes_in_json(command: str, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a note has its code, its sentence and the ids that it is about."""
    assert main([command, trace, "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note["code"] == Code.NOT_PLANNED
    assert note["text"].startswith("1 of 2 allocations (8 bytes) outlive the run")
    assert len(note["tensors"]) == 1


def test_strict_without_notes(tmp_path: Path) -> None:
    """Tests that a file without notes passes."""
    path = tmp_path / "p.csv"
    path.write_text("id,lower,upper,size\na,0,1,4\n")
    assert main(["plan", str(path), "--strict"]) == 0


def test_a_conversion_says_what_is_lost(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the notes of a model that becomes a problem, and the limit of a list of events."""
    assert main(["convert", trace, str(tmp_path / "a.json")]) == 0
    assert "note: 1 of 2 allocations (8 bytes) outlive the run" in capsys.readouterr().err
    events = tmp_path / "a.events"
    events.write_text("ggml-events 1\nlimit 64\n+ 32\n- 0\n")
    assert main(["convert", str(events), str(tmp_path / "a.csv")]) == 0
    assert "use --block-limit 64 with" in capsys.readouterr().err
