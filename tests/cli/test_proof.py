"""Tests of `memplan plan --proof` and `--progress`, and of `memplan verify --proof`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import proofs
import pytest
from command_line import FIVE, assert_refused, memplan

from memplan.cli.progress import ProgressLine, format_progress
from memplan.problem import Problem, formats
from memplan.solvers import Progress
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, five: Problem) -> Path:
    """Return a folder with the example of MiniMalloc, an optimal plan and a proof of it."""
    (tmp_path / "five.csv").write_text(FIVE)
    lines = [*proofs.head(five, 11), "d - <- 0>=0 2>=0 4>=0", "c 1", "refuted"]
    (tmp_path / "five.proof").write_text("\n".join(lines) + "\n")
    run = memplan("plan", "five.csv", "-q", "-o", "five.plan.csv", cwd=tmp_path)
    assert run.returncode == 0
    return tmp_path


# verify --proof ----------------------------------------------------------------------------------


def test_a_proof_is_read(folder: Path) -> None:
    """Tests the words, and that an optimal plan is called so."""
    run = memplan("verify", "five.csv", "--proof", "five.proof", cwd=folder)
    proved = "proved: no plan has a peak of at most 11 bytes (1 clause)\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, proved, "")
    run = memplan("verify", "five.csv", "five.plan.csv", "--proof", "five.proof", cwd=folder)
    optimal = "the plan is optimal: its peak is 12 bytes\n"
    checked = "OK: 5 buffers, peak 12 bytes\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, checked + proved + optimal, "")


def test_a_plan_above_the_bound_is_not_called_optimal(folder: Path) -> None:
    """Tests that a proof of too little is right, and does not say what it does not."""
    text = (folder / "five.csv").read_text().replace("size", "size,offset").splitlines()
    offsets = ("", ",12", ",8", ",4", ",4", ",0")
    plan = "".join(f"{row}{at}\n" for row, at in zip(text, offsets, strict=True))
    (folder / "high.csv").write_text(plan)
    run = memplan("verify", "five.csv", "high.csv", "--proof", "five.proof", cwd=folder)
    assert run.returncode == 1
    assert "the plan may not be optimal: its peak is 16 bytes, not 12 bytes\n" in run.stdout


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("cap 11", "cap 12", "five.proof: line 5: - does not follow"),
        ("refuted\n", "", "five.proof: line 6: the proof ends too early"),
        ("sha256:", "sha256:0", "five.proof: line 2: the proof is about another problem"),
        ("memplan-proof", "\0\0", "five.proof: line 1: this line must be"),
    ],
)
def test_a_wrong_proof_is_one_sentence(old: str, new: str, sentence: str, folder: Path) -> None:
    """Tests file, line and mistake, and exit code 1."""
    file = folder / "five.proof"
    file.write_text(file.read_text().replace(old, new))
    assert_refused(
        memplan("verify", "five.csv", "--proof", "five.proof", cwd=folder), sentence, code=1
    )


def test_pins_and_reserved_ranges_are_part_of_the_problem(folder: Path) -> None:
    """Tests that a proof is held against the same options as the plan."""
    run = memplan(
        "verify",
        "five.csv",
        "--proof",
        "five.proof",
        "--pin",
        "b1=8",
        "--reserve",
        "90:99",
        cwd=folder,
    )
    assert_refused(run, "another problem", code=1)


def test_other_files_that_are_wrong(folder: Path) -> None:
    """Tests bad input (2) apart from a plan that is not valid (1)."""
    command = ("verify", "five.csv", "--proof", "five.proof")
    assert_refused(
        memplan("verify", "five.csv", "--proof", "nix", cwd=folder), "nix: the file cannot be read"
    )
    assert_refused(
        memplan("verify", "nix", "--proof", "five.proof", cwd=folder),
        "nix: the file cannot be read",
    )
    assert_refused(memplan(*command, "nix", cwd=folder), "nix: the file cannot be read")
    (folder / "bad.csv").write_text((folder / "five.plan.csv").read_text().replace(",8", ",4"))
    assert_refused(memplan(*command, "bad.csv", cwd=folder), "bad.csv: ", code=1)


# plan --proof ----------------------------------------------------------------------------------


def test_plan_writes_a_proof_that_verifies(folder: Path) -> None:
    """Tests the way from problem to plan and proof to the two checks."""
    formats.save(generators.flat_load(30, 4).with_capacity(None), folder / "flat.csv")
    run = memplan(
        "plan", "flat.csv", "--proof", "flat.proof", "-o", "flat.plan.csv", "--json", cwd=folder
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)["proof"] == "flat.proof"
    run = memplan("verify", "flat.csv", "flat.plan.csv", "--proof", "flat.proof", cwd=folder)
    assert run.returncode == 0
    assert "the plan is optimal" in run.stdout


def test_infeasible_comes_with_a_proof(folder: Path) -> None:
    """Tests that exit code 1 can be proved as well."""
    run = memplan("plan", "five.csv", "-c", "11", "-q", "--proof", "it.proof", cwd=folder)
    assert (run.returncode, run.stderr) == (1, "")
    run = memplan("verify", "five.csv", "--proof", "it.proof", cwd=folder)
    assert "proved: no plan has a peak of at most 11 bytes" in run.stdout


def test_no_proof_is_said_and_touches_nothing(folder: Path) -> None:
    """Tests a fit, of which there is nothing to prove."""
    before = (folder / "five.proof").read_bytes()
    run = memplan("plan", "five.csv", "-c", "12", "-q", "--proof", "five.proof", cwd=folder)
    said = "memplan: no complete proof was found; five.proof was not changed\n"
    assert (run.returncode, run.stdout, run.stderr) == (0, "", said)
    assert (folder / "five.proof").read_bytes() == before


# plan --progress -------------------------------------------------------------------------------


def test_progress_without_a_terminal_is_lines_at_changes(folder: Path) -> None:
    """Tests that it is silent unless asked for, and then says every peak and bound once."""
    assert memplan("plan", "five.csv", "-q", cwd=folder).stderr == ""
    run = memplan("plan", "five.csv", "-q", "--progress", cwd=folder)
    assert (run.returncode, run.stdout) == (0, "")
    lines = run.stderr.splitlines()
    assert lines
    assert all(line.startswith("memplan: ") for line in lines)
    assert "peak 12 bytes  bound 12 bytes (gap 0.00%)" in lines[-1]
    assert len({line.partition(" s  ")[2] for line in lines}) == len(lines)


# Shows what is new at once, so that a search of some nodes shows it on any machine.
_SHOW_ALL = """
import sys
from memplan import cli
from memplan.cli import progress

