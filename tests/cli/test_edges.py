"""Programs at the edges, through the commands that write files and those that read them again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command_line import memplan
from compilers import require_compiler

# Words of formats and shells, and what no keyboard has.
NAMES = (
    "=1+1",
    ",",
    "#c",
    '"q"',
    ";",
    " lead",
    "../up",
    "a/b",
    "-o",
    "null",
    "漢字",
    "\u202e",
    "a\nb",
)


def chain(sizes: Sequence[int], names: Sequence[str] = (), alignment: int = 1) -> dict[str, Any]:
    """Return a program in JSON in which each tensor is made from the one before it."""
    ids = [*names] or [f"t{at}" for at in range(len(sizes))]
    return {
        "memplan_graph": 1,
        "alignment": alignment,
        "inputs": ids[:1],
        "outputs": ids[-1:],
        "tensors": [
            {"name": id, "dtype": "int8", "shape": [size]}
            for id, size in zip(ids, sizes, strict=True)
        ],
        "operators": [
            {"name": f"op {b}", "type": "Op", "inputs": [a], "outputs": [b]}
            for a, b in pairwise(ids)
        ],
    }


EDGES = {
    "nothing": chain([]),
    "one tensor": chain([64]),
    "one operator": chain([64, 128]),
    "no bytes": chain([0, 0, 0]),
    "bytes beside none": chain([64, 0, 32]),
    "beyond 32 bits": chain([1 << 30, 1 << 31, 1 << 30]),
    "as far as numbers go": chain([1 << 60, 1 << 61, 1 << 60]),
    "an alignment": chain([100, 200, 300], alignment=4096),
    "names": chain(range(1, len(NAMES) + 1), NAMES),
}


@pytest.fixture(params=EDGES)
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a folder with one program."""
    (tmp_path / "p.json").write_text(json.dumps(EDGES[request.param]))
    return tmp_path


def run(folder: Path, line: str) -> str:
    """Run a command that has to succeed without a word of warning, and return what it prints."""
    done = memplan(*line.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, ""), line
    return done.stdout


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_plans_are_verified(folder: Path, suffix: str) -> None:
    """Tests that the plan in each format is that of the program, with its proof if it needs one."""
    run(folder, f"plan p.json -o plan.{suffix} -q")
    run(folder, f"verify p.json plan.{suffix}")
    peak = json.loads(run(folder, "plan p.json --json"))["peak"]
    done = memplan("plan", "p.json", "-q", "--proof", "p.proof", cwd=folder)
    if peak:
        assert (done.returncode, done.stderr) == (0, "")
        assert "optimal" in run(folder, f"verify p.json plan.{suffix} --proof p.proof")
    else:
        assert done.stderr == "memplan: a peak of 0 needs no proof; p.proof was not changed\n"


@pytest.mark.slow
def test_headers_compile(folder: Path) -> None:
    """Tests that no warning and no claim of a header fails, whatever is done to the program."""
    for options in ("", "--order", "--bands", f"--recompute -c {1 << 62}"):
        run(folder, f"apply p.json --c-header plan.h {options}")
        for language in (["-x", "c", "-std=c99"], ["-x", "c++", "-std=c++17"]):
            flags = [*language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
            compiler = require_compiler("gcc", "clang", flags=flags)
            subprocess.run([compiler, *flags, "plan.h"], cwd=folder, check=True)


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_problems_are_planned_again(folder: Path, suffix: str) -> None:
    """Tests that a converted problem has the peak of the program."""
    run(folder, f"convert p.json problem.{suffix}")
    peaks = [
        json.loads(run(folder, f"plan {name} --json"))["peak"]
        for name in ("p.json", f"problem.{suffix}")
    ]
    assert peaks[0] == peaks[1]


@pytest.mark.parametrize(
    "options", ["--memory sram=100B --memory psram", f"--block-limit {(1 << 62) - 1}"]
)
def test_folders_are_verified(folder: Path, options: str) -> None:
    """Tests a plan for each memory, and for each block."""
    (folder / "plans").mkdir()
    run(folder, f"plan p.json {options} -o plans -q")
    if any((folder / "plans").iterdir()):  # nothing needs no block
        run(folder, "verify p.json plans")


def test_programs_together_are_verified(folder: Path) -> None:
    """Tests an arena of a program at an edge and another one, which keeps its result."""
    (folder / "q.json").write_text(json.dumps(chain([16, 8])))
    run(folder, "plan p.json q.json --keep q:outputs -o plans -q")
    for name in ("p.json q.json", "p.json", "q.json"):
        run(folder, f"verify {name} plans")
