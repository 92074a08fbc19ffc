"""Tests of the program minimalloc: flags in all their forms, exit codes, words and files."""

from __future__ import annotations

import csv
import os
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

PROGRAM = Path(sysconfig.get_path("scripts")) / f"minimalloc{sysconfig.get_config_var('EXE') or ''}"
FIVE = Path(__file__).parents[2] / "examples" / "five.csv"
SOLVED = """\
id,lower,upper,size,offset
b1,0,3,4,8
b2,3,9,4,8
b3,0,9,4,4
b4,9,21,4,4
b5,0,21,4,0
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Return a folder with the example of the paper."""
    (tmp_path / "five.csv").write_text(FIVE.read_text())
    return tmp_path


def run(here: Path, *flags: str) -> tuple[int, list[str], str]:
    """Run the program on the example; return code, lines of standard error, and output."""
    command = [str(PROGRAM), "--input=five.csv", "--output=out.csv", *flags]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr.splitlines(), done.stdout


def height(here: Path) -> int:
    """Return the height of what was written, after a reader of CSV."""
    with open(here / "out.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    return max(int(row["size"]) + int(row["offset"]) for row in rows)


FORMS = [
    ["--capacity=12", "--validate"],
    ["--capacity", "12", "-validate"],
    ["-capacity=12", "--validate=true"],
    ["-capacity", "0xC", "--novalidate", "--validate=YES"],
    ["--capacity= 12 ", "--validate=1", "--timeout=60s"],
    ["--capacity=+12", "--validate=t", "--timeout", "1h2m3.5s"],
    ["--capacity=9", "--capacity=12", "--validate", "--timeout=inf"],
    ["--capacity=12", "--validate=y", "--timeout=.5h", "word", "--", "--not-a-flag"],
    ["--capacity=12", "--validate", "--undefok=verbosity,other", "--verbosity=2", "--noother"],
    ["--flagfile=flags"],
    ["--capacity=12", "--validate", "--nocanonical_only", "--no-hatless-pruning", "--published"],
    ["--capacity=12", "--validate", "--published", "--preordering_heuristics=TWA,,WAT"],
    ["--capacity=99", "--validate", "--minimize-capacity"],
]


@pytest.mark.parametrize("flags", FORMS, ids=" ".join)
def test_forms_of_flags(flags: Sequence[str], here: Path) -> None:
    """Tests each form in which the flags of that program are written."""
    (here / "flags").write_text("# what a build gives\n--capacity=12\n\n--validate\n")
    code, words, out = run(here, *flags)
    assert (code, words[1:], out) == (0, ["Validation PASS, height 12"], "")
    assert words[0].startswith("Elapsed time 0.")
    assert words[0].endswith("s")
    assert height(here) == 12


WRONG = {
    ("--capacity=12", "--colour=red"): "Unknown command line flag 'colour'",
    ("--capacity=12x",): "Illegal value '12x' specified for flag 'capacity'",
    ("--capacity=99999999999999999999",): "Illegal value '99999999999999999999' specified",
    ("--capacity",): "Missing the value for the flag 'capacity'",
    ("--nocapacity",): "Negative form is not valid for the flag 'capacity'",
    ("--novalidate=true",): "Negative form of the flag 'validate' takes no value",
    ("--validate=maybe",): "Illegal value 'maybe' specified for flag 'validate'",
    ("--timeout=60",): "Illegal value '60' specified for flag 'timeout'",
    ("--timeout=1.2.3s",): "Illegal value '1.2.3s' specified for flag 'timeout'",
    ("--timeout=s",): "Illegal value 's' specified for flag 'timeout'",
    ("--flagfile=nothing",): "The file of flags 'nothing' cannot be read",
    ("--flagfile=five.csv", "--flagfile=loop"): "The file of flags 'loop' cannot be read",
}


@pytest.mark.parametrize("flags", WRONG, ids=" ".join)
def test_wrong_flags(flags: Sequence[str], here: Path) -> None:
    """Tests that a wrong flag is one line and exit code 1, and that nothing is written."""
    (here / "loop").write_text("--flagfile=loop\n")
    code, words, _ = run(here, *flags)
    assert (code, len(words)) == (1, 1)
    assert words[0].startswith(f"ERROR: {WRONG[tuple(flags)]}")
    assert sorted(os.listdir(here)) == ["five.csv", "loop"]


def test_what_does_not_fit(here: Path) -> None:
    """Tests exit code 1, the words, and that the old file stays."""
    (here / "out.csv").write_text("old")
    for flags in (["--capacity=11"], ["--capacity=11", "--minimize_capacity"], []):
        code, words, _ = run(here, *flags)
        assert (code, len(words)) == (1, 2)
        assert words[1].startswith("NOT_FOUND: ")
    code, words, _ = run(here, "--capacity=12", "--timeout=0")
    assert (code, words[1][:19]) == (1, "DEADLINE_EXCEEDED: ")
    assert (here / "out.csv").read_text() == "old"
    assert sorted(os.listdir(here)) == ["five.csv", "out.csv"]


def test_files(here: Path) -> None:
    """Tests inputs that cannot be read, outputs that cannot be written, a link and a device."""
    code, words, _ = run(here, "--capacity=12", "--input=nothing.csv")
    assert (code, words) == (1, ["Opening file nothing.csv failed: name a table with --input."])
    code, words, _ = run(here, "--capacity=12", "--output=no/folder.csv")
    assert (code, words[1:]) == (1, ["The file no/folder.csv cannot be written."])
    assert run(here, "--capacity=12", "--output=")[0] == 0
    (here / "bad.csv").write_text("id,lower,upper,size\na,0,x,1\n")
    code, words, _ = run(here, "--capacity=12", "--input=bad.csv")
    assert (code, words) == (1, ['INVALID_ARGUMENT: line 2: "x" is not a whole number'])
    assert sorted(os.listdir(here)) == ["bad.csv", "five.csv"]
    if os.name == "posix":
        (here / "link.csv").symlink_to("out.csv")
        assert run(here, "--capacity=12", "--output=link.csv")[0] == 0
        assert (here / "link.csv").is_symlink()
        assert height(here) == 12
        assert run(here, "--capacity=12", "--output=/dev/stdout")[2].splitlines()[0] == (
            "id,lower,upper,size,offset"
        )


def test_picture(here: Path) -> None:
    """Tests the picture in LaTeX: a rectangle for each stretch between gaps."""
    (here / "gaps.csv").write_text("id,lower,upper,size,gaps\na,0,9,3,2-4 5-6\nb,0,9,1,\n")
    code, _, out = run(here, "--input=gaps.csv", "--capacity=4", "--print_solution")
    assert code == 0
    assert out.count("% ID = a") == 3
    assert out.count("% ID = b") == 1
    assert out.count("\\begin") == out.count("\\end") == 2


def test_help_and_version(here: Path) -> None:
    """Tests that all flags are named."""
    code, words, out = run(here, "--help")
    assert (code, words) == (1, [])
    for name in ("capacity", "minimize_capacity", "published", "preordering_heuristics"):
        assert f"--{name}: " in out
    assert run(here, "--version")[2].startswith("minimalloc (memplan ")