progress._PAUSE = 0.0
sys.exit(cli.main(sys.argv[1:]))
"""


def on_a_terminal(arguments: list[str], cwd: Path) -> str:
    """Run `memplan` on a terminal of its own; return what stands there."""
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _SHOW_ALL, *arguments],
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=child,
    )
    os.close(child)
    written = b""
    try:
        while chunk := os.read(parent, 1 << 16):
            written += chunk
    except OSError:  # Linux raises it once no process writes any more
        pass
    finally:
        os.close(parent)
    assert process.wait() == 0
    return written.decode()


def test_progress_on_a_terminal_is_one_line_that_goes_away(folder: Path) -> None:
    """Tests that a line is written in place, and cleared at the end; and who is not shown any."""
    problem = generators.flat_load(64, 1).with_capacity(None)
    formats.save(problem, folder / "hard.csv")
    search = ["plan", "hard.csv", "--solver", "minimalloc:dominance=off", "--nodes", "100000"]
    shown = on_a_terminal(search, folder)
    assert "\n" not in shown
    assert f"bound {problem.max_load} bytes" in shown
    assert shown.endswith("\r\x1b[K")
    assert on_a_terminal([*search, "-q"], folder) == ""
    assert on_a_terminal([*search, "--json"], folder) == ""
    assert on_a_terminal([*search, "--no-progress"], folder) == ""


class Terminal:
    """A stream that says it is a terminal, and keeps what is written."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def isatty(self) -> bool:
        """Return that it is one."""
        return True

    def write(self, text: str) -> None:
        """Keep it, apart from what was written before."""
        self.written.append(text)

    def flush(self) -> None:
        """Do nothing."""


def test_a_terminal_is_not_flooded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that news in quick succession are one line, cut to the width."""
    terminal = Terminal()
    clock = iter([0.0, 0.1, 0.25, 0.3, 0.44, 0.5])
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "20")
    with ProgressLine() as line:
        for peak in (50, 40, 30, 20, 10):
            line(Progress(1.0, peak, 10, peak / 10 - 1, "exact", 5))
    assert [each[:4] for each in terminal.written] == ["\r\x1b[K"] * 3
    assert [len(each) for each in terminal.written] == [4 + 19, 4 + 19, 4]
    assert "peak 40" in terminal.written[0]
    assert "peak 10" in terminal.written[1]


def test_what_a_line_says() -> None:
    """Tests the words before and after there is a plan."""
    early = Progress(0.25, None, 4096, None, "", 0)
    assert format_progress(early) == "   0.2 s  no plan yet  bound 4 KiB"
    late = Progress(12.0, 5120, 4096, 0.25, "prover", 9)
    assert format_progress(late) == "  12.0 s  peak 5 KiB  bound 4 KiB (gap 25.00%)  prover"
