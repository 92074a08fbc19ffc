"""Programs in processes of their own, and their limit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memplan.programs.sources.children import run_child

ANSWER = "import json, sys, time; order = json.load(sys.stdin); "


def program(folder: Path, text: str) -> Path:
    """Write a program that has read its order."""
    path = folder / "child.py"
    path.write_text(f"{ANSWER}{text}\n")
    return path


def test_a_program_that_waits_for_a_busy_machine_answers(tmp_path: Path) -> None:
    """Tests that time in which other programs run does not count, as a pause here."""
    run = run_child(program(tmp_path, "time.sleep(1.6); print(order['n'])"), {"n": 3}, 1.5)
    assert run is not None
    assert (run.returncode, run.stdout.split()) == (0, [b"3"])


@pytest.mark.skipif(sys.platform == "win32", reason="processor time has no limit there")
def test_a_program_that_computes_for_too_long_is_ended(tmp_path: Path) -> None:
    """Tests that the limit is one of processor time, and that what it ends is no crash."""
    assert run_child(program(tmp_path, "\nwhile True: pass"), {}, 1) is None


def test_a_program_that_never_answers_is_ended(tmp_path: Path) -> None:
    """Tests that a program which waits has a limit too."""
    assert run_child(program(tmp_path, "time.sleep(600)"), {}, 0.05) is None


def test_a_program_that_crashes_says_so(tmp_path: Path) -> None:
    """Tests that a crash is an answer, with its code and its last words."""
    run = run_child(program(tmp_path, "print('why', file=sys.stderr); sys.exit(7)"), {}, 5)
    assert run is not None
    assert (run.returncode, run.stderr.split()) == (7, [b"why"])
