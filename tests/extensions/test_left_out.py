"""Tests that the rest of memplan works where an extension is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HIDES = """
import sys


class LeftOut:
    def find_spec(self, name, path=None, target=None):
        if name == LEFT_OUT or name.startswith(LEFT_OUT + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


LEFT_OUT = sys.argv.pop(1)
sys.meta_path.insert(0, LeftOut())
"""
COMMANDS = """
from memplan.cli import main
from memplan.cli.plugins import _OURS

for name in _OURS:
    assert main([name, "--help"]) == 0, name
for line in sys.stdin.read().splitlines():
    print(main(line.split()), "<-", line)
"""
LEFT_OUT = ("memplan._published", "memplan.extensions.published")
LINES = (
    "plan examples/five.csv -o {folder}/plan.csv",
    "verify examples/five.csv {folder}/plan.csv",
    "plan examples/five.csv --solver exact:nogoods=off --json",
    "inspect examples/models/mobile.tflite --no-runtime",
    "compare examples/five.csv examples/five.csv",
    "view examples/five.csv {folder}/plan.csv",
    "solvers",
    "solvers auto",
)


def run(left_out: str, program: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program without a module."""
    command = [sys.executable, "-c", HIDES + program, left_out]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=ROOT, env={**os.environ}
    )


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_commands_do_without_the_published_searches(left_out: str, tmp_path: Path) -> None:
    """Tests all helps, some answers, and the one sentence where such a search is asked for."""
    refused = "plan examples/five.csv --solver minimalloc"
    lines = [line.format(folder=tmp_path) for line in LINES] + [refused]
    done = run(left_out, COMMANDS, "\n".join(lines))
    codes = [line for line in done.stdout.splitlines() if "<-" in line]
    assert codes == [f"0 <- {line}" for line in lines[:-1]] + [f"2 <- {refused}"], done.stderr
    [sentence] = done.stderr.splitlines()
    assert "there is no solver minimalloc; choose one of auto, greedy, exact" in sentence.replace(
        '"', ""
    )


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_solve_and_the_other_interface_do_without_the_published_searches(left_out: str) -> None:
    """Tests the public names, and the one sentence where such a search is asked for."""
    program = """
import memplan as mp
import memplan.extensions.minimalloc as mm

five = mp.load("examples/five.csv").problem
print(mp.solve(five).status, mp.Repacker(five).plan().peak)
for ask in (
    lambda: mp.solve(five, "telamalloc"),
    lambda: mp.Repacker(five, solver="minimalloc"),
    lambda: mm.Solver(mm.SolverParams(published=True)),
):
    try:
        print(ask() is not None)
    except mp.MemplanError as error:
        print(error)
problem = mm.from_csv_file("examples/five.csv")
problem.capacity = 12
print(mm.Solver().solve(problem).height)
"""
    done = run(left_out, program)
    *answers, height = done.stdout.splitlines()
    assert (answers[0], height) == ("optimal 12", "12"), done.stderr
    for sentence in answers[1:3]:
        assert sentence.startswith("there is no solver")
    if left_out == "memplan._published":
        assert "memplan._published, which is not installed" in answers[3]


def test_solving_loads_the_core_alone() -> None:
    """Tests that the published searches wait until one of them is asked for."""
    program = """
import sys
import memplan as mp

five = mp.load("examples/five.csv").problem
asked = ("memplan._published", "memplan.extensions.published")
for solver in ("auto", "exact", "greedy_by_size", "minimalloc"):
    mp.solve(five, solver)
    print(solver, *(name for name in asked if name in sys.modules))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    *ours, published = done.stdout.splitlines()
    assert ours == ["auto", "exact", "greedy_by_size"]
    assert published.split() == ["minimalloc", *LEFT_OUT]
