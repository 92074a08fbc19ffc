"""Tests of `memplan inspect` on programs with streams: their cost, and what would make it less."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from memplan.base.errors import MemplanError
from memplan.cli import app, main
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.graph_json import write_graph

RUNNER = CliRunner()


def inspect(*words: object) -> Result:
    """Run the command in this process."""
    arguments = ["inspect", *map(str, words)]
    return RUNNER.invoke(app, arguments, env={"COLUMNS": "200"})


def write(path: Path, streams: int) -> Path:
    """Write a program that makes pieces, and sends each away before the next one in its order."""
    tensors = [Tensor("batch", 4096, Kind.INPUT)]
    tensors += [Tensor(f"piece {number}", 1000) for number in range(4)]
    operators = []
    for number in range(1, 5):
        operators.append(Operator(f"make {number}", "Make", (0,), (number,)))
        operators.append(Operator(f"send {number}", "Send", (number,), (), streams - 1))
    graph = Graph("relay", tuple(tensors), tuple(operators), inputs=(0,))
    path.write_text(write_graph(graph))
    return path


def test_cost_of_safety(tmp_path: Path) -> None:
    """Tests that a program with streams is told what they cost, and one without is not."""
    found = inspect(write(tmp_path / "two.json", streams=2))
    assert found.exit_code == 0, found.output
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["one", "stream,", "planned", "5,096", "4.97", "KiB", "-"] in lines
    assert ["2", "streams,", "planned", "8,096", "7.90", "KiB", "58.9", "%"] in lines
    assert "Synchronisation" not in found.stdout
    assert "Cost of safety" not in inspect(write(tmp_path / "one.json", streams=1)).stdout


def test_suggestions(tmp_path: Path) -> None:
    """Tests that arcs are told by name with what they save and cost, for what is planned."""
    path = write(tmp_path / "two.json", streams=2)
    found = inspect(path, "--suggest-sync")
    assert found.exit_code == 0, found.output
    line = next(line for line in found.stdout.splitlines() if "waits for" in line)
    assert line.startswith("make 3 (stream 0) waits for send 2 (stream 1)")
    assert line.split()[-7:] == ["1.95", "KiB", "5.95", "KiB", "4", "pairs", "+1"]
    assert "Together they save 3,000 bytes" in found.stdout
    without = inspect(path, "--exclude", "input", "--suggest-sync").stdout
    lines = [line.split() for line in without.splitlines()]
    assert ["one", "stream,", "planned", "1,000", "-"] in lines
    assert "Together they save 3,000 bytes" in without


def test_nothing_to_suggest(tmp_path: Path) -> None:
    """Tests that it is said where waiting saves nothing."""
    tensors = (Tensor("a", 8), Tensor("b", 8, Kind.OUTPUT))
    operators = (Operator("make", "Make", (), (0,)), Operator("send", "Send", (0,), (1,), 1))
    path = tmp_path / "net.json"
    path.write_text(write_graph(Graph("net", tensors, operators, outputs=(1,))))
    assert "No synchronisation of two operators saves anything." in (
        inspect(path, "--suggest-sync").stdout
    )


def test_only_for_programs_on_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a program on one stream, and a problem, cannot be synchronised."""
    one = write(tmp_path / "one.json", streams=1)
    assert main(["inspect", str(one), "--suggest-sync"]) == 2
    assert "the program has only one stream, so there is nothing to synchronize" in (
        capsys.readouterr().err
    )
    problem = tmp_path / "problem.csv"
    problem.write_text("id,lower,upper,size\na,0,1,4\n")
    with pytest.raises(
        MemplanError, match="a problem has no operators, which --suggest-sync is about; give"
    ):
        raise inspect(problem, "--suggest-sync").exception or AssertionError
