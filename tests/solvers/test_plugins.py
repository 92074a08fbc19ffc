"""Tests of solvers and commands of other packages: found, refereed, and refused in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
WRONG = """
from memplan.solvers.registry import PLAIN, Solver

def solve(run):
    run.offer([0] * len(run.problem), "all at the bottom")

SOLVERS = [Solver("wrong", "a plan in which everything overlaps", PLAIN, solve=solve)]
NO_SOLVERS = ["words"]
"""


def install(folder: Path, name: str, group: str, entry: str) -> None:
    """Declare an entry point in a folder, as pip does."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


def memplan(*arguments: str, paths: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run `memplan` where these folders are installed."""
    return subprocess.run(
        [sys.executable, "-m", "memplan", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def example(tmp_path: Path) -> list[Path]:
    """Return where the example is installed."""
    install(tmp_path, "first", "memplan.solvers", "first_come = first_come:FIRST_COME")
    install(tmp_path, "second", "memplan.commands", "count = first_come:count")
    return [tmp_path, EXAMPLE]


def test_a_solver_of_another_package_is_one_of_ours(example: list[Path]) -> None:
    """Tests the solver of the example: listed, asked by name, held to its constraints."""
    assert "first_come" in memplan("solvers", paths=example).stdout
    run = memplan("plan", "examples/five.csv", "--solver", "first_come", paths=example)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
    run = memplan("plan", "examples/five.csv", "--solver=first_come", "--pin=b1=0", paths=example)
    assert (run.returncode, run.stdout) == (2, "")
    assert "first_come does not support pins" in run.stderr


def test_a_command_of_another_package_is_one_of_ours(example: list[Path]) -> None:
    """Tests the command of the example: in the help, run, and its errors as sentences."""
    assert "count" in memplan("--help", paths=example).stdout
    run = memplan("count", "examples/five.csv", paths=example)
    assert (run.returncode, run.stdout, run.stderr) == (0, "5 buffers\n", "")
    run = memplan("count", "nothing.csv", paths=example)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("memplan: nothing.csv: ")


def test_a_wrong_plan_is_never_returned(tmp_path: Path) -> None:
    """Tests that the referee stands between a solver and its caller."""
    (tmp_path / "wrong.py").write_text(WRONG)
    install(tmp_path, "wrong", "memplan.solvers", "wrong = wrong:SOLVERS")
    run = memplan("plan", "examples/five.csv", "--solver", "wrong", paths=[tmp_path])
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("memplan: the solver wrong made a plan that is wrong: ")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("gone = nothing_there:SOLVERS", "cannot be loaded: ModuleNotFoundError"),
        ("bad = wrong:NO_SOLVERS", "each must be a memplan.solvers.registry.Solver"),
    ],
)
def test_solvers_that_cannot_be_loaded_are_named(tmp_path: Path, entry: str, words: str) -> None:
    """Tests that a broken package is an error only where its solvers are asked for."""
    (tmp_path / "wrong.py").write_text(WRONG)
    install(tmp_path, "broken", "memplan.solvers", entry)
    assert memplan("plan", "examples/five.csv", paths=[tmp_path]).returncode == 0
    run = memplan("solvers", paths=[tmp_path])
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "the package broken" in run.stderr
    assert words in run.stderr


def test_a_command_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    """Tests that the help of all others still comes, and that ours cannot be replaced."""
    install(tmp_path, "broken", "memplan.commands", "gone = nothing_there:command")
    install(tmp_path, "thief", "memplan.commands", "plan = nothing_there:command")
    assert "The package broken" in memplan("--help", paths=[tmp_path]).stdout
    run = memplan("gone", paths=[tmp_path])
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("memplan: the package broken has no command gone: ")
    assert memplan("plan", "examples/five.csv", paths=[tmp_path]).returncode == 0
