"""Tests of `memplan-lab bench` as a user runs it: a process, its files, its exit code."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def lab(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `memplan-lab` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "memplan_lab", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("bench", "--list"),
        ("bench nothing", "nothing"),
        ("bench bundled --output rows.txt", ".parquet"),
        ("bench bundled --figure rows.txt", ".svg"),
        ("bench bundled --sizes ten", "ten"),
        ("bench bundled --peer unknown", "unknown"),
        ("dance", "dance"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: str, word: str, tmp_path: Path) -> None:
    """Tests that a mistake on the command line names what is wrong, and leaves no file."""
    run = lab(*arguments.split(), cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("memplan: ")
    assert run.stderr.count("\n") == 1
    assert word in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_and_version(tmp_path: Path) -> None:
    """Tests that help is a result, and that no command at all shows it as well."""
    assert lab("--version", cwd=tmp_path).stdout.split()[0] == "memplan-lab"
    assert lab("--help", cwd=tmp_path).returncode == 0
    run = lab(cwd=tmp_path)
    assert run.returncode == 2
    for command in ("bench", "sweep", "report", "corpus", "learn"):
        assert command in run.stdout


def test_bench_lists_its_suites(tmp_path: Path) -> None:
    """Tests that every suite is named on a line of its own."""
    run = lab("bench", "--list", cwd=tmp_path)
    assert run.returncode == 0
    assert {"challenging", "synthetic", "perfect", "nn-like"} <= set(run.stdout.split())


def test_bench_prints_a_table_and_writes_rows(tmp_path: Path) -> None:
    """Tests a small suite with a peer that fails, as a table, as Markdown and as a file."""
    arguments = [
        "bench",
        "synthetic",
        "--sizes",
        "20",
        "--seeds",
        "2",
        "--peer",
        "no=false {input} {output}",
    ]
    run = lab(*arguments, "--output", "rows.csv", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "2/2" in run.stdout
    assert "0/2" in run.stdout
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert [row["timeout_s"] for row in rows] == ["60.0"] * 4
    assert run.stdout.splitlines()[-1] == "rows.csv: written"
    run = lab(*arguments, "--markdown", cwd=tmp_path)
    assert run.stdout.startswith("| suite |")
