"""Tests of `memplan plan --penalties` and `--levers waits`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import told

import memplan as mp
from memplan.cli import main
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.graph_json import write_graph

ASKED = ("plan", "tiles.json", "--penalties", "pairs.csv")


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder of its own, in which are a problem, its penalties, and a program."""
    mp.save(
        mp.Problem([mp.Buffer(name, at, at + 1, 8) for at, name in enumerate("abc")]), "tiles.json"
    )
    Path("pairs.csv").write_text("first,second,cost\na,b,5\nb,c,5\na,c,2\n")
    tensors = tuple(Tensor(name, 10, Kind.INTERMEDIATE) for name in ("a", "b", "c"))
    operators = (
        Operator("make", "OP", (), (0,)),
        Operator("use", "OP", (0,), ()),
        Operator("other", "OP", (), (1,), stream=1),
        Operator("last", "OP", (1,), (2,), stream=1),
    )
    Path("streams.json").write_text(write_graph(Graph("s", tensors, operators, (), ())))


def test_penalties_in_words_and_as_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the words, and that `verify` takes the plan that is written."""
    lines = told(capsys, *ASKED, "--capacity", "20", "-o", "plan.json")
    for line in (
        "cost 2; proved: no plan costs less",
        "shared 1 of 3 pairs",
        "peak 16 bytes; proved: none at this cost is lower",
        "a and c 2",
    ):
        assert line in lines
    told(capsys, "verify", "tiles.json", "plan.json")


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record of a plan, and that of none with exit code 1."""
    assert main([*ASKED, "--capacity", "20", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["penalties"]["cost"], record["penalties"]["bound"]) == (2, 2)
    assert (record["status"], record["axes"][0]["found"]) == ("optimal", 2)
    assert record["penalties"]["met"] == [{"first": "a", "second": "c", "cost": 2}]
    assert main([*ASKED, "--capacity", "7", "--json", "-o", "plan.json"]) == 1
    told_now = capsys.readouterr()
    assert json.loads(told_now.out)["status"] == "infeasible"
    assert "plan.json was not changed" in told_now.err
    assert not Path("plan.json").exists()


def test_waits_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the plan is one of the program with waits, and not of the given one."""
    asked = ("plan", "streams.json", "--capacity", "20", "--levers", "waits", "-o", "plan.json")
    asked += ("--program", "waits.json")
    lines = told(capsys, *asked)
    assert lines[-3:] == [
        "last (stream 1) use (stream 0)",
        "plan.json: written",
        "waits.json: written",
    ]
    assert any(line.startswith("waits 1; ") for line in lines)
    told(capsys, "verify", "waits.json", "plan.json")
    assert main(["verify", "streams.json", "plan.json"]) == 1
    capsys.readouterr()
    assert main([*asked, "--json", "-q"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["steps"][0]["waits"] == [{"operator": 3, "for": 1, "names": ["last", "use"]}]
